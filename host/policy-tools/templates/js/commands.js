// Patterns of commands, matched by the table of known programs in `table.js`.

import { ROWS } from "./table.js";

const OFF = ["false", "no", "none", "off", "0"];
const ORDER = ["no", "maybe", "yes"];
const DEPTH_MAX = 16;

const most = (matches) => matches.reduce((best, one) => (ORDER.indexOf(one) > ORDER.indexOf(best) ? one : best), "no");
const least = (matches) => matches.reduce((worst, one) => (ORDER.indexOf(one) < ORDER.indexOf(worst) ? one : worst), "yes");
const certainty = (certain) => (certain ? "yes" : "maybe");

// A row of the table: traits, options, and what options cover.
const rowOf = (path) => {
  if (!ROWS.has(path)) return null;
  const [traits, text] = ROWS.get(path);
  if (traits === "=") return { path, traits, sameAs: text, entries: [], covers: [] };
  const parts = text.split(" ").filter((part) => part !== "");
  return {
    path,
    traits,
    sameAs: null,
    entries: parts.filter((part) => !part.includes(">")).map((part) => {
      const arity = part.endsWith("=") ? "one" : part.endsWith("?") ? "attached" : "none";
      return { names: (arity === "none" ? part : part.slice(0, -1)).split("|"), arity };
    }),
    covers: parts.filter((part) => part.includes(">")).map((part) => part.split(">")),
  };
};

const lastHas = (line, trait) => line.rows.length > 0 && line.rows[line.rows.length - 1].traits.includes(trait);
const programHas = (line, trait) => line.rows.length > 0 && line.rows[0].traits.includes(trait);

const entryOf = (line, name) => {
  const rows = programHas(line, "e") ? [...line.rows].reverse() : line.rows.slice(-1);
  for (const row of rows) {
    const entry = row.entries.find(({ names }) => names.includes(name));
    if (entry != null) return entry;
  }
  return null;
};

// Reads the words of a command: `options` by their first spelling, `operands`, and whether an uncertain word may be an
// option (`open`).
class Reader {
  constructor(name) {
    this.line = { program: name, operands: [], options: [], open: false, inner: null, rows: [] };
    this.level = name;
    this.sure = true;
    this.ended = this.settled = this.pending = this.doubtful = false;
    const row = rowOf(name);
    const dash = name.indexOf("-");
    const head = dash < 0 ? null : rowOf(name.slice(0, dash));
    if (row != null) this.descend(row, 0);
    else if (head != null && head.traits.includes("d")) {
      this.line.program = this.level = head.path;
      this.line.rows.push(head);
      this.operand(0, name.slice(dash + 1));
    }
  }

  word(at, text) {
    if (this.pending) {
      this.pending = false;
      const option = this.line.options[this.line.options.length - 1];
      option.value = text;
      option.unknown = text == null;
      if (text == null) this.unknownWord(at);
    } else if (text == null) this.unknownWord(at);
    else if (this.ended || text === "-" || !text.startsWith("-")) this.operand(at, text);
    else {
      this.doubtful = false;
      if (text === "--") this.ended = true;
      else this.option(at, text);
    }
  }

  unknownWord(at) {
    this.push(at, null, false);
    if (!this.ended) this.line.open = true;
    this.sure = this.doubtful = false;
    if (lastHas(this.line, "r")) this.line.inner ??= at;
  }

  operand(at, text) {
    const certain = this.sure && !this.doubtful;
    this.doubtful = false;
    if (!this.settled) {
      const row = rowOf(`${this.level} ${text}`);
      if (row != null) {
        this.push(at, text, certain);
        this.descend(row, at);
        return;
      }
      if (certain && this.line.rows.length === 1 && programHas(this.line, "u")) {
        this.push(at, text, certain, true);
        this.line.open = this.settled = true;
        return;
      }
    }
    this.push(at, text, certain);
    if (certain) this.settled = true;
    if (lastHas(this.line, "r")) this.line.inner ??= at;
    if (lastHas(this.line, "r") || lastHas(this.line, "o")) this.ended = true;
  }

  push(at, text, certain, alias = false) {
    this.line.operands.push({ text, certain, alias, at });
  }

  descend(row, at) {
    if (row.sameAs == null) {
      this.level = row.path;
      this.line.rows.push(row);
      return;
    }
    const certain = this.line.operands.every((operand) => operand.certain);
    const [program, ...names] = row.sameAs.split(" ");
    this.line.operands = [];
    this.line.program = this.level = program;
    this.line.rows = [rowOf(program)].filter((found) => found != null);
    for (const name of names) {
      this.level = `${this.level} ${name}`;
      const found = rowOf(this.level);
      if (found != null) this.line.rows.push(found);
      this.push(at, name, certain);
    }
  }

  option(at, word) {
    const single = programHas(this.line, "s");
    if (!word.startsWith("--") && !single) {
      this.letters(at, word);
      return;
    }
    const text = single && word.startsWith("--") ? word.slice(1) : word;
    const equals = text.indexOf("=");
    const name = equals < 0 ? text : text.slice(0, equals);
    const value = equals < 0 ? null : text.slice(equals + 1);
    const entry = entryOf(this.line, name);
    if (entry != null) this.known(at, entry, value);
    else this.abbreviated(at, name, value);
  }

  known(at, entry, value) {
    this.give(at, entry.names[0], value, this.sure);
    this.pending = entry.arity === "one" && value == null;
  }

  abbreviated(at, name, value) {
    const last = this.line.rows[this.line.rows.length - 1];
    const entries =
      name.length > 2 && programHas(this.line, "a")
        ? last.entries.filter(({ names }) => names.some((known) => known.startsWith(name)))
        : [];
    if (entries.length === 0) {
      this.give(at, name, value, this.sure);
      this.doubtful = value == null;
    } else if (entries.length === 1) this.known(at, entries[0], value);
    else {
      for (const { names } of entries) this.give(at, names[0], value, false);
      this.doubtful = value == null && entries.some(({ arity }) => arity === "one");
    }
  }

  letters(at, text) {
    let isKnown = true;
    let startsUnknown = false;
    for (let index = 1; index < text.length; index++) {
      const entry = entryOf(this.line, `-${text[index]}`);
      const certain = this.sure && isKnown;
      if (entry == null) {
        if (index === 1) startsUnknown = true;
        this.give(at, `-${text[index]}`, null, certain, startsUnknown && text.length > 2);
        isKnown = false;
        this.doubtful = true;
      } else if (entry.arity === "none") this.give(at, entry.names[0], null, certain, startsUnknown);
      else {
        const rest = text.slice(index + 1);
        this.give(at, entry.names[0], rest === "" ? null : rest, certain, startsUnknown);
        this.pending = isKnown && rest === "" && entry.arity === "one";
        break;
      }
    }
    if (startsUnknown && text.length > 2) {
      const equals = text.indexOf("=");
      const value = equals < 0 ? null : text.slice(equals + 1);
      this.give(at, equals < 0 ? text : text.slice(0, equals), value, this.sure);
    }
  }

  give(at, name, value, certain, letter = false) {
    this.line.options.push({ name, value, unknown: false, certain, letter, at });
  }
}

const parse = (argv) => {
  if (argv.length === 0 || !argv[0].literal) return null;
  const reader = new Reader(argv[0].value.split("/").pop());
  argv.slice(1).forEach((word, index) => reader.word(index + 1, word.literal ? word.value : null));
  return reader.line;
};

// Whether a line runs another command that cannot be known for certain and may be this program.
const mayRunInside = (line, program) => {
  if (!lastHas(line, "r")) return false;
  const own = line.operands.filter(({ at }) => line.inner != null && at >= line.inner);
  const mentions = (text) => text != null && text.includes(program);
  return (
    (own.length > 0 && !own[0].certain) ||
    (own.length > 0 && own[0].text?.split("/").pop() !== program && own.some(({ text }) => mentions(text))) ||
    line.options.some(({ value }) => mentions(value))
  );
};

const ofOperands = (names, operands) => {
  if (names.every((name, index) => operands[index]?.certain && operands[index].text === name)) return "yes";
  let reached = [true, ...names.map(() => false)];
  for (const { text, certain, alias } of operands) {
    if (reached[names.length]) break;
    const isAny = alias || text == null;
    let before = false;
    reached = reached.map((here, place) => {
      const next = (here && (isAny || !certain)) || (before && (isAny || text === names[place - 1]));
      before = here || (isAny && before);
      return next;
    });
  }
  return reached[names.length] ? "maybe" : "no";
};

const ofValue = (wanted, given) => {
  if (wanted.value != null) {
    if (given.unknown) return "maybe";
    if (given.value !== wanted.value) return "no";
  } else if (given.value != null && OFF.includes(given.value)) return "maybe";
  return certainty(given.certain);
};

// An option that the table does not know may be a spelling of another unknown one.
const maySpell = (wanted, option, line) => {
  if (entryOf(wanted, option.name) != null) return false;
  const isLong = (name) => name.startsWith("--");
  const letter = (name) => name.replace(/^-+/, "").slice(0, 1).toLowerCase();
  const isSpelling = ({ name }) =>
    entryOf(line, name) == null && isLong(name) !== isLong(option.name) && letter(name) === letter(option.name);
  const letters = [...option.name.slice(1)];
  const given = (name) => line.options.some((one) => one.name === name);
  return (
    line.options.some(isSpelling) ||
    (!isLong(option.name) && letters.length > 1 && letters.every((one) => given(`-${one}`)))
  );
};

const ofOption = (wanted, option, line) => {
  const covers = wanted.rows.flatMap((row) => row.covers).filter(([name]) => name === option.name);
  const covered = covers.flatMap(([, list]) => list.split(","));
  const given = line.options.filter(({ name }) => name === option.name || covered.includes(name));
  const starts = covered.filter((start) => !start.startsWith("-"));
  const words = line.operands.filter(({ text }) => starts.some((start) => text != null && text.startsWith(start)));
  const best = most([
    ...given.map((one) => ofValue(option, one)),
    ...words.map(({ certain }) => certainty(certain)),
  ]);
  if (best === "yes" && option.name.startsWith("--")) {
    return line.options.some(({ name }) => name === `--no-${option.name.slice(2)}`) ? "maybe" : "yes";
  }
  return best === "no" && (line.open || maySpell(wanted, option, line)) ? "maybe" : best;
};

const ofLine = (wanted, line) => {
  const names = wanted.operands.map(({ text }) => text);
  const options = wanted.options.filter(({ letter }) => !letter);
  return least([ofOperands(names, line.operands), ...options.map((option) => ofOption(wanted, option, line))]);
};

// Matches the words of one command: "no", "maybe" or "yes".
export const matchesWords = (pattern, argv) => {
  const words = pattern.split(/\s+/).filter((word) => word !== "").map((value) => ({ value, literal: true }));
  const wanted = parse(words);
  if (wanted == null) return "no";
  let best = "no";
  let rest = argv;
  for (let depth = 0; depth < DEPTH_MAX; depth++) {
    if (rest.length === 0) return best;
    const line = parse(rest);
    if (line == null) return most([best, "maybe"]);
    const isPath = words[0].value.includes("/");
    if (isPath ? words[0].value === rest[0].value : wanted.program === line.program) {
      best = most([best, ofLine(wanted, line)]);
    }
    if (mayRunInside(line, wanted.program)) best = most([best, "maybe"]);
    if (line.inner == null) return best;
    rest = rest.slice(line.inner);
  }
  return most([best, "maybe"]);
};

// How surely a request runs a command that a pattern describes (`git push --force`): "no", "maybe" or "yes".
export const matches = (request, pattern) => {
  if (request.action.tag !== "command" && request.action.tag !== "escalation") return "no";
  const { parsed } = request.action.val;
  if (parsed.tag === "err") return "maybe";
  const { commands, features } = parsed.val;
  const hides = features.dynamic || features.redefinition;
  return most([...commands.map(({ argv }) => matchesWords(pattern, argv)), hides ? "maybe" : "no"]);
};

export const runs = (request, pattern) => matches(request, pattern) === "yes";
export const couldRun = (request, pattern) => matches(request, pattern) !== "no";

/**
 * A question on the terminal, as a state machine with keys as its input. A key permits nothing if it is pressed before
 * the keyboard was quiet for a moment, if it has no meaning here, or if its row is not on the screen.
 */
import { plain } from "./messages.ts";
import type { AskOption, AskParams } from "./protocol.ts";
import { Scroll } from "./scroll.ts";

/**
 * Keys that come sooner than this after another one, or after the question was drawn, were meant for something else.
 */
export const QUIET_MS = 350;

/** The bar before every line of the subject, also on the screen: a line without it does not come from the agent. */
export const BAR = "  │ ";

/** The beginning of a question. */
export const NAME = "Portcullis   ";

/** The longest line that the user can write to the agent. */
const LONGEST_REASON = 200;

/** A key press, as far as it matters to a question. */
export type Key = "up" | "down" | "left" | "right" | "enter" | "escape" | "pageUp" | "pageDown"
  /** A character, or several that came at once. */
  | { character: string };

/** A line that can be chosen: "no", the options with one key, or what is folded. */
type Row =
  | { kind: "no" | "more" | "because" | "details"; key: string; label: string }
  /** The indices of the options, the narrowest first. */
  | { kind: "options"; key: string; options: number[] };

/** The answer: the index of an option, "no", or "no" with a line for the agent; undefined while there is none. */
export type Outcome = number | "refuse" | { because: string } | undefined;

/** A line of the question. */
export interface Line {
  text: string;
  tone: "title" | "subject" | "plain" | "faint" | "marked" | "alarm";
  /** The row that it belongs to, which can be left out where there is no room. */
  row?: number;
  /** Whether it is left out first where there is no room. */
  spare?: boolean;
}

export class PromptView {
  readonly #subject = new Scroll();
  readonly #details = new Scroll();
  readonly #ask: AskParams;
  readonly #usual: Row[];
  readonly #folded: Row[];
  #marked = 0;
  #width = 0;
  #mode: "choices" | "details" | "because" = "choices";
  #isUnfolded = false;
  #typed = "";
  /** The rows on the screen; undefined before it is known. */
  #visible: ReadonlySet<number> | undefined;
  /** The time when a key was last pressed, or when the question was first drawn. */
  #lastAt: number | undefined;
  /** Whether the previous keys were meant for this question, so that Enter may follow them at once. */
  #settled = false;

  constructor(ask: AskParams) {
    this.#ask = ask;
    const rows: (Row & { kind: "options" })[] = [];
    ask.options.forEach((option, index) => {
      const row = rows.find((known) => known.key === option.key);
      if (row === undefined) rows.push({ kind: "options", key: option.key, options: [index] });
      else row.options.push(index);
    });
    const isRare = (row: Row & { kind: "options" }) => RARE.has(row.key) || ask.options[row.options[0]!]!.effect === "deny";
    this.#usual = [{ kind: "no", key: "esc", label: "No" }, ...rows.filter((row) => !isRare(row))];
    this.#folded = [
      ...rows.filter(isRare),
      { kind: "because", key: "w", label: "No, and tell the agent why" },
      { kind: "details", key: "?", label: "Details: rule, policy, what is covered" },
    ];
  }

  /**
   * The part of the text that has been shown: no option that permits can be chosen before all of the subject was on the
   * screen.
   */
  get scroll(): Scroll {
    return this.#mode === "details" ? this.#details : this.#subject;
  }

  /** Whether a line of text is typed, in which every character counts. */
  get isTyping(): boolean {
    return this.#mode === "because";
  }

  /** Called when the question is drawn: keys that were pressed before are not an answer to it. */
  drawn(now: number): void {
    this.#lastAt ??= now;
  }

  /** Called with the rows that are on the screen: no other can be chosen. */
  fitted(rows: ReadonlySet<number>): void {
    if (this.#mode === "choices") this.#visible = rows;
  }

  get #rows(): Row[] {
    if (this.#isUnfolded) return [...this.#usual, ...this.#folded];
    return [...this.#usual, { kind: "more", key: "m", label: `More: ${this.#foldedNames()}` }];
  }

  #foldedNames(): string {
    const names = this.#folded.map((row) => {
      if (row.kind === "because") return "no, because …";
      if (row.kind === "details") return "details";
      if (row.kind !== "options") return "";
      return this.#option(row).effect === "deny" ? "no for this session" : "new project config";
    });
    return names.join(" · ");
  }

  /**
   * Takes a key; returns the answer if it completes one. A letter always needs the quiet time, because it may be part
   * of a word.
   */
  press(key: Key, now: number): Outcome {
    if (this.#lastAt === undefined) return undefined;
    const quiet = now - this.#lastAt >= QUIET_MS;
    this.#lastAt = now;
    if (this.#mode === "because") return this.#type(key);
    const meant = quiet || (this.#settled && typeof key === "string");
    this.#settled = meant && (typeof key === "string" || this.#rowOf(key.character) !== -1);
    if (!meant) return undefined;
    if (key === "pageUp") return this.scroll.back();
    if (key === "pageDown" || (typeof key !== "string" && key.character === " ")) return this.scroll.forth();
    if (this.#mode === "details") return this.#leaveDetails(key);
    switch (key) {
      case "escape": return "refuse";
      case "enter": return this.#chosen(this.#marked);
      case "up": return this.#mark(this.#marked - 1);
      case "down": return this.#mark(this.#marked + 1);
      case "left": return this.#widen(-1);
      case "right": return this.#widen(1);
    }
    const row = this.#rowOf(key.character);
    if (row === -1) return undefined;
    const isShown = this.#isShown(row);
    this.#mark(row);
    // An option with an upper-case letter needs that letter or Enter; the others take effect at once, in either case.
    const { key: letter } = this.#rows[row]!;
    const commits = letter === key.character || letter === letter.toLowerCase();
    return isShown && commits ? this.#chosen(row) : undefined;
  }

  #type(key: Key): Outcome {
    if (key === "enter") {
      const because = this.#typed.trim();
      return because === "" ? "refuse" : { because };
    }
    if (key === "escape") {
      this.#mode = "choices";
      this.#settled = false;
    } else if (typeof key !== "string") {
      if (key.character === "\b") this.#typed = [...this.#typed].slice(0, -1).join("");
      else if (this.#typed.length < LONGEST_REASON) this.#typed += key.character;
    }
    return undefined;
  }

  #leaveDetails(key: Key): undefined {
    if (key === "escape" || key === "enter" || (typeof key !== "string" && key.character === "?")) {
      this.#mode = "choices";
      this.#settled = false;
    }
  }

  #rowOf(character: string): number {
    return this.#rows.findIndex(({ key }) => key.toLowerCase() === character.toLowerCase());
  }

  #isShown(row: number): boolean {
    return this.#visible === undefined || this.#visible.has(row);
  }

  #mark(row: number): undefined {
    this.#marked = Math.max(0, Math.min(this.#rows.length - 1, row));
  }

  #widest(): number {
    const rows = [...this.#usual, ...this.#folded];
    return Math.max(...rows.map((row) => (row.kind === "options" ? row.options.length : 1))) - 1;
  }

  #widen(by: number): undefined {
    this.#width = Math.max(0, Math.min(this.#widest(), this.#width + by));
  }

  #chosen(index: number): Outcome {
    const row = this.#rows[index];
    switch (row?.kind) {
      case "no": return "refuse";
      case "more":
        this.#isUnfolded = true;
        this.#visible = undefined;
        // A row is chosen by the key that it shows, so the next key waits until the rows are drawn.
        this.#settled = false;
        return undefined;
      case "because":
        this.#mode = "because";
        return undefined;
      case "details":
        this.#mode = "details";
        return undefined;
      case "options": {
        const option = this.#index(row);
        if (this.#ask.options[option]!.effect === "deny") return option;
        return this.#subject.done && this.#isShown(index) ? option : undefined;
      }
    }
    return undefined;
  }

  /** Returns the index of the option of a row with the chosen width, or of the widest one that the row has. */
  #index(row: Row & { kind: "options" }): number {
    return row.options[Math.min(this.#width, row.options.length - 1)]!;
  }

  #option(row: Row & { kind: "options" }): AskOption {
    return this.#ask.options[this.#index(row)]!;
  }

  /** Returns the lines to be drawn; `waiting` questions come after this one. */
  lines(waiting: number, columns = 80): Line[] {
    if (this.#mode === "details") return this.#detailLines();
    const lines = this.#asked(waiting, columns);
    if (this.#mode === "because") {
      lines.push({ text: "", tone: "plain", spare: true });
      lines.push({ text: ` No, because: ${plain(this.#typed, 400)}▏`, tone: "marked" });
      lines.push({ text: " The agent reads this line.   enter send   esc back", tone: "faint" });
      return lines;
    }
    lines.push({ text: "", tone: "plain", spare: true });
    this.#rows.forEach((row, index) => {
      const label = row.kind === "options" ? plain(this.#option(row).label, 200) : row.label;
      const mark = index === this.#marked ? "→" : " ";
      lines.push({
        text: ` ${mark} ${`[${row.key}]`.padEnd(6)} ${label}`, tone: index === this.#marked ? "marked" : "plain", row: index,
      });
    });
    const covers = this.#covers();
    if (covers !== undefined) lines.push({ text: covers, tone: "faint" });
    return lines;
  }

  /** Returns the lines before the choices. */
  #asked(waiting: number, columns: number): Line[] {
    const ask = this.#ask;
    const more = waiting === 0 ? "" : `  (1 of ${waiting + 1})`;
    const tone = ask.sensitive ? "alarm" : "title";
    const place = ask.place ?? ask.subject;
    const title = `${NAME}${plain(ask.title, 200)}`;
    const whole = `${title} ${place}${more}`;
    const lines: Line[] = [];
    // What could pass for words of ours stands behind the bar.
    if (/^[!-~]+$/.test(place) && whole.length < columns) lines.push({ text: whole, tone });
    else {
      lines.push({ text: title.endsWith("?") ? `${title}${more}` : `${title}:${more}`, tone });
      lines.push(...barred(place, "subject"));
    }
    if (ask.context) lines.push({ text: `  ${plain(ask.context, 300)}`, tone: ask.sensitive ? "alarm" : "faint" });
    if (ask.preview !== undefined) lines.push(...barred(ask.preview, "faint"));
    if (ask.quote !== undefined) {
      lines.push({ text: `  ${plain(ask.policy, 80)} says: "${shortened(plain(ask.quote, 400))}"`, tone: "faint" });
    }
    return lines;
  }

  #detailLines(): Line[] {
    const ask = this.#ask;
    const lines: Line[] = [{ text: `${NAME}Details (esc back)`, tone: "title" }];
    const add = (text: string) => lines.push({ text: `${BAR}${text}`, tone: "subject" });
    add(`Rule ${plain(ask.rule, 80)} of policy ${plain(ask.policy, 80)}`);
    add(`Reason: ${plain(ask.reason, 800)}`);
    add(`Asked by ${plain(ask.asker, 200)}`);
    lines.push(...barred(ask.subject, "subject"));
    if (ask.quote !== undefined) add(`${plain(ask.policy, 80)} says: "${plain(ask.quote, 800)}"`);
    for (const option of ask.options) {
      const covers = option.covers === undefined ? "" : `: ${plain(option.covers, 300)}`;
      const target = option.target === undefined ? "" : `, saved in ${plain(option.target, 200)}`;
      add(`[${plain(option.key, 8)}] ${plain(option.label, 200)}${covers}${target}`);
    }
    return lines;
  }

  /**
   * Returns what the marked answer would cover, or else those for longer than once, at the chosen width. This line
   * stands wherever an answer for longer can be given.
   */
  #covers(): string | undefined {
    const lasts = (row: Row | undefined): row is Row & { kind: "options" } =>
      row?.kind === "options" && row.options.some((index) => this.#ask.options[index]!.covers !== undefined);
    const marked = this.#rows[this.#marked];
    const row = lasts(marked) ? marked : this.#rows.find(lasts);
    if (row === undefined) return undefined;
    const { covers } = this.#option(row);
    const keys = this.#rows.filter((other) => lasts(other) && this.#option(other).covers === covers);
    const names = row === marked ? [row] : keys;
    const each = names.map(({ key }) => `[${key}]`).join(" ");
    return `  ${this.#arrows()}${each} ${names.length === 1 ? "covers" : "cover"} ${plain(covers ?? "", 300)}`;
  }

  #arrows(): string {
    const widest = this.#widest();
    if (widest < 1) return "";
    const narrower = this.#width > 0 ? ["← narrower"] : [];
    return `(${[...narrower, ...(this.#width < widest ? ["→ wider"] : [])].join(", ")}) `;
  }
}

/** The keys of rows that few need: an entry of its own below another project's. */
const RARE: ReadonlySet<string> = new Set(["N"]);

/** The number of words of a policy's text that are shown with the question; the details have all of it. */
const QUOTED_WORDS = 8;

function shortened(text: string): string {
  const words = text.split(" ");
  return words.length <= QUOTED_WORDS ? text : `${words.slice(0, QUOTED_WORDS).join(" ")} …`;
}

/** Returns the lines of foreign text, each behind the bar. */
export function barred(text: string, tone: Line["tone"]): Line[] {
  return text.split("\n").map((line) => ({ text: `${BAR}${plain(line.replaceAll("\t", "  "), 8_000)}`, tone }));
}

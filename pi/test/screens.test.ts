/**
 * `docs/screens-pi.md`: every screen of the extension, as a terminal of 80 columns shows it. The host's tests write the
 * questions and the menu's screens into `test/screens/`; this draws them.
 */
import assert from "node:assert/strict";
import { readFileSync, writeFileSync } from "node:fs";
import { test } from "node:test";
import { MenuView } from "../src/menu-view.ts";
import * as messages from "../src/messages.ts";
import { BAR, type Line, PromptView } from "../src/prompt-view.ts";
import type { AskParams, MenuScreen } from "../src/protocol.ts";
import { footerText, type State } from "../src/status.ts";
import { wrapped } from "../src/wrapped.ts";

const COLUMNS = 80;
/** The most words and lines of a question before its choices. */
const WORDS = 30;
const LINES = 8;
const PAGE = new URL("../../docs/screens-pi.md", import.meta.url);
const COMPARISON = new URL("../../docs/decisions/0025-before-and-after.md", import.meta.url);

function read<T>(name: string): T {
  return JSON.parse(readFileSync(new URL(`./screens/${name}.json`, import.meta.url), "utf8")) as T;
}

const QUESTIONS = read<{ name: string; ask: AskParams }[]>("questions");
const MENU = read<{ name: string; screen: MenuScreen }[]>("menu");

function drawn(lines: readonly Line[]): string[] {
  return lines.flatMap(({ text }) => wrapped(text, COLUMNS, text.startsWith(BAR) ? BAR : "      "));
}

/** Returns a question's lines, and how many of them come before the choices. */
function question(ask: AskParams, ...keys: string[]): { shown: string[]; before: number } {
  const view = new PromptView(ask);
  view.drawn(0);
  keys.forEach((character, place) => view.press({ character }, (place + 1) * 1_000));
  const lines = view.lines(0, COLUMNS);
  const first = lines.findIndex(({ row }) => row !== undefined);
  return { shown: drawn(lines), before: drawn(lines.slice(0, first)).filter((line) => line !== "").length };
}

/** Returns the number of words before the choices, without marks; the product's name is no part of the question. */
function words({ shown, before }: { shown: string[]; before: number }): number {
  const asked = shown.slice(0, before).join(" ").split(/\s+/);
  return asked.filter((word) => !["", "│", "+", "Portcullis"].includes(word)).length;
}

test("a question has at most 30 words and 8 lines before the choices", () => {
  for (const { name, ask } of QUESTIONS) {
    const drawn = question(ask);
    // A path with spaces is one name, however it is counted.
    const count = words(drawn) - (name.includes("long path") ? 4 : 0);
    assert.ok(count <= WORDS, `${name}: ${count} words in ${drawn.shown.join("\n")}`);
    assert.ok(drawn.before <= LINES, `${name}: ${drawn.before} lines in ${drawn.shown.join("\n")}`);
    assert.match(drawn.shown.join("\n"), /\[esc\] {2}No\n/, name);
  }
});

test("questions and screens fit terminals of 40, 80 and 120 columns", () => {
  for (const columns of [40, 80, 120]) {
    const fit = (lines: readonly string[], name: string) => {
      for (const line of lines) assert.ok([...line].length <= columns, `${name} at ${columns}: ${line}`);
    };
    for (const { name, ask } of QUESTIONS) {
      const view = new PromptView(ask);
      view.drawn(0);
      const lines = view.lines(0, columns);
      fit(lines.flatMap(({ text }) => wrapped(text, columns, text.startsWith(BAR) ? BAR : "      ")), name);
      // "No" is the selected choice, with its whole text.
      assert.match(lines.map(({ text }) => text).join("\n"), /→ \[esc\] {2}No/, `${name} at ${columns}`);
    }
    for (const { name, screen } of MENU) {
      fit(new MenuView(screen).lines().flatMap(({ text }) => wrapped(text, columns, "      ")), name);
    }
  }
});

test("every key that a screen names works there", () => {
  for (const { name, ask } of QUESTIONS) {
    const keys = question(ask, "m").shown.flatMap((line) => /^ [→ ] \[(.)\]/.exec(line)?.[1] ?? []);
    for (const key of keys) {
      const view = new PromptView(ask);
      view.drawn(0);
      view.press({ character: "m" }, 1_000);
      const before = JSON.stringify(view.lines(0, COLUMNS));
      const outcome = view.press({ character: key }, 2_000);
      assert.ok(outcome !== undefined || JSON.stringify(view.lines(0, COLUMNS)) !== before, `${name}: ${key}`);
    }
  }
  for (const { name, screen } of MENU) {
    for (const { key } of screen.input === undefined ? screen.keys : []) {
      assert.deepEqual(new MenuView(screen).press({ character: key }), { kind: "key", key, index: screen.selected }, `${name}: ${key}`);
    }
    assert.deepEqual(new MenuView(screen).press("escape"), { kind: "back" }, name);
  }
});

/** The states that the footer can show. */
function footers(): [string, State, number][] {
  const open = (more = {}): State =>
    ({ kind: "open", status: { summary: "writes here · asks network", warnings: [], contained: false, ...more } as never });
  return [
    ["starting", { kind: "starting" }, 0],
    ["on", open(), 0],
    ["on, with a question that waits", open(), 1],
    ["on, with a mistake in the settings", open({ warnings: ["x"] }), 0],
    ["on, with pi itself in the sandbox", open({ contained: true }), 0],
    ["switched off", { kind: "disabled" }, 0],
    ["closed after a failure", { kind: "closed", why: "the host has ended" }, 0],
  ];
}

const OUTSIDE = { policy: "base", rule: "base.outside" };
const LOST = "the host was killed";

/** The texts of the extension; notes which of them the page shows. */
const shownTexts = new Set<string>();
const texts = new Proxy(messages, {
  get(all, name) {
    shownTexts.add(String(name));
    return all[name as keyof typeof messages];
  },
});
/** Parts of texts, and texts of questions in dialogs, which are drawn from the questions. */
const PARTS = ["EXIT_CLOSED", "EXIT_REFUSED", "NPM_INSTALL", "commandNotes", "fileError", "plain", "question", "quoted"];

const closed = (why: string, isTerminal = true) => texts.closedForUser(why, isTerminal);

/** What the user reads in a line of its own, and what the model reads in place of a result. */
const TEXTS: readonly (readonly [title: string, texts: readonly (readonly [name: string, text: string])[]])[] = [
  ["Notices of the host", read<{ name: string; text: string }[]>("notices").map(({ name, text }) => [name, text] as const)],
  ["Notices of the extension", [
    ["the host has failed", closed(LOST)],
    ["the host has failed, without a terminal", closed(LOST, false)],
    ["the host has failed once", texts.restarted(LOST, true)],
    ["the host has failed once, without a terminal", texts.restarted(LOST, false)],
    ["no program", closed(texts.missingProgram(undefined))],
    ["no program beside the npm package", closed(texts.missingProgram("@portcullis/linux-x64"))],
    ["no program for this system", closed(texts.noProgramFor("win32-x64"))],
    ["a program for another machine", closed(texts.notForThisMachine("/usr/bin/portcullis", texts.NPM_INSTALL))],
    ["extension and program of two versions", texts.otherVersion("0.1.0", "0.2.0", "portcullis pi-extension install")],
    ["the session has not started", closed(texts.NOT_STARTED)],
    ["the host has not answered", closed(texts.STARTING)],
    ["another extension has taken tools", texts.takenOver(new Map([["bash", "extension:other"], ["read", "extension:other"]]))],
    ["loaded twice", texts.TWICE],
    ["the flag in the wrong place", texts.FLAG_ATE_PROMPT],
    ["a refusal without an interface", texts.refusedLine("read ~/other/notes.txt: nobody could be asked [base.outside of base]")],
    ["the end of a run with refusals", texts.refusedSummary(3, 2, true)],
    ["the end of a run with refusals that were answered", texts.refusedSummary(1, 0, false)],
  ]],
  ["What the model reads", [
    ["a no", texts.refused({ ...OUTSIDE, reason: "it lies outside this project; you said no" })],
    ["a no with a line", texts.refused({ ...OUTSIDE, reason: "it lies outside this project; you said no, because: “use the copy in vendor”" })],
    ["nobody to ask", texts.refused({ ...OUTSIDE, reason: "it lies outside this project; nobody could be asked" })],
    ["a rule with advice", texts.refused({ policy: "git", rule: "git.push", reason: "pushing is not allowed here", hint: "Leave the push to the user." })],
    ["nothing can run", texts.closedForModel("the host program was not found")],
    ["an output that is kept back", texts.withheld({ policy: "secrets", rule: "secrets.output", reason: "it holds a key" })],
    ["arguments that broke off", texts.BROKEN_OFF],
    ["a tool of pi's own", texts.notOurs("bash")],
  ]],
];

test("the page shows every text of the extension", () => {
  for (const name of Object.keys(messages).filter((name) => !PARTS.includes(name))) {
    assert.ok(shownTexts.has(name), `messages.ts exports ${name}, and the page does not show it`);
  }
});

/** The most words of a line for the user, and of one for the model. */
const LONGEST = 70;

test("every notice and every text for the model is short", () => {
  for (const [title, all] of TEXTS) {
    for (const [name, text] of all) {
      const count = text.split(/\s+/).length;
      assert.ok(count <= LONGEST, `${title}, ${name}: ${count} words: ${text}`);
    }
  }
});

test("every refusal names rule and remedy", () => {
  const hints = [undefined, "Leave it to the user."];
  for (const reason of ["it lies outside this project", "it lies outside this project; you said no", ""]) {
    for (const hint of hints) {
      const denied = messages.refused({ ...OUTSIDE, reason, ...(hint === undefined ? {} : { hint }) });
      assert.ok(denied.includes(" [base.outside of base]. "), denied);
      assert.ok(denied.endsWith(hint ?? "Do not work around it; if you need it, tell the user."), denied);
    }
  }
  for (const cause of [undefined, { ...OUTSIDE, reason: "it holds a key" }]) {
    assert.match(messages.withheld(cause), /\[\S+ of \S+\]\. Go on without it/);
  }
  for (const unasked of [0, 1]) {
    for (const fails of [true, false]) {
      assert.match(messages.refusedSummary(1, unasked, fails), /portcullis audit tail --denied.*portcullis allow/);
    }
  }
  for (const isTerminal of [true, false]) assert.match(messages.closedForUser("x", isTerminal), /again|--no-sandbox/);
  assert.match(messages.closedForModel("x"), /Tell the user: x\.$/);
  assert.match(messages.notOurs("bash"), /Start pi again\.$/);
});

function page(): string {
  const parts = ["# Screens in pi", "", "Every question, screen and notice of the extension, as a terminal of 80 columns shows it.",
    "[Questions on a terminal](screens.md) shows the questions of `portcullis run`.", "", "Generated by a test of the extension."];
  const show = (name: string, lines: readonly string[], note?: string) =>
    parts.push("", `### ${name}`, "", ...(note === undefined ? [] : [note, ""]), "```text", ...lines.map((line) => line.trimEnd()), "```");
  parts.push("", "## Questions");
  for (const { name, ask } of QUESTIONS) {
    const drawn = question(ask);
    show(name, drawn.shown, `${words(drawn)} words, ${drawn.before} lines before the choices.`);
  }
  const first = QUESTIONS[0]!.ask;
  show("a question with its rare choices", question(first, "m").shown);
  show("the details of a question", question(first, "m", "?").shown);
  show("a no with a line for the agent", question(first, "m", "w").shown);
  parts.push("", "## The footer");
  for (const [name, state, waiting] of footers()) show(name, [footerText(state, waiting)[1]]);
  parts.push("", "## The menu `/sandbox`");
  for (const { name, screen } of MENU) {
    show(name, new MenuView(screen).lines().flatMap(({ text }) => wrapped(text, COLUMNS, "      ")));
  }
  for (const [title, texts] of TEXTS) {
    parts.push("", `## ${title}`);
    for (const [name, text] of texts) show(name, wrapped(text, COLUMNS, "  "));
  }
  return `${parts.join("\n")}\n`;
}

test("the page shows every screen", () => {
  const shown = page();
  if (process.env.UPDATE_REFERENCE !== undefined) writeFileSync(PAGE, shown);
  assert.ok(readFileSync(PAGE, "utf8") === shown, "docs/screens-pi.md is behind the extension: run this test with UPDATE_REFERENCE=1");
});

/** A question as the extension drew it on 21 November (commit 93470d9), with the number of lines before its choices. */
interface Earlier { name: string; shown: string[]; before: number }

const EARLIER = read<Earlier[]>("before");

/** Returns the number of words in lines, without marks and keys. A path or a host is one word, also one with spaces. */
function wordsIn(name: string, lines: readonly string[]): number {
  const all = lines.map((line) => line.replace(/^ [→ ] \[.*?\] +/, "")).join(" ").split(/\s+/);
  const marks = ["", "│", "+", "·", "→", "🔒", "Portcullis", "[→", "wider]", "(→", "wider)", "[s]", "[P]", "[A]", "[d]"];
  return all.filter((word) => !marks.includes(word)).length - (name.includes("long path") ? 4 : 0);
}

/** `docs/decisions/0025-before-and-after.md`: each kind of question before the rewrite, and today. */
function comparison(): string {
  const rows: string[] = [];
  const screens: string[] = [];
  for (const { name, ask } of QUESTIONS) {
    const now = question(ask);
    const then = EARLIER.find((earlier) => earlier.name === name);
    const counts = ({ shown, before }: { shown: string[]; before: number }, whole: boolean) =>
      wordsIn(name, whole ? shown : shown.slice(0, before));
    const lines = ({ shown }: { shown: string[] }) => shown.filter((line) => line !== "").length;
    const pair = (count: (drawn: { shown: string[]; before: number }) => number) =>
      `${then === undefined ? "–" : count(then)} → ${count(now)}`;
    rows.push(`| ${name} | ${pair((drawn) => counts(drawn, false))} | ${pair((drawn) => counts(drawn, true))} | ${pair(lines)} |`);
    const text = (drawn: readonly string[]) => ["```text", ...drawn.map((line) => line.trimEnd()), "```"];
    screens.push("", `## ${name}`, "", ...(then === undefined ? ["There was no such question before."] : ["Before:", "", ...text(then.shown)]),
      "", "Now:", "", ...text(now.shown));
  }
  return [
    "# Questions before and after the rewrite", "",
    "Each kind of question as the extension for pi drew it at 80 columns on 21 November 2026 (commit 93470d9), before the rewrite, and as it draws it now.",
    "The earlier screens come from the code of that commit, for the same requests; those about a repository and a directory are for a path in `/srv`, because there were no such questions about the home directory. [Record 25](0025-words-of-questions.md) has the reasons for the changes.", "",
    "A path or a host counts as one word. Keys, marks and the label (🔒, `Portcullis`) do not count, and neither do empty lines.",
    "`–`: there was no such question.", "",
    "Generated by a test of the extension.", "",
    "| question | words before the choices | words in all | lines in all |", "|---|---|---|---|", ...rows, ...screens, "",
  ].join("\n");
}

test("the record compares every question with the earlier one", () => {
  const shown = comparison();
  if (process.env.UPDATE_REFERENCE !== undefined) writeFileSync(COMPARISON, shown);
  assert.ok(readFileSync(COMPARISON, "utf8") === shown, "docs/decisions/0025-before-and-after.md is outdated: run this test with UPDATE_REFERENCE=1");
  const known = QUESTIONS.map(({ name }) => name);
  for (const { name } of EARLIER) assert.ok(known.includes(name), `no question is called ${name} any more`);
});

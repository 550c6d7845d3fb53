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

/** What the user reads in a line of its own, and what the model reads in place of a result. */
const TEXTS: readonly (readonly [title: string, texts: readonly (readonly [name: string, text: string])[]])[] = [
  ["Notices", [
    ["an answer for the session", "Until this session ends: reading ~/other/notes.txt · undo: /sandbox"],
    ["an answer for the project", "Saved: reading ~/other/notes.txt, in this project · undo: /sandbox"],
    ["nothing can run", messages.closedForUser("the host program was not found", true)],
    ["nothing can run, without a terminal", messages.closedForUser("the host program was not found", false)],
    ["the host has failed once", messages.restarted("the host was killed", true)],
    ["another extension has taken tools", messages.takenOver(new Map([["bash", "extension:other"], ["read", "extension:other"]]))],
    ["loaded twice", messages.TWICE],
    ["the flag in the wrong place", messages.FLAG_ATE_PROMPT],
    ["a refusal without an interface", messages.refusedLine("read ~/other/notes.txt: nobody could be asked [base.outside of base]")],
    ["the end of a run with refusals", messages.refusedSummary(3, 2, true)],
  ]],
  ["What the model reads", [
    ["a no", messages.refused({ ...OUTSIDE, reason: "it lies outside this project; you said no" })],
    ["a no with a line", messages.refused({ ...OUTSIDE, reason: "it lies outside this project; you said no, because: “use the copy in vendor”" })],
    ["nobody to ask", messages.refused({ ...OUTSIDE, reason: "it lies outside this project; nobody could be asked" })],
    ["a rule with advice", messages.refused({ policy: "git", rule: "git.push", reason: "pushing is not allowed here", hint: "Leave the push to the user." })],
    ["nothing can run", messages.closedForModel("the host program was not found")],
    ["an output that is kept back", messages.withheld({ policy: "secrets", rule: "secrets.output", reason: "it holds a key" })],
    ["arguments that broke off", messages.BROKEN_OFF],
    ["a tool of pi's own", messages.notOurs("bash")],
  ]],
];

test("every refusal names rule and remedy", () => {
  const denied = messages.refused({ ...OUTSIDE, reason: "it lies outside this project" });
  assert.match(denied, /\[base\.outside of base\]\. Do not work around it/);
  assert.match(messages.refusedSummary(1, 1, false), /portcullis audit tail --denied.*portcullis allow/);
  for (const isTerminal of [true, false]) assert.match(messages.closedForUser("x", isTerminal), /again|--no-sandbox/);
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

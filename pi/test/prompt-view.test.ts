import assert from "node:assert/strict";
import { test } from "node:test";
import { type Key, type Outcome, PromptView, QUIET_MS } from "../src/prompt-view.ts";
import { fitted, Scroll } from "../src/scroll.ts";
import type { AskOption, AskParams } from "../src/protocol.ts";
import { askOf } from "./support.ts";

const covers = ["reading /srv/a.txt", "reading everything below /srv"];

function option(key: string, label: string, width: number, more: Partial<AskOption> = {}): AskOption {
  return { key, effect: "allow", label, covers: covers[width]!, width, scope: "session", ...more };
}

/** Returns the options of a question with these project entries. */
function asked(...places: [key: string, label: string, target: string][]): AskParams {
  const wide = (key: string, label: string, more = {}) => [option(key, label, 0, more), option(key, label, 1, more)];
  return askOf(1, {
    title: "Allow to read this path?", subject: "/srv/a.txt", asker: "the agent", reason: "no rule allows it",
    options: [
      { key: "o", effect: "allow", label: "Allow once", width: 0, scope: "once" },
      ...wide("s", "Allow for this session only"),
      ...places.flatMap(([key, label, target]) => wide(key, label, { target })),
      option("d", "No, for this session", 0, { effect: "deny" }),
    ],
  });
}

const EXACT = asked(
  ["P", "Allow for this project", 'projects.json["/work/foo"]'], ["A", "Allow for all projects", "default.json"],
);
const PARENT = asked(
  ["P", "Allow for this project (parent: /work/foo)", 'projects.json["/work/foo"]'],
  ["N", "Allow for this project (new config: /work/foo/sub)", 'projects.json["/work/foo/sub"], over the parent\'s'],
  ["A", "Allow for all projects", "default.json"],
);

/** Returns a question that was drawn at the time 0. */
function shown(ask: AskParams): PromptView {
  const view = new PromptView(ask);
  view.drawn(0);
  return view;
}

/** Presses keys, each after the quiet time. */
function answer(ask: AskParams, ...keys: Key[]): Outcome {
  const view = shown(ask);
  let now = 0;
  let outcome: Outcome;
  for (const key of keys) {
    assert.equal(outcome, undefined, "answered before the last key");
    outcome = view.press(key, (now += 1_000));
  }
  return outcome;
}

const c = (character: string): Key => ({ character });
const label = (ask: AskParams, outcome: Outcome) =>
  typeof outcome === "number" ? `${ask.options[outcome]!.key}${ask.options[outcome]!.width}` : outcome;

test("nothing is permitted before all of a long subject was on the screen", () => {
  const lines = Array.from({ length: 50 }, (_, number) => `line ${number}`);
  const view = shown(EXACT);
  const draw = () => view.scroll.window(lines, 20);
  let now = 0;
  const press = (key: Key) => {
    const outcome = view.press(key, (now += 1_000));
    draw();
    return outcome;
  };
  draw();
  assert.equal(press(c("o")), undefined);
  assert.equal(press("enter"), undefined);
  assert.equal(press(c(" ")), undefined);
  assert.equal(press(c("o")), undefined);
  assert.equal(press("pageDown"), undefined);
  assert.deepEqual(draw().shown, lines.slice(30));
  press("pageUp");
  assert.deepEqual(draw().shown, lines.slice(10, 30));
  assert.equal(press(c("o")), 0);
  // At another width the lines are different ones; a refusal is possible before the text was seen.
  view.scroll.window(lines.slice(0, 40), 20);
  assert.equal(view.press(c("o"), (now += 1_000)), undefined);
  assert.equal(label(EXACT, view.press(c("d"), (now += 1_000))), "d0");
});

test("what scrolls gives way to what must be seen", () => {
  const pieces = [
    { scrolls: false, lines: ["title"] }, { scrolls: true, lines: Array.from({ length: 30 }, (_, n) => `${n}`) },
    { scrolls: false, lines: ["yes", "no"] },
  ];
  const scroll = new Scroll();
  const drawn = fitted(pieces, 12, scroll, (text) => [text]);
  assert.ok(drawn.length <= 12);
  assert.deepEqual([drawn[0], ...drawn.slice(-2)], ["title", "yes", "no"]);
  assert.equal(scroll.done, false);
  assert.equal(fitted(pieces, 33, scroll, (text) => [text]).length, 33);
  assert.equal(scroll.done, true);
});

test("the keys of the first seed", () => {
  const cases: [AskParams, Key[], string | undefined][] = [
    [EXACT, ["escape"], "refuse"],
    [EXACT, ["enter"], "refuse"],
    [EXACT, [c("s")], "s0"],
    [EXACT, [c("S")], undefined],
    [EXACT, [c("S"), "enter"], "s0"],
    [EXACT, [c("o")], "o0"],
    [EXACT, [c("P")], "P0"],
    [EXACT, [c("p")], undefined],
    [EXACT, [c("p"), "enter"], "P0"],
    [EXACT, [c("A")], "A0"],
    [EXACT, [c("a")], undefined],
    [EXACT, [c("a"), "enter"], "A0"],
    [EXACT, [c("N")], undefined],
    [EXACT, [c("N"), "enter"], "refuse"],
    [EXACT, [c("d")], "d0"],
    [EXACT, [c("y"), c("1"), "enter"], "refuse"],
    [PARENT, [c("P")], "P0"],
    [PARENT, [c("N")], "N0"],
    [PARENT, [c("n")], undefined],
    [PARENT, [c("n"), "enter"], "N0"],
    [PARENT, [c("n"), c("a"), "enter"], "A0"],
    [EXACT, ["down", "enter"], "o0"],
    [EXACT, ["down", "down", "up", "up", "up", "enter"], "refuse"],
    [EXACT, ["right", c("s")], "s1"],
    [EXACT, ["right", "right", "left", c("s")], "s0"],
    [EXACT, ["right", c("o")], "o0"],
    [EXACT, ["right", c("d")], "d0"],
    [PARENT, ["right", c("N")], "N1"],
  ];
  for (const [ask, keys, expected] of cases) {
    assert.equal(label(ask, answer(ask, ...keys)), expected, JSON.stringify(keys));
  }
});

test("what was pressed before a quiet moment answers nothing", () => {
  for (const key of ["enter", "escape", c("s"), c("P"), c("A")] as Key[]) {
    const view = shown(EXACT);
    let now = 0;
    for (let presses = 0; presses < 40; presses++) assert.equal(view.press(key, (now += QUIET_MS - 1)), undefined);
    assert.notEqual(view.press(key, now + QUIET_MS), undefined, "after it the key counts");
  }
});

test("a word that is typed on answers nothing", () => {
  for (const word of ["no", "yes", "so do it", "PAN"]) {
    const view = shown(EXACT);
    let now = 0;
    for (const character of word) {
      const outcome = view.press(c(character), (now += now === 0 ? 1_000 : 80));
      if (outcome !== undefined) assert.equal(character, word[0], "only a letter after a quiet moment counts");
    }
  }
  const view = shown(EXACT);
  assert.equal(view.press(c("n"), 1_000), undefined);
  assert.equal(view.press(c("o"), 1_080), undefined);
  assert.equal(view.press("enter", 1_160), undefined);
});

test("arrows that were meant for the question need no second quiet moment", () => {
  const view = shown(EXACT);
  assert.equal(view.press("down", 1_000), undefined);
  assert.equal(label(EXACT, view.press("enter", 1_050)), "o0");
});

test("what was pressed before the question was drawn answers nothing", () => {
  const view = new PromptView(EXACT);
  assert.equal(view.press(c("s"), 10_000), undefined);
  view.drawn(20_000);
  view.drawn(30_000);
  assert.equal(view.press(c("s"), 20_010), undefined);
  assert.notEqual(view.press(c("s"), 21_000), undefined);
});

test("the marked answer says what it covers", () => {
  const view = shown(EXACT);
  view.press("right", 1_000);
  for (let at = 0; at < 10; at++) view.press("down", 2_000 + at);
  assert.equal(view.lines(0)[3]!.text, "  covers reading /srv/a.txt   [← narrower]", "no is not widened");
});

test("the question is drawn as the first seed has it", () => {
  const view = shown(PARENT);
  assert.deepEqual(view.lines(2).map((line) => line.text), [
    "🔒 Allow to read this path?  (1 of 3)",
    "  │ /srv/a.txt",
    "  asked by the agent: no rule allows it (p, u)",
    "  covers reading /srv/a.txt   [→ wider]",
    "",
    " → [esc]  Abort",
    "   [o]    Allow once",
    "   [s]    Allow for this session only",
    '   [P]    Allow for this project (parent: /work/foo)  → projects.json["/work/foo"]',
    '   [N]    Allow for this project (new config: /work/foo/sub)  → projects.json["/work/foo/sub"], over the parent\'s',
    "   [A]    Allow for all projects  → default.json",
    "   [d]    No, for this session",
  ]);
  view.press("right", 1_000);
  assert.equal(view.lines(0)[3]!.text, "  covers reading everything below /srv   [← narrower]");
});

test("what the agent chose cannot move the cursor or reorder the text", () => {
  const view = shown(askOf(1, { subject: "/a\x1b[2J\u202eb", reason: "x\r\ny" }));
  const text = view.lines(0).map((line) => line.text).join("\n");
  assert.ok(!/[\x00-\x09\x0b-\x1f\u202e]/.test(text), text);
  assert.ok(text.includes("\\u{1b}[2J\\u{202e}b"), text);
});

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
    title: "The agent wants to read", subject: "/srv/a.txt", context: "Outside this project.", asker: "the agent", reason: "no rule allows it",
    options: [
      { key: "o", effect: "allow", label: "Once", width: 0, scope: "once" },
      ...wide("s", "For this session"),
      ...places.flatMap(([key, label, target]) => wide(key, label, { target })),
      option("d", "No, for this session", 0, { effect: "deny" }),
    ],
  });
}

const EXACT = asked(
  ["P", "Always in this project", 'projects.json["/work/foo"]'], ["A", "Always, in every project", "default.json"],
);
const PARENT = asked(
  ["P", "Always in this project (parent: /work/foo)", 'projects.json["/work/foo"]'],
  ["N", "Always in this project (new config: /work/foo/sub)", 'projects.json["/work/foo/sub"], over the parent\'s'],
  ["A", "Always, in every project", "default.json"],
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
  view.press(c("m"), (now += 1_000));
  assert.equal(label(EXACT, view.press(c("d"), (now += 1_000))), "d0");
});

test("what scrolls gives way to what must be seen", () => {
  const pieces = [
    { lines: ["title"] }, { scrolls: true, lines: Array.from({ length: 30 }, (_, n) => `${n}`) },
    { lines: ["yes"], row: 0 }, { lines: ["no"], row: 1 },
  ];
  const scroll = new Scroll();
  const { lines, rows } = fitted(pieces, 12, scroll, (text) => [text]);
  assert.ok(lines.length <= 12);
  assert.deepEqual([lines[0], ...lines.slice(-2)], ["title", "yes", "no"]);
  assert.deepEqual([...rows], [0, 1]);
  assert.equal(scroll.done, false);
  assert.equal(fitted(pieces, 33, scroll, (text) => [text]).lines.length, 33);
  assert.equal(scroll.done, true);
});

test("a small terminal shows the marked choice, and no key hits another that is not shown", () => {
  for (const height of [5, 6, 8, 20]) {
    const view = shown(EXACT);
    let now = 0;
    let rows = new Set<number>();
    const draw = () => {
      const pieces = view.lines(0, 80).map(({ text, tone, row, spare }) =>
        ({ lines: [text], scrolls: tone === "subject", isMarked: tone === "marked", ...(row === undefined ? {} : { row }), ...(spare ? { spare } : {}) }));
      const fit = fitted(pieces, height, view.scroll, (text) => [text]);
      rows = fit.rows;
      view.fitted(rows);
      assert.ok(fit.lines.length <= height, `${height}: ${fit.lines.join("\n")}`);
      assert.ok(fit.lines.some((line) => line.startsWith(" → ")), `the mark at ${height}: ${fit.lines.join("\n")}`);
      return fit.lines.join("\n");
    };
    for (let step = 0; step < 6; step++) {
      const text = draw();
      for (const [index, key] of [..."osPA"].entries()) {
        const probe = shown(EXACT);
        for (let down = 0; down < step; down++) probe.press("down", 1_000 + down);
        probe.fitted(rows);
        assert.equal(probe.press(c(key), 9_000) !== undefined, rows.has(index + 1), `${key} at ${height}, ${step}: ${text}`);
      }
      view.press("down", (now += 1_000));
    }
  }
});

test("no with a line for the agent", () => {
  const view = shown(EXACT);
  let now = 0;
  for (const key of [c("m"), c("w")]) assert.equal(view.press(key, (now += 1_000)), undefined);
  for (const character of ["use ", "x", "\b", "the copy", "o"]) assert.equal(view.press(c(character), (now += 10)), undefined);
  assert.ok(view.lines(0).some((line) => line.text === " No, because: use the copyo▏"));
  assert.equal(view.press("escape", (now += 10)), undefined, "back to the choices");
  assert.equal(view.press("enter", (now += 10)), undefined, "which need a quiet moment");
  view.press("enter", (now += 1_000));
  assert.deepEqual(view.press("enter", (now += 10)), { because: "use the copyo" });
});

test("the details show what the question leaves out, and answer nothing", () => {
  const view = shown(EXACT);
  let now = 0;
  for (const key of [c("m"), c("?")]) view.press(key, (now += 1_000));
  const text = view.lines(0).map((line) => line.text).join("\n");
  for (const part of ["Rule u of policy p", "no rule allows it", "reading everything below /srv", "default.json"]) {
    assert.ok(text.includes(part), `${part}: ${text}`);
  }
  for (const key of [c("o"), c("s"), c("P"), c("d"), "up", "right"] as Key[]) assert.equal(view.press(key, (now += 1_000)), undefined);
  assert.equal(view.press("escape", (now += 1_000)), undefined);
  assert.equal(view.press(c("o"), (now += 1_000)), 0);
});

test("each key gives the answer that it names", () => {
  const cases: [AskParams, Key[], string | undefined][] = [
    [EXACT, ["escape"], "refuse"],
    [EXACT, ["enter"], "refuse"],
    [EXACT, [c("s")], "s0"],
    [EXACT, [c("S")], "s0"],
    [EXACT, [c("o")], "o0"],
    [EXACT, [c("P")], "P0"],
    [EXACT, [c("p")], undefined],
    [EXACT, [c("p"), "enter"], "P0"],
    [EXACT, [c("A")], "A0"],
    [EXACT, [c("a")], undefined],
    [EXACT, [c("a"), "enter"], "A0"],
    [EXACT, [c("N")], undefined],
    [EXACT, [c("N"), "enter"], "refuse"],
    [EXACT, [c("d")], undefined],
    [EXACT, [c("d"), "enter"], "refuse"],
    [EXACT, [c("m"), c("d")], "d0"],
    [EXACT, [c("M"), c("D")], "d0"],
    [EXACT, ["down", "down", "down", "down", "down", "enter", "enter"], "d0"],
    [EXACT, [c("y"), c("1"), "enter"], "refuse"],
    [PARENT, [c("P")], "P0"],
    [PARENT, [c("N")], undefined],
    [PARENT, [c("m"), c("N")], "N0"],
    [PARENT, [c("m"), c("n")], undefined],
    [PARENT, [c("m"), c("n"), "enter"], "N0"],
    [PARENT, [c("m"), c("n"), c("a"), "enter"], "A0"],
    [EXACT, ["down", "enter"], "o0"],
    [EXACT, ["down", "down", "up", "up", "up", "enter"], "refuse"],
    [EXACT, ["right", c("s")], "s1"],
    [EXACT, ["right", "right", "left", c("s")], "s0"],
    [EXACT, ["right", c("o")], "o0"],
    [EXACT, ["right", c("m"), c("d")], "d0"],
    [PARENT, ["right", c("m"), c("N")], "N1"],
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
  view.press(c("m"), 2_000);
  view.press(c("D"), 3_000);
  assert.equal(view.lines(0).at(-1)!.text, "  (← narrower) [d] covers reading /srv/a.txt", "no is not widened");
});

test("the question is drawn as a person reads it", () => {
  const view = shown(PARENT);
  assert.deepEqual(view.lines(2).map((line) => line.text), [
    "Portcullis   The agent wants to read /srv/a.txt  (1 of 3)",
    "  Outside this project.",
    "",
    " → [esc]  No",
    "   [o]    Once",
    "   [s]    For this session",
    "   [P]    Always in this project (parent: /work/foo)",
    "   [A]    Always, in every project",
    "   [m]    More: new project config · no for this session · no, because … · details",
    "  (→ wider) [s] [P] [A] cover reading /srv/a.txt",
  ]);
  view.press("right", 1_000);
  assert.equal(view.lines(0).at(-1)!.text, "  (← narrower) [s] [P] [A] cover reading everything below /srv");
  view.press(c("p"), 2_000);
  assert.equal(view.lines(0).at(-1)!.text, '  (← narrower) [P] covers reading everything below /srv');
  const narrow = view.lines(0, 40).slice(0, 2).map((line) => line.text);
  assert.deepEqual(narrow, ["Portcullis   The agent wants to read:", "  │ /srv/a.txt"]);
});

test("no text of the agent's passes for words of ours", () => {
  const path = "/srv/a (safe, inside this project)";
  const lines = shown(askOf(1, { title: "The agent wants to read", subject: path })).lines(0);
  assert.deepEqual(lines.slice(0, 2).map((line) => line.text), ["Portcullis   The agent wants to read:", `  │ ${path}`]);
});

test("what deserves a second look is in another colour", () => {
  const tones = (sensitive: boolean) => shown(askOf(1, { sensitive, preview: "+ a" })).lines(0).slice(0, 3).map((line) => line.tone);
  assert.deepEqual(tones(true), ["alarm", "alarm", "faint"]);
  assert.deepEqual(tones(false), ["title", "faint", "faint"]);
});

test("what the agent chose cannot move the cursor or reorder the text", () => {
  const view = shown(askOf(1, { subject: "/a\x1b[2J\u202eb", reason: "x\r\ny" }));
  const text = view.lines(0).map((line) => line.text).join("\n");
  assert.ok(!/[\x00-\x09\x0b-\x1f\u202e]/.test(text), text);
  assert.ok(text.includes("\\u{1b}[2J\\u{202e}b"), text);
});

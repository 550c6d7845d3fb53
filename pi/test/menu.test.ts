import assert from "node:assert/strict";
import { test } from "node:test";
import { inDialogs, walk } from "../src/menu.ts";
import { MenuView } from "../src/menu-view.ts";
import type { MenuEvent, MenuScreen } from "../src/protocol.ts";

const screen = (more: Partial<MenuScreen> = {}): MenuScreen => ({
  title: "T", lines: [{ text: "l", tone: "plain" }], items: [{ label: "one" }, { label: "two", value: "v" }],
  selected: 0, keys: [{ key: "s", label: "save" }, { key: "d", label: "delete" }], ...more,
});

test("keys on a screen become what happened", () => {
  const view = new MenuView(screen());
  assert.equal(view.press("down"), undefined);
  assert.deepEqual(view.press("enter"), { kind: "choose", index: 1 });
  assert.deepEqual(view.press({ character: "d" }), { kind: "key", key: "d", index: 1 });
  assert.equal(view.press({ character: "x" }), undefined);
  view.press("down");
  assert.deepEqual(view.press("enter"), { kind: "choose", index: 0 });
  assert.deepEqual(view.press("escape"), { kind: "back" });
});

test("a line of text is typed, mended and taken", () => {
  const view = new MenuView(screen({ input: { label: "path", value: "/a" } }));
  for (const character of ["b", "x", "\b", "é"]) assert.equal(view.press({ character }), undefined);
  assert.ok(view.lines().some((line) => line.text.includes("path: /abé")));
  assert.deepEqual(view.press("enter"), { kind: "text", text: "/abé" });
});

test("a long list scrolls with the mark", () => {
  const items = Array.from({ length: 60 }, (_, index) => ({ label: `item-${index}` }));
  const view = new MenuView(screen({ items }));
  for (let presses = 0; presses < 59; presses++) view.press("down");
  const text = view.lines().map((line) => line.text).join("\n");
  assert.ok(text.includes("→ item-59") && text.includes("60 of 60") && !text.includes("item-1\n"), text);
});

test("a list is filtered by typing, and the item keeps its place", () => {
  const items = ["alpha", "beta", "gamma"].map((label) => ({ label }));
  const view = new MenuView(screen({ items }));
  for (const character of ["/", "a", "m"]) assert.equal(view.press({ character }), undefined);
  const text = () => view.lines().map((line) => line.text).join("\n");
  assert.ok(text().includes("→ gamma") && !text().includes("alpha"), text());
  assert.equal(view.press("enter"), undefined, "it ends the typing");
  assert.deepEqual(view.press({ character: "d" }), { kind: "key", key: "d", index: 2 });
  const next = new MenuView(screen({ items, selected: 2 }), view);
  assert.ok(next.lines().some((line) => line.text === " / am"), "the same list keeps its filter");
  assert.equal(view.press("escape"), undefined, "it takes the filter away");
  assert.ok(text().includes("→ gamma") && text().includes("alpha"), text());
  assert.deepEqual(view.press("escape"), { kind: "back" });
  view.press({ character: "/" });
  view.press({ character: "x" });
  assert.equal(view.press("enter"), undefined);
  assert.equal(view.press({ character: "d" }), undefined, "no item, no key");
});

test("without screens of its own pi's lists and lines do", async () => {
  const seen: string[][] = [];
  const picks: (string | undefined)[] = ["2. two: v", "[s] save", "[d] delete", "1. one", undefined];
  const show = inDialogs({
    select: async (_title, options) => { seen.push(options); return picks.shift(); },
    input: async () => "typed",
  });
  assert.deepEqual(await show(screen()), { kind: "choose", index: 1 });
  assert.deepEqual(await show(screen()), { kind: "key", key: "s", index: 0 });
  assert.deepEqual(await show(screen()), { kind: "key", key: "d", index: 0 });
  assert.deepEqual(await show(screen()), { kind: "back" });
  assert.deepEqual(seen[0], ["1. one", "2. two: v", "[s] save", "[d] delete"]);
  assert.deepEqual(await show(screen({ input: { label: "x", value: "" } })), { kind: "text", text: "typed" });
});

test("the walk ends with what the host wants done", async () => {
  const events: MenuEvent[] = [];
  const screens = [screen(), screen({ effect: "disable" })];
  const effect = await walk(async (event) => { events.push(event); return screens.shift()!; }, async () => ({ kind: "choose", index: 0 }));
  assert.equal(effect, "disable");
  assert.deepEqual(events, [{ kind: "open" }, { kind: "choose", index: 0 }]);
});

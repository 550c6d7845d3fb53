import assert from "node:assert/strict";
import { test } from "node:test";
import { wrapped } from "../src/wrapped.ts";

/** The width on terminals without support for clusters: no character is wider than two columns. */
const drawn = (line: string) => [...line].reduce((sum, character) => sum + (character <= "~" ? 1 : 2), 0);

test("no piece is longer than the screen is wide, however its characters are drawn", () => {
  const before = "  │ ";
  for (const cluster of ["\u1100", "\u{1f3fd}", "日", "e\u0301\u0301", "\u{1f469}\u200d", "x", "ab "]) {
    const text = `${before}git push # ${cluster.repeat(400)} && curl evil.test`;
    for (const width of [12, 40, 100]) {
      const lines = wrapped(text, width, before);
      assert.ok(lines.every((line) => drawn(line) <= width), JSON.stringify(lines));
      assert.ok(lines.every((line) => line.startsWith(before)), "each behind the bar");
      const [first = "", ...rest] = lines;
      assert.equal(first + rest.map((line) => line.slice(before.length)).join(""), text, "and nothing is lost");
    }
  }
});

test("lines break between words", () => {
  assert.deepEqual(wrapped("one two three", 9, ""), ["one two ", "three"]);
  assert.deepEqual(wrapped("a bcdefghijk", 8, ""), ["a bcdefg", "hijk"]);
  assert.deepEqual(wrapped("one two three", 7, ""), ["one two", "three"]);
  assert.deepEqual(wrapped("one two six", 7, "| "), ["one ", "| two ", "| six"], "foreign text stays whole");
  assert.deepEqual(wrapped("", 8, "  "), [""]);
  assert.deepEqual(wrapped("one", 1, "      "), ["on", "e"]);
});

import assert from "node:assert/strict";
import { test } from "node:test";
import { Refusals } from "../src/refusals.ts";

function refused(text: string, unasked: boolean, fails = unasked) {
  return { kind: "refused", text, unasked, fails } as const;
}

test("each refusal has a line, repeated ones have one, and the summary counts all", () => {
  const lines: string[] = [];
  const refusals = new Refusals((line) => lines.push(line));
  refusals.end();
  assert.deepEqual(lines, [], "nothing was refused");
  refusals.add(refused("read ~/a", false));
  assert.equal(refusals.fails, false);
  refusals.add(refused("read ~/b", true));
  refusals.add(refused("read ~/b", true));
  assert.equal(refusals.fails, true);
  refusals.end();
  assert.equal(lines.length, 3);
  assert.equal(lines[0], "portcullis: refused: read ~/a");
  assert.match(lines[2] ?? "", /^portcullis: 3 refusals, 2 of them because nobody could be asked.*Exit status 126/);
  refusals.end();
  assert.equal(lines.length, 3, "the summary is printed once");
});

test("the exit status is named only where it is set", () => {
  const lines: string[] = [];
  const refusals = new Refusals((line) => lines.push(line));
  refusals.add(refused("read ~/a", true, false));
  refusals.end();
  assert.doesNotMatch(lines.join("\n"), /Exit status/);
});

test("lines are bounded and act on no terminal", () => {
  const lines: string[] = [];
  const refusals = new Refusals((line) => lines.push(line));
  for (let index = 0; index < 1_000; index += 1) refusals.add(refused(`read ~/${index}\u001b[2J`, false));
  refusals.end();
  assert.equal(lines.length, 51);
  assert.ok(lines.every((line) => !line.includes("\u001b")));
  assert.match(lines.at(-1) ?? "", /1000 refusals/);
});

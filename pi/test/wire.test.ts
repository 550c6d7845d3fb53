import assert from "node:assert/strict";
import { test } from "node:test";
import { frameSplitter, lineSplitter } from "../src/wire.ts";

/** Checks that every split of the bytes into two or three chunks gives the same parts. */
function everyCut(bytes: Buffer, split: (take: (part: string) => void) => (chunk: Buffer) => void, expected: string[]): void {
  for (let first = 0; first <= bytes.length; first++) {
    for (let second = first; second <= bytes.length; second++) {
      const parts: string[] = [];
      const take = split((part) => parts.push(part));
      for (const chunk of [bytes.subarray(0, first), bytes.subarray(first, second), bytes.subarray(second)]) take(chunk);
      assert.deepEqual(parts, expected, `cut at ${first} and ${second}`);
    }
  }
}

function frame(stream: number, payload: string): Buffer {
  const head = Buffer.alloc(8);
  head.writeUInt32LE(stream, 0);
  head.writeUInt32LE(Buffer.byteLength(payload), 4);
  return Buffer.concat([head, Buffer.from(payload)]);
}

test("only a newline ends a line", () => {
  everyCut(Buffer.from("a\u2028ü\n\nb\rc\nrest"), lineSplitter, ["a\u2028ü", "", "b\rc"]);
});

test("frames are put together from any pieces", () => {
  const bytes = Buffer.concat([frame(1, "hi"), frame(4_000_000_000, ""), frame(2, "x")]);
  everyCut(bytes, (take) => frameSplitter((stream, payload) => take(`${stream}:${payload}`)), ["1:hi", "4000000000:", "2:x"]);
});

test("a frame or a line without bounds is an error", () => {
  const head = Buffer.alloc(8, 255);
  assert.throws(() => frameSplitter(() => {})(head), /too long/);
  const take = lineSplitter(() => {});
  const chunk = Buffer.alloc(16 * 1024 * 1024, 120);
  assert.throws(() => { for (let i = 0; i < 5; i++) take(chunk); }, /too long/);
});

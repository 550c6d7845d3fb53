import assert from "node:assert/strict";
import { test } from "node:test";
import { encode } from "../src/encode.ts";

test("half characters are replaced in what the host uses and refused in what it judges", () => {
  assert.equal(encode({ a: ["x\ud800y", "🔒"] }, "replace"), '{"jsonrpc":"2.0","a":["x\ufffdy","🔒"]}');
  assert.throws(() => encode({ a: { b: "\udc00" } }, "refuse"), /half a character/);
  for (const how of ["replace", "refuse"] as const) {
    assert.throws(() => encode({ a: { "\ud800": 1, "\ud801": 2 } }, how), /half a character/);
  }
});

test("a line is one line, and means the same", () => {
  const message = { id: 1, params: { text: "a\nb\u2028\\ud800\u0000", none: undefined, list: [1, null, true] } };
  const line = encode(message, "refuse");
  assert.ok(!line.includes("\n"));
  assert.deepEqual(JSON.parse(line), { jsonrpc: "2.0", id: 1, params: { text: "a\nb\u2028\\ud800\u0000", list: [1, null, true] } });
});

test("a key named like a property of every object is an ordinary key", () => {
  const message = JSON.parse('{"params":{"__proto__":{"a":1},"constructor":2}}') as object;
  assert.equal(encode(message, "refuse"), '{"jsonrpc":"2.0","params":{"__proto__":{"a":1},"constructor":2}}');
});

test("what the host would refuse is refused here", () => {
  let nested: unknown = 1;
  for (let depth = 0; depth < 70; depth++) nested = [nested];
  assert.throws(() => encode({ nested }, "refuse"), /nest deeper/);
  assert.throws(() => encode({ a: "x".repeat(17 * 1024 * 1024) }, "replace"), /at once/);
  assert.throws(() => encode({ a: "ü".repeat(9 * 1024 * 1024) }, "replace"), /at once/);
});

test("numbers that JSON does not hold are refused", () => {
  for (const text of ["1e999", "-1e999", "-0", "-0.0"]) {
    const message = JSON.parse(`{"params":{"list":[${text}]}}`) as object;
    // The control: the judged value would differ from the one that is run.
    assert.notDeepEqual(JSON.parse(JSON.stringify(message)), message);
    for (const how of ["replace", "refuse"] as const) assert.throws(() => encode(message, how), /is not accepted/);
  }
  assert.equal(encode({ a: [0, 1.5, -1e300] }, "refuse"), '{"jsonrpc":"2.0","a":[0,1.5,-1e+300]}');
});

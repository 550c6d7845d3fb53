import assert from "node:assert/strict";
import { test } from "node:test";
import { replace } from "../src/gate.ts";

test("a rewritten input holds its keys and nothing else, whatever they are called", () => {
  const rewritten = JSON.parse('{"__proto__":{"command":"evil"},"a":1}') as Record<string, unknown>;
  const assigned = Object.assign({ command: "old" }, rewritten);
  assert.notEqual(Object.getPrototypeOf(assigned), Object.prototype, "the control");
  const input: Record<string, unknown> = { command: "old" };
  replace(input, rewritten);
  assert.equal(Object.getPrototypeOf(input), Object.prototype);
  assert.equal(input.command, undefined);
  assert.equal(JSON.stringify(input), JSON.stringify(rewritten));
});

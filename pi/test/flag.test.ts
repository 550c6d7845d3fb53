import assert from "node:assert/strict";
import { test } from "node:test";
import { isOnCommandLine, readSwitch } from "../src/flag.ts";

/** [command line, value of pi's getFlag, off, ate the prompt] */
const cases: [string, unknown, boolean, boolean][] = [
  ["-p go", false, false, false],
  ["-p go", undefined, false, false],
  ["-p go --no-sandbox", true, true, false],
  ["--no-sandbox -p go", true, true, false],
  ["--no-sandbox @file", true, true, false],
  ["--no-sandbox=true go", true, true, false],
  ["--no-sandbox go", true, true, true],
  // pi makes every value true.
  ["--no-sandbox=false go", true, false, false],
  ["--no-sandbox=0 --no-sandbox", true, false, false],
  // The command line alone does not turn the sandbox off.
  ["go --no-sandbox", false, false, false],
  ["go --no-sandbox", "yes", false, false],
  ["-- --no-sandbox", false, false, false],
];

for (const [line, flag, off, atePrompt] of cases) {
  test(`pi ${line} (getFlag: ${flag})`, () => assert.deepEqual(readSwitch(flag, line.split(" ")), { off, atePrompt }));
}

test("before pi has spoken, only the command line counts", () => {
  assert.equal(isOnCommandLine(["go", "--no-sandbox"]), true);
  for (const line of ["go", "--no-sandbox=false", "-- --no-sandbox", "--no-sandboxes"]) {
    assert.equal(isOnCommandLine(line.split(" ")), false, line);
  }
});

test("a sub-agent stays in the sandbox, whatever stands on its command line", () => {
  assert.equal(readSwitch(true, ["go", "--no-sandbox"]).off, true);
  assert.equal(readSwitch(true, ["go", "--no-sandbox"], true).off, false);
});

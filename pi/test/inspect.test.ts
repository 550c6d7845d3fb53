import assert from "node:assert/strict";
import { tmpdir } from "node:os";
import { test } from "node:test";
import { fullOutputs } from "../src/inspect.ts";

test("files of whole outputs are found in the directory for temporary files", () => {
  const name = "pi-bash-0123456789abcdef.log";
  const text = `[Full output: ${tmpdir()}/${name}]\n/elsewhere/${name} ${tmpdir()}/x/${name} ${tmpdir()}/pi-x.log`;
  assert.deepEqual(fullOutputs(text), [`${tmpdir()}/${name}`]);
});

test("a long text costs no more than its length", () => {
  const start = process.cpuUsage();
  for (const piece of ["/", "/pi-", "/pi-bash-", "a/"]) fullOutputs(piece.repeat(2_000_000 / piece.length));
  const spent = process.cpuUsage(start).user / 1e6;
  assert.ok(spent < 20, `${spent} s, where squares would take hours`);
});

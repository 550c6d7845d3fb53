import assert from "node:assert/strict";
import { tmpdir } from "node:os";
import { test } from "node:test";
import { fullOutputs, inspectToolResult } from "../src/inspect.ts";

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

test("a result that names many files is not waited for long, and the last are those that count", async () => {
  const named: string[] = [];
  const host = {
    call: async (method: string, params: { path?: string }) => {
      if (method === "file/output") named.push(params.path!);
      return { verdict: "pass" };
    },
  };
  const file = (number: number) => `${tmpdir()}/pi-bash-${number.toString(16).padStart(16, "0")}.log`;
  const text = Array.from({ length: 5_000 }, (_, number) => file(number)).join("\n");
  const event = { toolCallId: "c", toolName: "bash", input: {}, isError: false, content: [{ type: "text", text }] };
  const session = { host: () => host };
  await inspectToolResult({ getAllTools: () => [] }, session as never, event as never, { signal: undefined });
  assert.deepEqual(named, [4_992, 4_993, 4_994, 4_995, 4_996, 4_997, 4_998, 4_999].map(file));
});

import assert from "node:assert/strict";
import { tmpdir } from "node:os";
import { test } from "node:test";
import { fullOutputs, inspectToolResult, pasted, UserOutputs } from "../src/inspect.ts";

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

test("what the user has pasted is named once, and nothing that others say", async () => {
  const named: string[] = [];
  const session = { host: () => ({ call: async (_method: string, { path }: { path: string }) => void named.push(path) }) };
  const image = (digit: string) => `${tmpdir()}/pi-clipboard-${digit.repeat(8)}-1234-4abc-8def-${digit.repeat(12)}.png`;
  assert.deepEqual(pasted(`${image("a")} ${image("b").replace(tmpdir(), "/elsewhere")} ${tmpdir()}/pi-clipboard-x.png`), [image("a")]);
  const outputs = new UserOutputs();
  const messages = [
    { role: "user", content: `look at ${image("1")}` },
    { role: "user", content: [{ type: "text", text: image("2") }, { type: "image", data: image("3") }] },
    { role: "user", content: [null, 7, { text: 8 }] },
    { role: "assistant", content: [{ type: "text", text: image("4") }] },
    { role: "toolResult", content: [{ type: "text", text: image("5") }] },
  ];
  await outputs.name(session as never, messages);
  await outputs.name(session as never, messages);
  assert.deepEqual(named, [image("1"), image("2")]);
});

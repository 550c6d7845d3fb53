import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { test } from "node:test";
import { HostClient, HostError } from "../src/client.ts";
import { COMMAND, FAKE_HOST, HELLO, startHost, until } from "./support.ts";

test("output of commands that run at once arrives whole and apart", async () => {
  const host = startHost();
  await host.call("hello", HELLO);
  const run = async (letter: string) => {
    const parts: Buffer[] = [];
    const script = `head -c 300000 /dev/zero | tr '\\0' ${letter}; exit 3`;
    const ended = await host.exec({ ...COMMAND, callId: letter, script }, (data) => parts.push(data));
    assert.equal(ended.exitCode, 3);
    assert.equal(Buffer.concat(parts).toString(), letter.repeat(300_000));
  };
  await Promise.all(["a", "b", "c"].map(run));
  await host.stop();
});

test("output that comes after the reply is waited for", async () => {
  const host = startHost();
  await host.call("hello", HELLO);
  let output = "";
  await host.exec({ ...COMMAND, script: "echo late-me" }, (data) => { output += data; });
  assert.equal(output, "late-me\n");
  await host.stop();
});

test("a process lives until the output of its command has arrived", () => {
  // In a process of its own: the test runner keeps this one alive. Status 13 means that Node had nothing to wait for.
  const script = `import { HostClient } from ${JSON.stringify(new URL("../src/client.ts", import.meta.url).href)};
    const host = new HostClient(${JSON.stringify(FAKE_HOST)}, { ask() {}, withdraw() {}, event() {}, gone() {} });
    await host.exec(${JSON.stringify({ ...COMMAND, script: "echo late-me" })}, (data) => process.stdout.write(data));
    process.stdout.write("ended");
    await host.stop();`;
  const ended = spawnSync(process.execPath, ["--input-type=module", "--eval", script], { encoding: "utf8" });
  assert.deepEqual([ended.status, ended.stdout], [0, "late-me\nended"], ended.stderr);
});

test("an abort reaches the command, and the reply says how it ended", async () => {
  const host = startHost();
  await host.call("hello", HELLO);
  const abort = new AbortController();
  const ended = host.exec({ ...COMMAND, script: "echo up; sleep 60" }, () => abort.abort(), abort.signal);
  assert.equal((await ended).signal, 9);
  await host.stop();
});

test("an abort before the call sends nothing", async () => {
  const host = startHost();
  await host.call("hello", HELLO);
  await assert.rejects(host.call("status", {}, AbortSignal.abort()), /aborted/);
  await host.stop();
});

test("errors carry code and data", async () => {
  const host = startHost();
  await host.call("hello", HELLO);
  const open = host.call("file/open", { callId: "c", path: "/secret", intent: { kind: "read" } });
  await assert.rejects(open, (error: HostError) => error.code === -32010 && (error.data as { kind: string }).kind === "denied");
  await host.stop();
});

for (const [how, expected] of [["die", /status 7: last words/], ["garbage", /not valid JSON/]] as const) {
  test(`a host that does "${how}" is gone for good`, async () => {
    let gone = "";
    const host = startHost({ gone: (why) => { gone = why; } }, how);
    await assert.rejects(host.call("hello", HELLO), expected);
    assert.match(gone, expected);
    await assert.rejects(host.call("status", {}), expected);
    await host.stop();
  });
}

test("a host that dies during a command fails it and everything after it", async () => {
  let gone = 0;
  const host = startHost({ gone: () => { gone++; } });
  await host.call("hello", HELLO);
  const other = host.exec({ ...COMMAND, callId: "c2", script: "sleep 60" }, () => {});
  await assert.rejects(host.exec({ ...COMMAND, script: "die-now" }, () => {}), /status 9/);
  await assert.rejects(other, /status 9/);
  assert.equal(gone, 1);
});

test("a program that cannot be started is gone", async () => {
  const host = new HostClient("/nonexistent/portcullis", { ask() {}, withdraw() {}, event() {}, gone() {} });
  await assert.rejects(host.call("hello", HELLO), /ENOENT/);
  await host.stop();
});

test("stop ends the host once, however often it is called, and is no death", async () => {
  let gone = 0;
  const host = startHost({ gone: () => { gone++; } });
  await host.call("hello", HELLO);
  await Promise.all([host.stop(), host.stop()]);
  await host.stop();
  assert.equal(gone, 0);
  await assert.rejects(host.call("status", {}));
});

test("a question comes with the signal of its call and its answer goes back", async () => {
  let signalSeen: AbortSignal | undefined;
  const abort = new AbortController();
  const host = startHost({ ask: (_ask, signal, reply) => { signalSeen = signal; reply({ choice: 0 }); } });
  await host.call("hello", HELLO);
  let output = "";
  await host.exec({ ...COMMAND, script: "echo ask-me" }, (data) => { output += data; }, abort.signal);
  assert.equal(signalSeen, abort.signal);
  assert.equal(output, "ask-me\n");
  await host.stop();
});

test("an abort withdraws the question of the call", async () => {
  const withdrawn: number[] = [];
  let asked = 0;
  const abort = new AbortController();
  const host = startHost({ ask: (ask) => { asked = ask.askId; }, withdraw: ({ askId }) => withdrawn.push(askId) });
  await host.call("hello", HELLO);
  const call = host.exec({ ...COMMAND, script: "echo ask-me" }, () => {}, abort.signal);
  await until(() => asked !== 0);
  abort.abort();
  await assert.rejects(call, /cancelled/);
  assert.deepEqual(withdrawn, [asked]);
  await host.stop();
});

test("what cannot be sent fails its own call and nothing else", async () => {
  const host = startHost();
  await host.call("hello", HELLO);
  const write = { callId: "c", path: "/x", content: "x".repeat(17 * 1024 * 1024) };
  await assert.rejects(host.call("file/write", write), /at once/);
  await assert.rejects(host.call("decide", { callId: "c", tool: "t", provider: "p", input: { a: "\ud800" } }), /half/);
  let output = "";
  await host.exec({ ...COMMAND, script: "echo '\ud800'" }, (data) => { output += data; });
  assert.equal(output, "\ufffd\n");
  await host.stop();
});

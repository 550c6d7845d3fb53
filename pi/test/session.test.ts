import assert from "node:assert/strict";
import { mkdtempSync, readFileSync, realpathSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, beforeEach, test } from "node:test";
import { announce, inquire } from "../src/duplicate-load.ts";
import { gateToolCall, gateUserCommand } from "../src/gate.ts";
import { inspectToolResult, UserOutputs } from "../src/inspect.ts";
import { takenOver } from "../src/messages.ts";
import { SelectDialogs } from "../src/prompt.ts";
import { providerOf } from "../src/provider.ts";
import { Relay } from "../src/relay.ts";
import { Session } from "../src/session.ts";
import { type Makers, OwnTools } from "../src/tools.ts";
import { FAKE_HOST, until } from "./support.ts";

const directory = realpathSync(mkdtempSync(join(tmpdir(), "session-")));
after(() => rmSync(directory, { recursive: true }));
const at = (name: string) => join(directory, name);

// A fake pi with only the parts that the extension uses.
type Any = any;
let told: string[] = [];
let footer: string[] = [];
let failedRuns = 0;
beforeEach(() => { told = []; footer = []; failedRuns = 0; });

const context = (more: object = {}): Any => ({
  cwd: directory, hasUI: true,
  ui: {
    notify: (text: string) => told.push(text), setStatus: (_key: string, text: string) => footer.push(text),
    theme: { fg: (_color: string, text: string) => text }, select: async () => "1. Once",
  },
  sessionManager: { getSessionFile: () => undefined, getSessionId: () => "s" }, ...more,
});

function session(findHost: () => string = () => FAKE_HOST): Session {
  return new Session({ extensionVersion: "0", piVersion: "0", agentDir: "/", argv: [], findHost, mendingCommand: () => "mend it", terminalDialogs: (context) => new SelectDialogs(context.ui), guardChildren: () => {}, whyKept: () => undefined, failRun: () => { failedRuns += 1; } });
}

async function started(more: object = {}): Promise<Session> {
  const it = session();
  await it.start(context(more));
  return it;
}

/** Tools that use their operations like pi's. */
const local: string[] = [];
const tool = (name: string, run: (ops: Any, params: Any, signal: Any) => Promise<string>) =>
  (cwd: string, options?: { operations?: object }): Any => ({
    name, parameters: { type: "object", made: name },
    execute: async (_id: string, params: Any, signal: Any) => {
      if (options?.operations === undefined) { local.push(name); return "local"; }
      return run(options.operations, { ...params, path: join(cwd, params.path ?? "") }, signal);
    },
  });
const makers: Makers = {
  bash: tool("bash", async (ops, { command, timeout }, signal) => {
    let output = "";
    const { exitCode } = await ops.exec(command, directory, { onData: (data: Buffer) => { output += data; }, signal, timeout });
    return `${output}[${exitCode}]`;
  }),
  read: tool("read", async (ops, { path }) => {
    await ops.access(path);
    return `${await ops.detectImageMimeType(path)} ${await ops.readFile(path)}`;
  }),
  write: tool("write", async (ops, { path, content }) => { await ops.mkdir(directory); await ops.writeFile(path, content); return "wrote"; }),
  edit: tool("edit", async (ops, { path, edits }) => {
    await ops.access(path);
    await ops.writeFile(path, String(await ops.readFile(path)).replace(edits[0].oldText, edits[0].newText));
    return "edited";
  }),
  ls: tool("ls", async (ops, { path }) => {
    if (!await ops.exists(path)) throw new Error("not found");
    if (!(await ops.stat(path)).isDirectory()) throw new Error("no directory");
    const names = [];
    for (const name of await ops.readdir(path)) {
      try { names.push((await ops.stat(join(path, name))).isDirectory() ? `${name}/` : name); } catch { /* as pi does */ }
    }
    return names.join(" ");
  }),
  find: tool("find", async () => { throw new Error("replaced as a whole"); }),
  grep: tool("grep", async () => { throw new Error("replaced as a whole"); }),
} as Makers;

function registered(it: Session): { pi: Any; own: OwnTools; run(name: string, params: object, signal?: AbortSignal): Promise<unknown> } {
  const source = { sourceInfo: { source: "builtin", path: "<builtin>" } };
  const tools = new Map<string, Any>(Object.keys(makers).map((name) => [name, { name, parameters: {}, ...source }]));
  const pi = { registerTool: (made: Any) => tools.set(made.name, made), getAllTools: () => [...tools.values()] };
  const own = new OwnTools();
  own.register(pi as Any, it, makers, "/elsewhere");
  const run = (name: string, params: object, signal?: AbortSignal) => tools.get(name).execute("c1", params, signal, undefined, context());
  return { pi, own, run };
}

const relay = new Relay();
after(() => relay.close());
const call = (it: Session, pi: Any, own: OwnTools, toolName: string, input: object) =>
  gateToolCall(pi, it, [own], relay, { type: "tool_call", toolCallId: "c1", toolName, input } as Any, context());

const inspect = (it: Session, pi: Any, text: string, more: object = {}) => {
  const event = { type: "tool_result", toolCallId: "c1", toolName: "other", input: {}, content: [{ type: "text", text }], isError: false, ...more };
  return inspectToolResult(pi, it, event as Any, context());
};

test("before the start, after the end and without a host nothing is permitted", async () => {
  const it = session(() => { throw new Error("there is no host"); });
  const { pi, own, run } = registered(it);
  const closed = async (why: RegExp) => {
    for (const name of ["bash", "read", "write", "edit"]) await assert.rejects(run(name, { path: "f", command: "x", edits: [] }), why);
    for (const name of ["bash", "other"]) assert.match((await call(it, pi, own, name, {}))?.reason ?? "", why);
    assert.match((gateUserCommand(it) as Any).result.output, why);
    assert.match((await inspect(it, pi, "x") as Any)?.content[0]?.text ?? "", why);
  };
  await closed(/has not started/);
  await it.start(context());
  await closed(/there is no host/);
  assert.match(told.join(), /there is no host.*--no-sandbox/s);
  assert.deepEqual(footer, ["Portcullis starting", "Portcullis closed · no tool can run"]);
  const open = await started();
  await open.stop();
  assert.throws(() => open.host(), /has ended/);
  assert.equal(local.length, 0);
});

test("bash runs in the host, and ends as pi expects", async () => {
  const it = await started();
  const { run } = registered(it);
  assert.equal(await run("bash", { command: "echo in=$IN_HOST" }), "in=1\n[0]");
  assert.equal(await run("bash", { command: "exit 3" }), "[3]");
  assert.equal(await run("bash", { command: "kill -9 $$" }), "[137]");
  assert.match(String(await run("bash", { command: "echo note-me" })), /\[sandbox\] write to \/x refused/);
  assert.equal(await run("bash", { command: "echo ask-me" }), "ask-me\n[0]");
  await assert.rejects(run("bash", { command: "deny-me" }), /^Error: Refused by the sandbox: .* of fake/);
  await assert.rejects(run("bash", { command: "sleep 60", timeout: 0.2 }), /^Error: timeout:0.2$/);
  await assert.rejects(run("bash", { command: "sleep 60" }, AbortSignal.timeout(100)), /^Error: aborted$/);
  await it.stop();
});

test("file tools act through the host, in as many pieces as it takes", async () => {
  process.env.FAKE_CHUNK = "3";
  const it = await started();
  delete process.env.FAKE_CHUNK;
  const { run } = registered(it);
  writeFileSync(at("f"), "hello world");
  assert.equal(await run("read", { path: "f" }), "null hello world");
  assert.equal(await run("edit", { path: "f", edits: [{ oldText: "world", newText: "moon" }] }), "edited");
  assert.equal(readFileSync(at("f"), "utf8"), "hello moon");
  await run("write", { path: "new", content: "x" });
  assert.equal(readFileSync(at("new"), "utf8"), "x");
  await assert.rejects(run("read", { path: "none" }), { code: "ENOENT" });
  await assert.rejects(run("read", { path: "secret" }), /Refused by the sandbox/);
  await assert.rejects(run("edit", { path: "f", edits: [{ oldText: "moon", newText: "conflict-me" }] }), /changed since it was read/);
  await it.stop();
  assert.equal(local.length, 0);
});

test("every call ends with its handle closed", async () => {
  process.env.FAKE_LOG = at("log");
  const it = await started();
  delete process.env.FAKE_LOG;
  const { run } = registered(it);
  writeFileSync(at("f"), "hello");
  await run("read", { path: "f" });
  await run("edit", { path: "f", edits: [{ oldText: "h", newText: "j" }] });
  await assert.rejects(run("edit", { path: "f", edits: [{ oldText: "j", newText: "conflict-me" }] }));
  await assert.rejects(run("read", { path: "none" }));
  await it.stop();
  const count = (word: string) => readFileSync(at("log"), "utf8").split(`"method":"${word}"`).length - 1;
  assert.equal(count("file/open"), 4);
  assert.equal(count("file/close"), 3);
});

test("tools of others are decided, their input rewritten in place", async () => {
  const it = await started();
  const { pi, own } = registered(it);
  assert.equal(await call(it, pi, own, "bash", { command: "deny-me" }), undefined, "ours decides when it runs");
  assert.equal(await call(it, pi, own, "other", { p: 1 }), undefined);
  assert.match((await call(it, pi, own, "other", { p: "deny-me" }))?.reason ?? "", /Refused.*Ask for something else/);
  assert.equal(await call(it, pi, own, "other", { p: "ask-me" }), undefined);
  const input = { p: "rewrite-me", nested: { q: 1 } };
  assert.equal(await call(it, pi, own, "other", input), undefined);
  assert.deepEqual(input, { p: "rewritten", nested: { q: 1 } });
  await it.stop();
});

test("results pass the host, which may keep them back or change them", async () => {
  const it = await started();
  const { pi } = registered(it);
  assert.equal(await inspect(it, pi, "harmless"), undefined);
  const redacted = await inspect(it, pi, "redact-me");
  assert.deepEqual(redacted, { content: [{ type: "text", text: "***" }], details: {} });
  const kept = await inspect(it, pi, "withhold-me");
  assert.equal(kept?.isError, true);
  assert.match(JSON.stringify(kept), /withholds this output: .* of fake/);
  assert.doesNotMatch(JSON.stringify(kept), /withhold-me/);
  const picture = { type: "image", data: "AAAA", mimeType: "image/png" };
  const both = await inspect(it, pi, "redact-me", { content: [{ type: "text", text: "redact-me" }, picture] });
  assert.deepEqual(both?.content, [{ type: "text", text: "***" }, picture]);
  const structured = await inspect(it, pi, "x", { structuredContent: { deep: "withhold-me" } });
  assert.equal(structured?.isError, true);
  const broken = await inspect(it, { getAllTools: () => { throw new Error("stale"); } }, "x");
  assert.match(JSON.stringify(broken), /stale/);
  await it.stop();
});

test("the host is told where pi put the whole output of a command", async () => {
  process.env.FAKE_LOG = at("outputs");
  const it = await started();
  delete process.env.FAKE_LOG;
  const { pi } = registered(it);
  const file = (digit: string, kind = "bash", ending = "log") => join(tmpdir(), `pi-${kind}-${digit.repeat(16)}.${ending}`);
  await inspect(it, pi, `…\n\n[Showing lines 1-2. Full output: ${file("a")}]\n\nCommand exited with code 1`, { toolName: "bash" });
  await inspect(it, pi, `…9 chars truncated… ${file("b", "mcp", "txt")}`);
  await inspect(it, pi, `/elsewhere/pi-bash-${"c".repeat(16)}.log pi-bash-${"d".repeat(16)}.log /tmp/pi-bash-ee.log`);
  await it.stop();
  const named = readFileSync(at("outputs"), "utf8").match(/(?<="path":").*(?="\})/g);
  assert.deepEqual(named, [file("a"), file("b", "mcp", "txt")]);
});

test("so it is of the user's own commands, once and only where the model is told of it", async () => {
  process.env.FAKE_LOG = at("own-outputs");
  const it = await started();
  delete process.env.FAKE_LOG;
  const outputs = new UserOutputs();
  const file = (digit: string) => join(tmpdir(), `pi-bash-${digit.repeat(16)}.log`);
  const message = (fullOutputPath: string, more: object = {}) => ({ role: "bashExecution", fullOutputPath, ...more });
  const messages = [message(file("a")), message(file("b"), { excludeFromContext: true }), message("/etc/passwd"), { role: "user" }];
  await outputs.name(it, messages);
  await outputs.name(it, messages);
  await it.stop();
  await outputs.name(it, [message(file("c"))]);
  assert.deepEqual(readFileSync(at("own-outputs"), "utf8").match(/(?<="path":").*(?="\})/g), [file("a")]);
});

test("lists and searches are the host's", async () => {
  const it = await started();
  const { run } = registered(it);
  assert.equal(await run("ls", { path: "" }), "a d/");
  await assert.rejects(run("ls", { path: "none" }), /not found/);
  await assert.rejects(run("ls", { path: "secret" }), /Refused by the sandbox/);
  assert.deepEqual(await run("find", { pattern: "*.x", limit: 3 }), { content: [{ type: "text", text: '{"pattern":"*.x","limit":3}' }], details: { limit: 3 } });
  await assert.rejects(run("grep", { pattern: "fail-me" }), /^Error: no such pattern$/);
  await assert.rejects(run("grep", { pattern: "deny-me" }), /Refused by the sandbox/);
  await assert.rejects(run("grep", { pattern: "hang-me" }, AbortSignal.timeout(50)), /^Error: Operation aborted$/);
  await it.stop();
});

const named = (name: string, source: string) => ({ name, parameters: {}, sourceInfo: { source, path: `/${source}` } });

test("under the names of pi's tools pi's own do not run", async () => {
  const it = await started();
  const { own } = registered(it);
  for (const name of ["bash", "read", "write", "edit", "ls", "find", "grep"]) {
    const verdict = await call(it, { getAllTools: () => [named(name, "builtin")] }, own, name, {});
    assert.match(verdict?.reason ?? "let through", /pi's own and would run unconfined/);
  }
  assert.equal(new OwnTools().isInForce({ getAllTools: () => [{ name: "x" }] } as Any, "x"), false);
  const broken = await call(it, { getAllTools: () => { throw new Error("stale"); } }, own, "bash", {});
  assert.deepEqual(broken, { block: true, reason: "stale" });
  await it.stop();
});

test("a tool that another extension has replaced stays, and the host is asked about its calls", async () => {
  process.env.FAKE_LOG = at("taken");
  const it = await started();
  delete process.env.FAKE_LOG;
  const own = new OwnTools();
  const made: string[] = [];
  const tools = [named("bash", "cli"), named("read", "npm:x"), named("write", "builtin")];
  const pi: Any = { registerTool: ({ name }: Any) => made.push(name), getAllTools: () => tools };
  const others = own.register(pi, it, makers, "/elsewhere");
  assert.deepEqual([...others], [["bash", "extension:/cli"], ["read", "extension:npm:x"]]);
  // A tool that the user left out of this run has no provider.
  assert.deepEqual(made, ["write", "edit", "ls", "find", "grep"]);
  assert.match(takenOver(others), /^\/cli replaces pi's bash\. npm:x replaces pi's read\. /);
  assert.match((await call(it, pi, own, "read", { path: "deny-me" }))?.reason ?? "", /Refused/);
  const input = { path: "rewrite-me" };
  assert.equal(await call(it, pi, own, "read", input), undefined);
  assert.deepEqual(input, { path: "rewritten" });
  await it.stop();
  assert.match(readFileSync(at("taken"), "utf8"), new RegExp(`"tool":"read","provider":"extension:npm:x","input":\\{"path":"deny-me"\\},"cwd":"${directory}"`));
});

test("who supplies a tool", () => {
  const name = (tool: string, source: string, path: string) =>
    providerOf({ getAllTools: () => [{ name: tool, sourceInfo: { source, path } }] } as Any, tool);
  assert.equal(name("powershell", "builtin", "builtin:powershell"), "builtin");
  assert.equal(name("x", "builtin", "<builtin:x>"), "builtin");
  assert.equal(name("mcp__git_hub__x", "builtin", "builtin:mcp"), "mcp:git_hub");
  assert.equal(name("mcp__t__x", "cli", "/e.ts"), "extension:/e.ts");
  assert.equal(name("x", "npm:foo", "/n/foo"), "extension:npm:foo");
  assert.equal(providerOf({ getAllTools: () => [] } as Any, "x"), "extension:unknown");
});

test("the user's switch leaves pi's tools alone", async () => {
  const it = session(() => { throw new Error("not looked for"); });
  it.disable(context());
  const { pi, own, run } = registered(it);
  const names = ["bash", "read", "write", "edit", "ls", "find", "grep"];
  for (const name of names) assert.equal(await run(name, {}), "local");
  assert.deepEqual(local.splice(0), names);
  assert.equal(await call(it, pi, own, "bash", {}), undefined);
  assert.equal(gateUserCommand(it), undefined);
  assert.equal(await inspect(it, pi, "x"), undefined);
  assert.deepEqual(footer, ["Portcullis OFF"]);
});

test("settings that switch the sandbox off leave pi's tools alone as well", async () => {
  process.env.FAKE_HELLO = "disabled";
  const it = await started();
  delete process.env.FAKE_HELLO;
  assert.equal(await registered(it).run("bash", {}), "local");
  assert.deepEqual(local.splice(0), ["bash"]);
  assert.deepEqual(footer, ["Portcullis starting", "Portcullis OFF"]);
  await it.stop();
  assert.throws(() => it.host(), /has ended/);
});

for (const [how, why] of [
  ["refuse", /settings cannot be read: line 3/], ["version", /update the pi extension: run `mend it`/], ["die", /last words/], ["garbage", /JSON/],
] as const) {
  test(`a host that does "${how}" at the handshake leaves everything closed`, async () => {
    process.env.FAKE_HELLO = how;
    const it = await started();
    delete process.env.FAKE_HELLO;
    assert.throws(() => it.host(), why);
    assert.equal(told.length, 1);
    await it.stop();
  });
}

test("a host of another version works, and one line names the command that mends it", async () => {
  process.env.FAKE_HELLO = "newer";
  const it = await started();
  delete process.env.FAKE_HELLO;
  it.host();
  assert.deepEqual(told, ["The extension is Portcullis 0, the program 9.0.0. Run `mend it` and start pi again."]);
  await it.stop();
});

test("a host that dies is started once more, and the user is told", async () => {
  const it = await started();
  const { run } = registered(it);
  await assert.rejects(run("bash", { command: "die-now" }), /gone/);
  await until(() => it.state.kind !== "open");
  assert.throws(() => it.host(), /not available.*not answered yet/);
  await it.ready;
  assert.equal(await run("bash", { command: "echo again" }), "again\n[0]");
  assert.match(told.join(), /Portcullis stopped \(it ended with status 9\) and was started again.*\/reload/);
  assert.equal(failedRuns, 0);
  await it.stop();
});

test("a host that dies twice closes the session, and the user is told how to go on", async () => {
  const it = await started();
  const { run } = registered(it);
  for (let deaths = 0; deaths < 2; deaths += 1) {
    await it.ready;
    await assert.rejects(run("bash", { command: "die-now" }), /gone/);
    await until(() => it.state.kind !== "open");
  }
  await until(() => it.state.kind === "closed");
  await assert.rejects(run("bash", { command: "true" }), /status 9/);
  assert.equal(told.length, 2);
  assert.match(told[1]!, /closed and blocks every tool: .*status 9.*\/reload/);
  assert.equal(footer.at(-1), "Portcullis closed · no tool can run");
  // After the user restarts the session, the host is restarted once again if it dies.
  await it.start(context());
  await assert.rejects(run("bash", { command: "die-now" }), /gone/);
  await until(() => it.state.kind !== "open");
  await it.ready;
  assert.equal(await run("bash", { command: "echo again" }), "again\n[0]");
  await it.stop();
});

test("a stop during a restart leaves no host behind", async () => {
  const it = await started();
  const { run } = registered(it);
  await assert.rejects(run("bash", { command: "die-now" }), /gone/);
  await until(() => it.state.kind !== "open");
  await it.stop();
  await it.ready;
  assert.throws(() => it.host(), /has ended/);
  assert.deepEqual(told, []);
});

test("a session whose settings are broken says so, and opens when the host says that they are mended", async () => {
  process.env.FAKE_HELLO = "closed";
  const it = await started();
  delete process.env.FAKE_HELLO;
  assert.deepEqual(told, ["nothing is permitted until this is mended: line 3"]);
  assert.throws(() => it.host(), /line 3/);
  await until(() => it.state.kind === "open");
  assert.equal(await registered(it).run("bash", { command: "echo open" }), "open\n[0]");
  assert.match(footer.at(-1)!, /writes here · 3 hosts/);
  await it.stop();
});

test("/sandbox is not opened while nothing is permitted, and first looks whether that has changed", async () => {
  process.env.FAKE_HELLO = "closed";
  const it = await started();
  delete process.env.FAKE_HELLO;
  const open = () => it.withMenuHost(context(), async () => it.state.kind);
  assert.equal(await open(), undefined);
  assert.match(told.at(-1)!, /closed and blocks every tool/);
  await until(() => it.state.kind === "open");
  assert.equal(await open(), "open");
  await it.stop();
});

test("without an interface a session that is closed makes the run fail", async () => {
  for (const [how, runs] of [["closed", 1], ["refuse", 1], ["disabled", 0]] as const) {
    failedRuns = 0;
    process.env.FAKE_HELLO = how;
    const it = await started({ hasUI: false });
    delete process.env.FAKE_HELLO;
    assert.equal(failedRuns, runs, how);
    await it.stop();
    assert.equal(failedRuns, runs, "an ordinary end is no failure");
  }
});

test("nobody there: questions are refused, and messages go to stderr", async () => {
  const it = await started({ hasUI: false });
  const { run } = registered(it);
  await assert.rejects(run("bash", { command: "echo ask-me" }), /Refused/);
  await it.stop();
});

test("extension, host and packages are of one version", () => {
  const read = (name: string) => readFileSync(new URL(name, import.meta.url), "utf8");
  const { version, optionalDependencies } = JSON.parse(read("../package.json"));
  for (const wanted of Object.values(optionalDependencies)) assert.equal(wanted, version);
  assert.ok(read("../src/index.ts").includes(`const EXTENSION_VERSION = "${version}";`));
  assert.ok(read("../../Cargo.toml").includes(`\nversion = "${version}"\n`));
});

test("copies find each other, and one that is gone is not counted on", () => {
  const handlers: ((data: unknown) => void)[] = [];
  const bus = { emit: (_channel: string, data: unknown) => handlers.forEach((handler) => handler(data)), on: (_channel: string, handler: Any) => handlers.push(handler) };
  const start = {};
  assert.deepEqual(inquire(bus).present, false);
  const first = announce(bus);
  assert.equal(inquire(bus).present, true);
  assert.equal(inquire(bus, start).started, false);
  first.started(start);
  assert.equal(inquire(bus, start).started, true);
  assert.equal(inquire(bus, {}).started, false);
  first.leave();
  assert.equal(inquire(bus, start).started, false);
  assert.equal(inquire(bus).present, false);
});

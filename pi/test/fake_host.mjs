#!/usr/bin/env node
/**
 * A fake host for the tests of the extension: it implements the protocol without any confinement.
 * Words in its input select its behaviour: `deny-me`, `ask-me`, `rewrite-me`, `die-now`;
 * so does the variable FAKE_HELLO = refuse | hang | die | disabled | version | garbage | newer | closed (opens a moment later). FAKE_LOG names a log of all messages.
 */
import { spawn } from "node:child_process";
import fs from "node:fs";
import net from "node:net";
import path from "node:path";

const side = new net.Socket({ fd: 3 });
const log = (direction, line) => process.env.FAKE_LOG && fs.appendFileSync(process.env.FAKE_LOG, `${direction} ${line}\n`);
const send = (message) => {
  const line = JSON.stringify({ jsonrpc: "2.0", ...message });
  log("<", line);
  process.stdout.write(`${line}\n`);
};
const frame = (stream, payload, late = 0) => {
  if (late > 0) return void setTimeout(frame, late, stream, payload);
  const head = Buffer.alloc(8);
  head.writeUInt32LE(stream, 0);
  head.writeUInt32LE(payload.length, 4);
  side.write(Buffer.concat([head, payload]));
};
const cause = { policy: "fake", rule: "word", reason: "the word says so" };
const status = { state: process.env.FAKE_HELLO === "disabled" ? "disabled" : "enabled", domains: 3, summary: "writes here · 3 hosts, asks others", writePaths: 1, waiting: 0, reservations: false, escalation: false, contained: false, brief: "BRIEF-OF-THE-FAKE-HOST", warnings: [] };
const closed = { ...status, state: "closed", warnings: ["nothing is permitted until this is mended: line 3"] };
let opened = true;
const handles = new Map();
const asks = new Map();
const running = new Map();
const hanging = new Map();
let next = 1;

function ask(params, id) {
  const askId = next++;
  send({ id: askId, method: "ask", params: { askId, callId: params.callId, title: "Run this command?", subject: params.script ?? JSON.stringify(params.input), context: "", sensitive: false, asker: "fake", ...cause,
    options: [{ key: "o", effect: "allow", label: "Once", width: 0, scope: "once" }, { key: "s", effect: "allow", label: "For this session", width: 0, scope: "session" }] } });
  return new Promise((resolve) => asks.set(askId, { resolve, id }));
}
const failure = (kind, message, errno) => ({ code: -32010, message, data: { kind, ...(errno ? { errno } : {}), ...(kind === "denied" ? cause : {}) } });
const fail = (kind, message, errno) => { throw failure(kind, message, errno); };
const fsError = (error) => failure(error.code === "ENOENT" ? "notFound" : error.code === "EISDIR" ? "isDirectory" : "other", error.message.replace(/^[A-Z]+: /, "").replace(/ '.*$/, ""), -error.errno);

const methods = {
  async hello(params) {
    switch (process.env.FAKE_HELLO) {
      case "refuse": throw { code: -32603, message: "the settings cannot be read: line 3" };
      case "version": throw { code: -32001, message: "update the pi extension" };
      case "hang": return new Promise(() => {});
      case "die": process.stderr.write("last words of the host\n"); process.exit(7); break;
      case "garbage": process.stdout.write("this is no JSON\n"); break;
      case "closed": {
        opened = false;
        setTimeout(() => { opened = true; send({ method: "event", params: { kind: "status", status } }); }, 300);
        return { protocol: params.protocol, host: { name: "fake", version: "0" }, status: closed };
      }
    }
    return { protocol: params.protocol, host: { name: "fake", version: process.env.FAKE_HELLO === "newer" ? "9.0.0" : "0" }, status };
  },
  async decide(params, id) {
    const text = JSON.stringify(params.input);
    if (text.includes("deny-me")) return { effect: "deny", ...cause, hint: "Ask for something else." };
    if (params.tool === "bash") return { effect: "exec", ...cause };
    if (text.includes("ask-me")) return (await ask(params, id)).choice === "refuse" ? { effect: "deny", ...cause } : { effect: "allow", ...cause };
    if (text.includes("rewrite-me")) return { effect: "allow", ...cause, rewrittenInput: JSON.parse(text.replace("rewrite-me", "rewritten")) };
    return { effect: "allow", ...cause };
  },
  async "file/open"(params) {
    if (params.path.includes("secret")) fail("denied", "denied");
    try {
      const fd = fs.openSync(params.path, "r");
      const handle = next++;
      handles.set(handle, { fd, path: params.path });
      return { handle, canonical: params.path, size: fs.fstatSync(fd).size };
    } catch (error) { throw fsError(error); }
  },
  async "file/read"({ handle, offset, length }) {
    const { fd } = handles.get(handle) ?? fail("badHandle", "no such handle");
    const most = Math.min(length, Number(process.env.FAKE_CHUNK ?? length));
    const bytes = Buffer.alloc(most);
    const read = fs.readSync(fd, bytes, 0, most, offset);
    const head = bytes.subarray(0, 4).toString("latin1");
    return { contentBase64: bytes.subarray(0, read).toString("base64"), eof: read < most, ...(head === "\x89PNG" ? { mimeType: "image/png" } : {}) };
  },
  async "file/write"({ path: name, content }) {
    if (name.includes("secret") || content.includes("deny-me")) fail("denied", "denied");
    fs.mkdirSync(path.dirname(name), { recursive: true });
    fs.writeFileSync(name, content);
    return { canonical: name, size: content.length };
  },
  async "file/writeHandle"({ handle, content }) {
    const { path: name } = handles.get(handle) ?? fail("badHandle", "no such handle");
    if (content.includes("conflict-me")) fail("conflict", "the file changed since it was read; read it again");
    fs.writeFileSync(name, content);
    return { canonical: name, size: content.length };
  },
  async "file/close"({ handle }) {
    const { fd } = handles.get(handle) ?? fail("badHandle", "no such handle");
    fs.closeSync(fd);
    handles.delete(handle);
    return {};
  },
  async "file/list"({ path: name }) {
    if (name.includes("secret")) fail("denied", "denied");
    if (name.includes("none")) fail("notFound", "no such file or directory", 2);
    return { entries: [{ name: "a", kind: "other" }, { name: "d", kind: "directory" }, { name: "gone", kind: "nothing" }] };
  },
  async "file/find"({ callId, cwd, ...search }) { return { text: JSON.stringify(search), failed: false, details: { limit: search.limit } }; },
  async "file/grep"({ pattern }, id) {
    if (pattern === "deny-me") fail("denied", "denied");
    if (pattern === "hang-me") return new Promise((_resolve, reject) => hanging.set(id, reject));
    return pattern === "fail-me" ? { text: "no such pattern", failed: true } : { text: "", failed: false };
  },
  async "file/output"() { return {}; },
  async inspect({ content }) {
    const text = JSON.stringify(content);
    if (text.includes("withhold-me")) return { verdict: "withhold", cause };
    if (!text.includes("redact-me")) return { verdict: "pass" };
    return { verdict: "replace", content: content.map((block) => (block.kind === "text" ? { kind: "text", text: "***" } : block)) };
  },
  async exec(params, id) {
    if (params.script.includes("die-now")) process.exit(9);
    const denied = { notes: [], denied: cause };
    if (params.script.includes("deny-me")) return denied;
    if (params.script.includes("ask-me") && (await ask(params, id)).choice === "refuse") return denied;
    return new Promise((resolve) => {
      const child = spawn("/bin/bash", ["-c", params.script], { cwd: params.cwd, env: { ...params.env, IN_HOST: "1" }, detached: true, stdio: ["ignore", "pipe", "pipe"] });
      let timedOut = {};
      const kill = () => { try { process.kill(-child.pid, "SIGKILL"); } catch {} };
      const time = params.timeoutMs ?? (params.script.includes("limit-me") ? 100 : undefined);
      const timer = time && setTimeout(() => { timedOut = { timedOutAfterMs: time }; kill(); }, time);
      running.set(id, kill);
      // The two descriptors are read apart from one another: output may reach the client after the reply.
      const late = params.script.includes("late-me") ? 150 : 0;
      for (const output of [child.stdout, child.stderr]) output.on("data", (data) => { for (let at = 0; at < data.length; at += 65536) frame(params.stream, data.subarray(at, at + 65536), late); });
      child.on("close", (code) => {
        clearTimeout(timer);
        running.delete(id);
        frame(params.stream, Buffer.alloc(0), late);
        const notes = params.script.includes("note-me") ? ["write to /x refused"] : [];
        resolve({ ...(code === null ? { signal: 9 } : { exitCode: code }), ...timedOut, notes });
      });
    });
  },
  async status() { return opened ? status : closed; },
  async shutdown() { for (const kill of running.values()) kill(); return {}; },
};

function cancel(id) {
  running.get(id)?.();
  hanging.get(id)?.({ code: -32800, message: "cancelled" });
  for (const [askId, question] of asks) {
    if (question.id !== id) continue;
    asks.delete(askId);
    send({ method: "ask/withdraw", params: { askId, why: "cancelled" } });
    send({ id, error: { code: -32800, message: "cancelled" } });
  }
}

async function take(line) {
  log(">", line);
  const message = JSON.parse(line);
  if (message.method === "cancel") return cancel(message.params.id);
  if (message.method === undefined) {
    const question = asks.get(message.id);
    asks.delete(message.id);
    return question?.resolve(message.result);
  }
  try {
    send({ id: message.id, result: await methods[message.method](message.params, message.id) });
  } catch (error) {
    send({ id: message.id, error: error.code ? error : { code: -32603, message: String(error) } });
  }
}

let held = "";
process.stdin.setEncoding("utf8").on("data", (text) => {
  const lines = (held + text).split("\n");
  held = lines.pop();
  for (const line of lines) void take(line);
}).on("end", () => process.exit(0));

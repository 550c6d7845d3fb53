// Stands for pi: it holds the extension's connection to the host, and does what it is told, line by line:
//   bare N        runs `bash -c true` N times as pi's own bash tool does
//   confined N    the same through the extension and the host
//   decide N      asks for N decisions over calls of a tool
//   fs N, read N  reads a small file N times by itself, and through the host
//   flood WHO N   takes N bytes of output from a command, `bare` or `confined`
//   memory        answers with the kilobytes that the host holds
// Arguments: the extension's sources, the host, the project, and how many megabytes of its own it holds.
import { spawn } from "node:child_process";
import { readFileSync } from "node:fs";
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { pathToFileURL } from "node:url";

const [sources, path, project, megabytes] = process.argv.slice(2);
const { HostClient } = await import(pathToFileURL(join(sources, "client.ts")).href);
const ballast = Array.from({ length: Number(megabytes) }, () => Buffer.alloc(1 << 20, 1));

const fail = (why) => { throw new Error(why); };
const host = new HostClient(path, {
  ask: () => fail("it asks"), withdraw: () => {}, event: () => {}, gone: fail,
});
const hello = await host.call("hello", {
  protocol: 1, client: { name: "bench", version: "0" }, piVersion: "0", mode: "print", interactive: false,
  cwd: project, agentDir: join(process.env.HOME, ".pi/agent"),
});
if (hello.status.state !== "enabled") fail(JSON.stringify(hello.status));

const env = { PATH: process.env.PATH, HOME: process.env.HOME };
let calls = 0;

async function bare(script, onData) {
  const child = spawn("/bin/bash", ["-c", script], { cwd: project, env, detached: true, stdio: ["ignore", "pipe", "pipe"] });
  child.stdout.on("data", onData);
  child.stderr.on("data", onData);
  const code = await new Promise((resolve) => child.on("close", resolve));
  if (code !== 0) fail(`bash ended with ${code}`);
}

async function confined(script, onData) {
  const ended = await host.exec({ callId: `c${calls++}`, script, cwd: project, env, origin: "agent" }, onData);
  if (ended.exitCode !== 0) fail(JSON.stringify(ended));
}

async function decide() {
  const call = { callId: `c${calls++}`, tool: "weather", provider: "extension:weather", input: { city: "Ulm" } };
  await host.call("decide", call);
}

async function read() {
  const callId = `c${calls++}`;
  const opened = await host.call("file/open", { callId, path: join(project, "small"), intent: { kind: "read" } });
  const part = await host.call("file/read", { handle: opened.handle, offset: 0 });
  if (!part.eof) fail("the file is larger");
  await host.call("file/close", { handle: opened.handle });
}

async function flood(run, bytes) {
  let taken = 0;
  await run(`head -c ${bytes} /dev/zero`, (data) => { taken += data.length; });
  if (taken !== Number(bytes)) fail(`${taken} bytes came`);
}

function memory() {
  const [pid] = readFileSync(`/proc/self/task/${process.pid}/children`, "utf8").split(" ");
  return /^VmRSS:\s+(\d+)/m.exec(readFileSync(`/proc/${pid}/status`, "utf8"))[1];
}

const ignore = () => {};
const acts = {
  bare: () => bare("true", ignore), confined: () => confined("true", ignore), decide, read,
  fs: () => readFile(join(project, "small")),
};
for await (const line of createInterface({ input: process.stdin })) {
  const [what, first, second] = line.split(" ");
  let answer = "done";
  if (what === "memory") answer = memory();
  else if (what === "flood") await flood(first === "bare" ? bare : confined, second);
  else for (let left = Number(first); left > 0; left -= 1) await acts[what]();
  console.log(answer);
}
ballast.length = 0;
await host.stop();

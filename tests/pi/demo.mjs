#!/usr/bin/env node
// Shows Portcullis in half a minute: a real pi, a scripted model, and a program in the place of the user.
//
//   PORTCULLIS_BIN=FILE node demo.mjs CLI_OF_PI
//
// Ends with 1 unless one call was allowed, one asked, one denied, a command could not write outside the project, and
// a second policy file, deny-one.wasm, then changed what the file tools and commands may do.

import { existsSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { environmentFor, prepareHome } from "./home.mjs";
import { converse } from "./rpc.mjs";
import { parseScenario } from "./scenario.mjs";
import { startModel } from "./server.mjs";

// Outside /tmp, because a sandboxed session has a private one.
const SCRATCH = "/var/tmp/portcullis-demo-";
const PATIENCE_MS = 120_000;
const DENY_ONE = fileURLToPath(new URL("../../target/guests/deny-one.wasm", import.meta.url));
const WIDTH = 100;

const host = existing("PORTCULLIS_BIN", process.env.PORTCULLIS_BIN);
const pi = existing("the first argument", process.argv[2]);
const world = makeWorld();
const failures = [];

try {
  await play("The default policy", [
    { call: read("secret.txt"), wanted: "allowed", shows: "plain text" },
    { call: read("../elsewhere/report.txt"), wanted: "asked", shows: "quarterly figures" },
    { call: read("~/.pi/agent/auth.json"), wanted: "denied", hides: "top-secret" },
    { call: bash("echo built > result.txt; echo stolen > ../elsewhere/made.txt"), wanted: "confined" },
  ]);
  require(existsSync(join(world.project, "result.txt")), "the command could not write inside the project");
  add(DENY_ONE);
  await play("With the policy file deny-one.wasm beside it", [
    { call: read("notes.txt"), wanted: "allowed", shows: "buy milk" },
    { call: read("secret.txt"), wanted: "denied", hides: "plain text" },
    { call: bash("cat secret.txt"), wanted: "confined", hides: "plain text" },
  ]);
} finally {
  rmSync(world.root, { recursive: true, force: true });
}
for (const failure of failures) console.error(`demo: ${failure}`);
process.exit(failures.length > 0 ? 1 : 0);

/** Makes pi run the calls one after another, shows each result, and compares it with the expected one. */
async function play(title, acts) {
  console.log(`\n${title}\n${"-".repeat(title.length)}`);
  const steps = [...acts.map(({ call }) => ({ calls: [call] })), { text: "That is all." }];
  const model = await startModel(parseScenario(steps));
  prepareHome(world.home, model.url);
  const rest = [...acts];
  let asked = false;
  const code = await converse({
    command: [host, "pi", "--mode", "rpc", "--no-session"],
    cwd: world.project,
    env: environmentFor(world.home, { binDir: world.bin }),
    prompt: "Show what you may do.",
    patienceMs: PATIENCE_MS,
    onQuestion: (question) => {
      asked = true;
      return answered(question, rest[0]);
    },
    onResult: (result) => {
      settle(rest.shift(), result, asked);
      asked = false;
    },
  });
  model.close();
  require(code === 0, `pi ended with ${code}`);
  require(rest.length === 0, `${rest.length} calls were not made`);
}

/** Adds a policy to the user's settings, without a rebuild or any other change. */
function add(policy) {
  if (!existsSync(policy)) throw new Error(`${policy} is missing; run \`cargo xtask guests\``);
  const folder = join(world.home, ".pi/agent/sandbox");
  mkdirSync(folder, { recursive: true });
  const settings = {
    network: { allowedDomains: [], deniedDomains: [] },
    filesystem: { denyRead: ["/home"], allowRead: [".", "~/.pi"], allowWrite: ["."], denyWrite: [] },
    policies: [{ use: "workspace" }, { use: policy }],
  };
  writeFileSync(join(folder, "default.json"), JSON.stringify(settings, null, 2));
}

/** Allows the agent's request once, and refuses a command that wants to write outside. */
function answered({ title, options }, { wanted }) {
  const answer = options.find((option) => (wanted === "asked" ? /^\d+\. Once$/ : /^No$/).test(option)) ?? options[0];
  for (const line of title.split("\n")) console.log(`    ? ${clip(line)}`);
  for (const option of options) console.log(`    ${option === answer ? "›" : " "} ${clip(option)}`);
  return answer;
}

function settle({ call, wanted, shows, hides }, { text, failed }, asked) {
  const stolen = existsSync(join(world.elsewhere, "made.txt"));
  const became = wanted === "confined" && !stolen ? "confined" : asked ? "asked" : failed ? "denied" : "allowed";
  const line = `${call.name} ${call.args.path ?? call.args.command}`;
  console.log(`${became.padEnd(9)} ${line}\n          ${clip(text.trim().replace(/\s+/g, " "))}`);
  require(became === wanted, `\`${line}\` was ${became}, not ${wanted}`);
  require(!stolen, `\`${line}\` wrote outside the project`);
  require(shows === undefined || text.includes(shows), `\`${line}\` did not show what it should`);
  require(hides === undefined || !text.includes(hides), `\`${line}\` showed what it should not`);
}

function makeWorld() {
  const root = mkdtempSync(SCRATCH);
  const at = (name) => join(root, name);
  const folders = { root, home: at("home"), project: at("project"), elsewhere: at("elsewhere"), bin: at("bin") };
  for (const folder of [folders.home, folders.project, folders.elsewhere, folders.bin]) mkdirSync(folder);
  mkdirSync(join(folders.home, ".pi/agent"), { recursive: true });
  writeFileSync(join(folders.home, ".pi/agent/auth.json"), '{ "scripted": { "type": "api_key", "key": "top-secret" } }');
  writeFileSync(join(folders.project, "notes.txt"), "buy milk\n");
  writeFileSync(join(folders.project, "secret.txt"), "plain text\n");
  writeFileSync(join(folders.elsewhere, "report.txt"), "quarterly figures\n");
  const start = `#!/bin/sh\nexec '${process.execPath}' '${pi}' "$@"\n`;
  writeFileSync(join(folders.bin, "pi"), start, { mode: 0o755 });
  return folders;
}

function read(path) {
  return { name: "read", args: { path } };
}

function bash(command) {
  return { name: "bash", args: { command } };
}

function require(condition, complaint) {
  if (!condition) failures.push(complaint);
}

function clip(text) {
  return text.length > WIDTH ? `${text.slice(0, WIDTH - 1)}…` : text;
}

function existing(what, path) {
  if (!path || !existsSync(path)) {
    console.error(`demo: ${what} must name a file; \`cargo xtask demo\` sets it`);
    process.exit(2);
  }
  return path;
}

#!/usr/bin/env node
// Installs the extension by `pi install` and shows that pi is then under the policy; for `cargo xtask dist --prove`.
//
//   node installed.mjs PROJECT
//
// Ends with 1 unless one call was allowed, one asked, and one denied. Prints the time from the beginning of the
// installation to the first answer of the host.

import { spawnSync } from "node:child_process";
import { mkdirSync, writeFileSync } from "node:fs";
import { homedir } from "node:os";
import { join } from "node:path";
import { environmentFor, prepareHome } from "./home.mjs";
import { converse } from "./rpc.mjs";
import { parseScenario } from "./scenario.mjs";
import { startModel } from "./server.mjs";

const PATIENCE_MS = 120_000;

const project = process.argv[2];
const elsewhere = join(homedir(), "elsewhere");
mkdirSync(elsewhere, { recursive: true });
writeFileSync(join(project, "notes.txt"), "buy milk\n");
writeFileSync(join(elsewhere, "report.txt"), "quarterly figures\n");
const acts = [
  { call: read("notes.txt"), wanted: "allowed" },
  { call: read("../elsewhere/report.txt"), wanted: "asked" },
  { call: read("~/.ssh/id_ed25519"), wanted: "denied" },
  { call: { name: "bash", args: { command: "echo built > result.txt && cat result.txt" } }, wanted: "allowed" },
];

const model = await startModel(parseScenario([...acts.map(({ call }) => ({ calls: [call] })), { text: "That is all." }]));
prepareHome(homedir(), model.url);
const start = performance.now();
const install = spawnSync("pi", ["install", "npm:@portcullis/pi"], { encoding: "utf8" });
if (install.status !== 0) throw new Error(`pi install ended with ${install.status}: ${install.stdout}${install.stderr}`);
const installed = performance.now();
let first;
let asked = false;
let failed = false;
const code = await converse({
  command: ["pi", "--mode", "rpc", "--no-session"],
  cwd: project,
  env: environmentFor(homedir()),
  prompt: "Show what you may do.",
  patienceMs: PATIENCE_MS,
  onQuestion: ({ options }) => {
    asked = true;
    return options.find((option) => /once/i.test(option)) ?? options[0];
  },
  onResult: (result) => {
    first ??= performance.now();
    const { call, wanted } = acts.shift();
    const became = asked ? "asked" : result.failed ? "denied" : "allowed";
    console.log(`  ${became.padEnd(8)} ${call.name} ${call.args.path ?? call.args.command}: ${result.text.trim().slice(0, 70)}`);
    if (became !== wanted) failed = true;
    asked = false;
  },
});
model.close();
const seconds = (from, to) => ((to - from) / 1000).toFixed(1);
console.log(`  pi install: ${seconds(start, installed)} s; from there to the first verdict: ${seconds(installed, first)} s`);
if (failed || acts.length > 0 || code !== 0) {
  console.error(`installed: pi ended with ${code}, ${acts.length} calls were not made`);
  process.exit(1);
}

function read(path) {
  return { name: "read", args: { path } };
}

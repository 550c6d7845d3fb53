#!/usr/bin/env node
// Runs a program, usually pi, against a scripted model in a home directory of its own. Needs only Node 20.
//
//   node model.mjs --scenario FILE [--log FILE] [--home DIR] [--bin-dir DIR] [--env NAME=VALUE]… [--settings FILE] -- pi -p "go"
//
//   --scenario  the answers of the model; see scenario.mjs
//   --log       gets one JSON line for each request: time, turn, step, instructions, prompt, tools, tool results, failures
//   --home      the home directory to use and keep; without it one is made and removed at the end
//   --bin-dir   a directory that comes first in PATH (pi's grep and find tools start `rg` and `fd`)
//   --env       one more variable for the program
//   --settings  settings of Portcullis for the home, in which `${MODEL}` stands for the model's host and port
//
// Ends with the program's exit code, 128 + n when signal n killed it, 97 when an expectation of the scenario was
// not met, 2 for a wrong command line. Without a program it prints the model's address and serves until killed.

import { spawn } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { constants, homedir } from "node:os";
import { parseArgs } from "node:util";
import { environmentFor, prepareHome } from "./home.mjs";
import { readScenario } from "./scenario.mjs";
import { startModel } from "./server.mjs";

const UNMET = 97;
const USAGE = 2;
const NOT_STARTED = 127;
// Outside /tmp, because a sandboxed session has a private one.
const SCRATCH = "/var/tmp/portcullis-pi-";

const { options, command } = readArguments();
const scratch = options.home ? undefined : mkdtempSync(SCRATCH);
const home = options.home ?? scratch;
const vars = { CWD: process.cwd(), HOME: command ? home : homedir() };
const model = await startModel(readScenario(options.scenario, vars), { log: options.log });
if (command) {
  prepareHome(home, model.url, options.settings);
  process.exitCode = await run(command);
  model.close();
  if (scratch) rmSync(scratch, { recursive: true, force: true });
  for (const failure of model.failures) console.error(`model: ${failure}`);
  if (model.failures.length > 0) process.exitCode = UNMET;
} else {
  console.log(model.url);
}

function run([program, ...programArguments]) {
  const extra = Object.fromEntries(options.env.map((pair) => pair.split(/=(.*)/s, 2)));
  const env = environmentFor(home, { binDir: options["bin-dir"], extra });
  const child = spawn(program, programArguments, { stdio: "inherit", env });
  for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"]) process.on(signal, () => child.kill(signal));
  return new Promise((resolve) => {
    child.on("exit", (code, signal) => resolve(code ?? 128 + constants.signals[signal]));
    child.on("error", (error) => {
      console.error(`model: starting \`${program}\`: ${error.message}`);
      resolve(NOT_STARTED);
    });
  });
}

function readArguments() {
  const given = process.argv.slice(2);
  const dashes = given.indexOf("--");
  const own = dashes < 0 ? given : given.slice(0, dashes);
  try {
    const text = { type: "string" };
    const known = { scenario: text, log: text, home: text, "bin-dir": text, settings: text, env: { ...text, multiple: true, default: [] } };
    const { values } = parseArgs({ args: own, options: known });
    if (!values.scenario) throw new Error("`--scenario FILE` is missing");
    return { options: values, command: dashes < 0 ? undefined : given.slice(dashes + 1) };
  } catch (error) {
    console.error(`model: ${error.message}`);
    process.exit(USAGE);
  }
}

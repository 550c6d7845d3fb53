/**
 * Every Node program that pi starts loads this file first (see children.ts). If the program is another pi, a sub-agent,
 * this file adds the sandbox's extension, even if the command line leaves out all extensions.
 */
const { realpathSync } = require("node:fs");
const { join } = require("node:path");

/** The commands of pi that start no session; after an `-e` pi would take such a word for a prompt. */
const VERBS = new Set(["config", "install", "list", "remove", "uninstall", "update"]);
const PI = /[/\\]pi-coding-agent[/\\]dist[/\\](bundle[/\\])?(cli|rpc-entry)\.js$/;

const [, script, first] = process.argv;
if (isPi(script) && !VERBS.has(first)) {
  process.argv.splice(2, 0, "-e", join(__dirname, "index.ts"));
  // For flag.ts: the model may have written the rest of the command line.
  globalThis[Symbol.for("portcullis.sub-agent")] = true;
}

function isPi(path) {
  try {
    return PI.test(realpathSync(path));
  } catch {
    return false;
  }
}

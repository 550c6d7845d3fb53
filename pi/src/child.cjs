/**
 * Loaded first by every Node program that pi starts (see children.ts). Where that is another pi, a sub-agent, it gets
 * the sandbox's extension too, whatever extensions it was told to leave out.
 */
const { realpathSync } = require("node:fs");
const { join } = require("node:path");

/** What pi does by itself, without a session; with `-e` in front it would take the word for a prompt. */
const VERBS = new Set(["config", "install", "list", "remove", "uninstall", "update"]);
const PI = /[/\\]pi-coding-agent[/\\]dist[/\\](bundle[/\\])?(cli|rpc-entry)\.js$/;

const [, script, first] = process.argv;
if (isPi(script) && !VERBS.has(first)) {
  process.argv.splice(2, 0, "-e", join(__dirname, "index.ts"));
  // Read by flag.ts: the rest of the command line may be the model's.
  globalThis[Symbol.for("portcullis.sub-agent")] = true;
}

function isPi(path) {
  try {
    return PI.test(realpathSync(path));
  } catch {
    return false;
  }
}

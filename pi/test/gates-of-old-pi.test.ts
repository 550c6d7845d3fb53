import assert from "node:assert/strict";
import { test } from "node:test";
import { guardChildren, withoutGuard } from "../src/children.ts";
import { askAboutRpcCommands } from "../src/rpc-bash.ts";
import { WholeCalls } from "../src/truncated-calls.ts";

type Any = any;

test("a command of the client is put to the extensions, unless they were asked", async () => {
  const seen: unknown[] = [];
  let answer: unknown;
  class Session {
    extensionRunner = { emitUserBash: async (event: object) => { seen.push(event); return answer; } };
    sessionManager = { getCwd: () => "/w" };
    recorded: unknown[] = [];
    recordBashResult(...what: unknown[]) { this.recorded.push(what); }
    async executeBash(command: string, _onChunk?: unknown, options?: object) { return [command, options]; }
  }
  askAboutRpcCommands(Session.prototype);
  askAboutRpcCommands(Session.prototype);
  const it: Any = new Session();
  assert.deepEqual(await it.executeBash("a"), ["a", undefined]);
  assert.deepEqual(seen, [{ type: "user_bash", command: "a", excludeFromContext: false, cwd: "/w" }]);
  answer = { operations: 1 };
  assert.deepEqual(await it.executeBash("b"), ["b", { operations: 1 }]);
  answer = { result: { output: "no" } };
  assert.deepEqual(await it.executeBash("c"), { output: "no" });
  assert.deepEqual(it.recorded, [["c", { output: "no" }]]);
  assert.deepEqual(await it.executeBash("d", () => {}, { operations: 2 }), ["d", { operations: 2 }]);
  assert.equal(seen.length, 3);
  askAboutRpcCommands({});
});

test("calls that broke off are known by their ids", () => {
  const calls = new WholeCalls();
  const write = (id: string, ...pieces: string[]) => {
    calls.take({ type: "toolcall_start", contentIndex: 1 });
    for (const delta of pieces) calls.take({ type: "toolcall_delta", contentIndex: 1, delta });
    calls.take({ type: "toolcall_end", contentIndex: 1, toolCall: { id } });
  };
  write("whole", '{"command":', '"x"}');
  write("none");
  write("broken", '{"command": "rm -rf /tmp/x');
  calls.take({ type: "text_delta", delta: "{" });
  assert.deepEqual(["whole", "none", "broken", "broken"].map((id) => calls.isBroken(id)), [false, false, true, false]);
});

test("sub-agents are guarded through NODE_OPTIONS, next to what the user has there", () => {
  const env: NodeJS.ProcessEnv = { NODE_OPTIONS: "--no-warnings" };
  guardChildren(true, env);
  guardChildren(true, env);
  assert.match(env.NODE_OPTIONS ?? "", /^--no-warnings --require="\/.*\/src\/child\.cjs"$/);
  assert.deepEqual(withoutGuard(env), { NODE_OPTIONS: "--no-warnings" });
  const own: NodeJS.ProcessEnv = {};
  guardChildren(true, own);
  guardChildren(false, own);
  assert.deepEqual(own, {});
});

import assert from "node:assert/strict";
import { test } from "node:test";
import { commandOperations, environment } from "../src/tools.ts";
import { HELLO, startHost } from "./support.ts";

test("how long a command had is said in figures, whoever gave it that", async () => {
  const host = startHost();
  await host.call("hello", HELLO);
  const run = (timeout?: number) => commandOperations(host, "c", "agent").exec(
    timeout === undefined ? "limit-me; sleep 60" : "sleep 60", "/",
    { onData: () => {}, env: { PATH: "/usr/bin:/bin" }, ...(timeout === undefined ? {} : { timeout }) },
  );
  try {
    await assert.rejects(run(0.05), { message: "timeout:0.05" });
    // The agent gave no limit: this one is the sandbox's.
    await assert.rejects(run(), { message: "timeout:0.1" });
  } finally {
    await host.stop();
  }
});

test("more time than a timer can have is no limit", async () => {
  const host = startHost();
  await host.call("hello", HELLO);
  try {
    const run = commandOperations(host, "c", "agent").exec(
      "true", "/", { onData: () => {}, env: { PATH: "/usr/bin:/bin" }, timeout: 1e300 },
    );
    assert.deepEqual(await run, { exitCode: 0 });
  } finally {
    await host.stop();
  }
});

test("commands get the PATH that pi itself does without", () => {
  const pi = { PATH: "/usr/bin:/bin", PORTCULLIS_PATH: "/p/.venv/bin:/usr/bin:/bin" };
  assert.deepEqual(environment(pi, pi), { PATH: "/p/.venv/bin:/usr/bin:/bin" });
  const given = { ...pi, PATH: "/home/u/.pi/agent/bin:/usr/bin:/bin", LANG: "C", GONE: undefined };
  assert.deepEqual(environment(given, pi), { PATH: "/home/u/.pi/agent/bin:/p/.venv/bin:/usr/bin:/bin", LANG: "C" });
  // This command has a PATH that was set explicitly.
  assert.deepEqual(environment({ PATH: "/opt" }, pi), { PATH: "/opt" });
  assert.deepEqual(environment({ PATH: "/usr/bin" }, { PATH: "/usr/bin" }), { PATH: "/usr/bin" });
});

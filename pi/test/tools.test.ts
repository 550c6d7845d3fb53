import assert from "node:assert/strict";
import { test } from "node:test";
import { environment } from "../src/tools.ts";

test("commands get the PATH that pi itself does without", () => {
  const pi = { PATH: "/usr/bin:/bin", PORTCULLIS_PATH: "/p/.venv/bin:/usr/bin:/bin" };
  assert.deepEqual(environment(pi, pi), { PATH: "/p/.venv/bin:/usr/bin:/bin" });
  const given = { ...pi, PATH: "/home/u/.pi/agent/bin:/usr/bin:/bin", LANG: "C", GONE: undefined };
  assert.deepEqual(environment(given, pi), { PATH: "/home/u/.pi/agent/bin:/p/.venv/bin:/usr/bin:/bin", LANG: "C" });
  // Somebody has set another one for this command.
  assert.deepEqual(environment({ PATH: "/opt" }, pi), { PATH: "/opt" });
  assert.deepEqual(environment({ PATH: "/usr/bin" }, { PATH: "/usr/bin" }), { PATH: "/usr/bin" });
});

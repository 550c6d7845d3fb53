import assert from "node:assert/strict";
import { statSync } from "node:fs";
import { createConnection } from "node:net";
import { dirname } from "node:path";
import { test } from "node:test";
import { Relay } from "../src/relay.ts";
import { COMMAND, HELLO, startHost, until } from "./support.ts";

const WORDS = /^exec '(.*)' exec-client '(.*)' ([0-9a-f]{32})$/;

/** Sends `line` to the socket, as the client does, and returns the answer. */
function connect(socket: string, line: string, hangUp = false): Promise<string> {
  return new Promise((resolve, reject) => {
    let got = "";
    const connection = createConnection(socket, () => connection.write(`${line}\n`));
    connection.setEncoding("latin1").on("data", (text: string) => {
      got += text;
      if (hangUp) connection.destroy();
    });
    connection.on("error", reject).on("close", () => resolve(got));
  });
}

test("a command waits for its client, and runs once", async () => {
  const host = startHost();
  await host.call("hello", HELLO);
  const relay = new Relay();
  const [, program, socket = "", ticket] = WORDS.exec(await relay.commandFor(host, "c1", "echo $A; exit 7")) ?? [];
  assert.equal(program, host.path);
  assert.equal(statSync(dirname(socket)).mode & 0o777, 0o700);
  const request = JSON.stringify({ ticket, cwd: "/", env: { ...COMMAND.env, A: "alpha" } });
  assert.equal(await connect(socket, request), "o\0\0\0\x06alpha\ns\0\0\0\x01\x07");
  assert.match(await connect(socket, request), /^r.*nothing waits/s);
  const [, , , second] = WORDS.exec(await relay.commandFor(host, "c2", "echo x")) ?? [];
  relay.forget("c2");
  assert.match(await connect(socket, JSON.stringify({ ticket: second, cwd: "/", env: {} })), /^r.*nothing waits/s);
  for (const nonsense of ["", "{}", "null", "[]", "x"]) assert.match(await connect(socket, nonsense), /^r/);
  relay.close();
  assert.throws(() => statSync(dirname(socket)));
  await host.stop();
});

test("what is refused, and what a client that goes away leaves behind", async () => {
  const host = startHost();
  await host.call("hello", HELLO);
  const relay = new Relay();
  const run = async (script: string, hangUp = false) => {
    const [, , socket = "", ticket] = WORDS.exec(await relay.commandFor(host, "c1", script)) ?? [];
    return await connect(socket, JSON.stringify({ ticket, cwd: "/", env: COMMAND.env }), hangUp);
  };
  assert.match(await run("deny-me"), /^r.*Refused by the sandbox/s);
  const pid = Number((await run("echo $$; exec sleep 600", true)).slice(5));
  assert.ok(pid > 1);
  await until(() => { try { process.kill(pid, 0); return false; } catch { return true; } });
  relay.close();
  await host.stop();
});

/** Helpers for several tests: the fake host, sample messages, and waiting. */
import { fileURLToPath } from "node:url";
import { HostClient, type HostListener } from "../src/client.ts";
import type { AskParams } from "../src/protocol.ts";

export const FAKE_HOST = fileURLToPath(new URL("./fake_host.mjs", import.meta.url));

/** Starts the fake host; the variable `FAKE_HELLO` can make it misbehave. */
export function startHost(listener: Partial<HostListener> = {}, fakeHello?: string): HostClient {
  if (fakeHello === undefined) delete process.env.FAKE_HELLO;
  else process.env.FAKE_HELLO = fakeHello;
  try {
    return new HostClient(FAKE_HOST, {
      ask: (_ask, _signal, reply) => reply({ choice: "refuse", cause: "noInterface" }),
      withdraw: () => {},
      event: () => {},
      gone: () => {},
      ...listener,
    });
  } finally {
    delete process.env.FAKE_HELLO;
  }
}

export const HELLO = {
  protocol: 1, client: { name: "test", version: "0" }, piVersion: "0", mode: "print" as const, interactive: false,
  cwd: "/", agentDir: "/",
};

export const COMMAND = { callId: "c1", cwd: "/", env: { PATH: "/usr/bin:/bin" }, origin: "agent" as const };

export function askOf(askId: number, more: Partial<AskParams> = {}): AskParams {
  return {
    askId, title: "Run?", subject: "x", context: "c", sensitive: false, asker: "bash", reason: "r", policy: "p", rule: "u",
    options: [
      { key: "o", effect: "allow", label: "Once", width: 0, scope: "once" },
      { key: "s", effect: "allow", label: "Session", width: 0, scope: "session" },
    ],
    ...more,
  };
}

export async function until(happened: () => boolean): Promise<void> {
  for (let tries = 0; !happened(); tries++) {
    if (tries > 500) throw new Error("waited for 5 seconds in vain");
    await new Promise((resolve) => setTimeout(resolve, 10));
  }
}

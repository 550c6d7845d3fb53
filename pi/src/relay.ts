/**
 * Relays commands that a tool of another extension starts. Instead of the command the tool gets a small client of ours,
 * which reports where and with what environment it was started; then the host runs the command like those of our own
 * tool. If the tool starts programs on another machine, the client does not exist there, and no command runs.
 */
import { randomBytes } from "node:crypto";
import { mkdtempSync, rmSync } from "node:fs";
import { createServer, type Server, type Socket } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { HostClient } from "./client.ts";
import { commandOperations } from "./tools.ts";

/** The largest first message of the client; an environment is much smaller. */
const LONGEST_REQUEST = 4 * 1024 * 1024;
/** The largest part that the client accepts. */
const LONGEST_PART = 64 * 1024;

/** A command that waits for its client. */
interface Ticket {
  host: HostClient;
  callId: string;
  script: string;
}

interface ClientRequest {
  ticket: string;
  cwd: string;
  env: Record<string, string>;
}

export class Relay {
  readonly #tickets = new Map<string, Ticket>();
  #place: { server: Server; directory: string; socket: string } | undefined;

  /** Returns the command that replaces `script`; it can be started once. */
  async commandFor(host: HostClient, callId: string, script: string): Promise<string> {
    const { socket } = await this.#open();
    const ticket = randomBytes(16).toString("hex");
    this.#tickets.set(ticket, { host, callId, script });
    return ["exec", quoted(host.path), "exec-client", quoted(socket), ticket].join(" ");
  }

  /** Invalidates the unused commands of a call. */
  forget(callId: string): void {
    for (const [ticket, waiting] of this.#tickets) if (waiting.callId === callId) this.#tickets.delete(ticket);
  }

  /** Invalidates all commands. May be called more than once. */
  close(): void {
    this.#tickets.clear();
    this.#place?.server.close();
    if (this.#place !== undefined) rmSync(this.#place.directory, { recursive: true, force: true });
    this.#place = undefined;
  }

  async #open(): Promise<{ socket: string }> {
    if (this.#place !== undefined) return this.#place;
    // mkdtemp makes a directory that only the user can search.
    const directory = mkdtempSync(join(process.env.XDG_RUNTIME_DIR || tmpdir(), "portcullis-"));
    const socket = join(directory, "socket");
    const server = createServer((connection) => this.#serve(connection));
    this.#place = { server, directory, socket };
    await new Promise<void>((resolve, reject) => server.once("error", reject).listen(socket, resolve));
    // The server does not keep pi alive.
    server.unref();
    return this.#place;
  }

  #serve(connection: Socket): void {
    let said = "";
    const gone = new AbortController();
    connection.on("error", () => connection.destroy());
    connection.on("close", () => gone.abort());
    connection.setEncoding("utf8").on("data", (text: string) => {
      said += text;
      const end = said.indexOf("\n");
      if (said.length > LONGEST_REQUEST) connection.destroy();
      if (end === -1) return;
      connection.removeAllListeners("data").resume();
      void this.#run(connection, said.slice(0, end), gone.signal);
    });
  }

  async #run(connection: Socket, request: string, gone: AbortSignal): Promise<void> {
    const send = (kind: "o" | "s" | "r", payload: Buffer) => {
      const head = Buffer.alloc(5);
      head.write(kind, 0);
      head.writeUInt32BE(payload.length, 1);
      connection.write(Buffer.concat([head, payload]));
    };
    const onData = (data: Buffer) => {
      for (let at = 0; at < data.length; at += LONGEST_PART) send("o", data.subarray(at, at + LONGEST_PART));
    };
    try {
      const { ticket, cwd, env } = JSON.parse(request) as ClientRequest;
      const waiting = this.#tickets.get(ticket);
      if (waiting === undefined) throw new Error("nothing waits to be run here");
      this.#tickets.delete(ticket);
      const { exec } = commandOperations(waiting.host, waiting.callId, "agent");
      const { exitCode } = await exec(waiting.script, cwd, { onData, signal: gone, env });
      send("s", Buffer.from([exitCode === null || exitCode < 0 || exitCode > 255 ? 255 : exitCode]));
    } catch (error) {
      const why = Buffer.from(error instanceof Error ? error.message : String(error));
      send("r", why.subarray(0, LONGEST_PART));
    }
    connection.end();
  }
}

function quoted(word: string): string {
  return `'${word.replaceAll("'", "'\\''")}'`;
}

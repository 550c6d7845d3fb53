/**
 * The host process and the connection to it.
 *
 * A client never restarts its host: a host that died or sent an invalid message leaves everything closed, because its
 * grants, and the commands that still run under it, are unknown here.
 */
import { type ChildProcess, spawn } from "node:child_process";
import type { Readable, Writable } from "node:stream";
import type {
  AskParams, AskResponse, AskWithdrawNotification, DecideParams, DecideResponse, Empty, EscalateParams, EventNotification, ExecParams,
  ExecResponse, FileCloseParams, FileFindParams, FileGrepParams, FileListParams, FileListResponse, FileOpenParams,
  FileOpenResponse, FileOutputParams, FileReadParams, FileReadResponse, FileSearchResponse, FileWriteHandleParams, FileWriteParams, FileWriteResponse, HelloParams, HelloResponse, InspectParams,
  InspectResponse, MenuParams, MenuScreen, ReserveParams, ReserveResponse, StatusResponse, BranchCommitParams, BranchCommitResponse, BranchParams,
  BranchResponse, ChangesResponse, TurnParams, UndoParams, UndoResponse,
} from "./protocol.ts";
import { encode } from "./encode.ts";
import { frameSplitter, lineSplitter } from "./wire.ts";

/** Each method with its parameters and its result. */
interface Methods {
  hello: [HelloParams, HelloResponse];
  decide: [DecideParams, DecideResponse];
  escalate: [EscalateParams, DecideResponse];
  "file/open": [FileOpenParams, FileOpenResponse];
  "file/read": [FileReadParams, FileReadResponse];
  "file/write": [FileWriteParams, FileWriteResponse];
  "file/writeHandle": [FileWriteHandleParams, FileWriteResponse];
  "file/close": [FileCloseParams, Empty];
  "file/list": [FileListParams, FileListResponse];
  "file/find": [FileFindParams, FileSearchResponse];
  "file/grep": [FileGrepParams, FileSearchResponse];
  "file/output": [FileOutputParams, Empty];
  inspect: [InspectParams, InspectResponse];
  reserve: [ReserveParams, ReserveResponse];
  exec: [ExecParams, ExecResponse];
  status: [Empty, StatusResponse];
  menu: [MenuParams, MenuScreen];
  turn: [TurnParams, Empty];
  changes: [Empty, ChangesResponse];
  undo: [UndoParams, UndoResponse];
  branch: [BranchParams, BranchResponse];
  "branch/commit": [BranchCommitParams, BranchCommitResponse];
  shutdown: [Empty, Empty];
}

/** Messages that the host sends on its own initiative. */
export interface HostListener {
  /** A question; `reply` is called exactly once. */
  ask(params: AskParams, signal: AbortSignal | undefined, reply: (answer: AskResponse) => void): void;
  withdraw(notification: AskWithdrawNotification): void;
  event(notification: EventNotification): void;
  /** The host ended without a request to do so. */
  gone(why: string): void;
}

/** An error reply of the host. */
export class HostError extends Error {
  readonly code: number;
  readonly data: unknown;

  constructor(code: number, message: string, data: unknown) {
    super(message);
    this.code = code;
    this.data = data;
  }
}

/** The time that an aborted request has to report its end; pi's Esc must not block if the host hangs. */
const CANCEL_GRACE_MS = 5_000;
/** The time that the host has to clean up before it is killed. */
const STOP_GRACE_MS = 3_000;
/** The time to wait for output of a host that has ended, which may arrive after its end. */
const LAST_WORDS_MS = 50;
/** The last characters of the host's stderr that are kept, for the message that says why it ended. */
const MAX_STDERR_CHARACTERS = 2_000;

interface Waiting {
  callId: string | undefined;
  signal: AbortSignal | undefined;
  resolve(result: unknown): void;
  reject(error: Error): void;
}

interface Stream {
  onData(data: Buffer): void;
  end(): void;
}

type Endpoint = (Readable | Writable) & { ref?(): void; unref?(): void };

export class HostClient {
  /** The path of the host program. */
  readonly path: string;
  readonly #child: ChildProcess;
  readonly #listener: HostListener;
  readonly #waiting = new Map<number, Waiting>();
  readonly #streams = new Map<number, Stream>();
  readonly #exited: Promise<void>;
  #nextId = 1;
  #nextStream = 1;
  #stderr = "";
  #dead: string | undefined;
  #stopped: Promise<void> | undefined;

  constructor(path: string, listener: HostListener) {
    this.path = path;
    this.#listener = listener;
    // Started in the root directory, so that no relative name leads into the project.
    this.#child = spawn(path, ["serve"], { cwd: "/", stdio: ["pipe", "pipe", "pipe", "pipe"] });
    this.#exited = new Promise((resolve) => this.#child.once("exit", () => resolve()));
    this.#child.on("error", (error) => this.#die(error.message));
    this.#child.on("exit", (code, signal) => {
      if (signal !== null) this.#sweep();
      const why = `it ended with ${signal ?? `status ${code}`}`;
      setTimeout(() => this.#die(why), LAST_WORDS_MS);
    });
    for (const endpoint of this.#endpoints()) endpoint.on("error", (error: Error) => this.#die(error.message));
    this.#listen(this.#child.stdout, lineSplitter((line) => this.#message(line)));
    this.#listen(this.#child.stdio[3] as Readable | null, frameSplitter((id, payload) => this.#frame(id, payload)));
    this.#listen(this.#child.stderr, (chunk) => {
      this.#stderr = (this.#stderr + chunk.toString("utf8")).slice(-MAX_STDERR_CHARACTERS);
    });
    this.#holdProcess();
  }

  /** The reason why the host can no longer be used; undefined while it can. */
  get dead(): string | undefined {
    return this.#dead;
  }

  /** Sends a request. If `signal` fires, the host is told, and the call still waits for its reply. */
  call<M extends keyof Methods>(method: M, params: Methods[M][0], signal?: AbortSignal): Promise<Methods[M][1]> {
    if (this.#dead !== undefined) return Promise.reject(new Error(this.#dead));
    if (signal?.aborted) return Promise.reject(new Error("aborted"));
    const id = this.#nextId++;
    let line: string;
    try {
      line = encode({ id, method, params }, method === "decide" ? "refuse" : "replace");
    } catch (error) {
      return Promise.reject(error);
    }
    let grace: NodeJS.Timeout | undefined;
    const cancel = () => {
      this.#send({ method: "cancel", params: { id } });
      grace = setTimeout(() => this.#waiting.get(id)?.reject(new Error("aborted")), CANCEL_GRACE_MS);
    };
    signal?.addEventListener("abort", cancel, { once: true });
    const callId = "callId" in params && typeof params.callId === "string" ? params.callId : undefined;
    const reply = new Promise<unknown>((resolve, reject) => {
      this.#waiting.set(id, { callId, signal, resolve, reject });
      this.#holdProcess();
      this.#write(line);
    });
    return reply.finally(() => {
      clearTimeout(grace);
      signal?.removeEventListener("abort", cancel);
      this.#waiting.delete(id);
      this.#holdProcess();
    }) as Promise<Methods[M][1]>;
  }

  /** Runs a command; resolves when it has ended and all its output was passed to `onData`. */
  async exec(
    params: Omit<ExecParams, "stream">, onData: (data: Buffer) => void, signal?: AbortSignal,
  ): Promise<ExecResponse> {
    const stream = this.#nextStream++;
    const ended = new Promise<void>((resolve) => this.#streams.set(stream, { onData, end: resolve }));
    try {
      const response = await this.call("exec", { ...params, stream }, signal);
      if (response.denied === undefined) await ended;
      return response;
    } finally {
      this.#streams.delete(stream);
      this.#holdProcess();
    }
  }

  /** Ends the host; resolves when it is gone. May be called more than once. */
  stop(): Promise<void> {
    // A dead host was killed when it was found dead; Node may never report the end of a failed start.
    if (this.#dead !== undefined) return Promise.resolve();
    this.#stopped ??= this.#stop();
    return this.#stopped;
  }

  async #stop(): Promise<void> {
    let timer: NodeJS.Timeout | undefined;
    const late = new Promise<void>((resolve) => (timer = setTimeout(resolve, STOP_GRACE_MS)));
    const farewell = this.call("shutdown", {}).then(() => {}, () => {});
    await Promise.race([farewell, late]);
    this.#child.stdin?.end();
    await Promise.race([this.#exited, late]);
    clearTimeout(timer);
    this.#die("it was stopped");
  }

  /** Runs `sweep`, which removes what a killed host left; otherwise the next session would do so. */
  #sweep(): void {
    const broom = spawn(this.path, ["sweep"], { cwd: "/", stdio: "ignore", detached: true });
    broom.on("error", () => {});
    broom.unref();
  }

  #endpoints(): Endpoint[] {
    return this.#child.stdio.filter((endpoint) => endpoint !== null && endpoint !== undefined) as Endpoint[];
  }

  #listen(readable: Readable | null, take: (chunk: Buffer) => void): void {
    readable?.on("data", (chunk: Buffer) => {
      try {
        take(chunk);
      } catch (error) {
        this.#die(error instanceof Error ? error.message : String(error));
      }
    });
  }

  /**
   * `pi -p` ends when no handle keeps Node's event loop alive: the host keeps it alive only while a reply or the output
   * of a command is awaited.
   */
  #holdProcess(): void {
    const busy = this.#waiting.size > 0 || this.#streams.size > 0;
    for (const endpoint of [this.#child, ...this.#endpoints()]) busy ? endpoint.ref?.() : endpoint.unref?.();
  }

  #send(message: object): void {
    this.#write(encode(message, "replace"));
  }

  #write(line: string): void {
    if (this.#dead === undefined) this.#child.stdin?.write(`${line}\n`);
  }

  #message(line: string): void {
    if (this.#dead !== undefined) return;
    const message = JSON.parse(line) as {
      id?: number | null; method?: string; params?: unknown; result?: unknown;
      error?: { code: number; message: string; data?: unknown };
    };
    if (message.method === "ask") return this.#ask(message.id as number, message.params as AskParams);
    if (message.method === "ask/withdraw") return this.#listener.withdraw(message.params as AskWithdrawNotification);
    if (message.method === "event") return this.#listener.event(message.params as EventNotification);
    if (message.method !== undefined) throw new Error("the host used a method that is unknown here");
    const waiting = typeof message.id === "number" ? this.#waiting.get(message.id) : undefined;
    if (message.error !== undefined) {
      const { code, message: text, data } = message.error;
      // An error without an id means that the host could not parse a message of ours, so no reply to it will come.
      if (typeof message.id !== "number") throw new Error(`it refused a message: ${text}`);
      waiting?.reject(new HostError(code, text, data));
    } else {
      waiting?.resolve(message.result);
    }
  }

  #ask(id: number, params: AskParams): void {
    const about = [...this.#waiting.values()].find((w) => w.callId !== undefined && w.callId === params.callId);
    this.#listener.ask(params, about?.signal, (answer) => this.#send({ id, result: answer }));
  }

  #frame(id: number, payload: Buffer): void {
    const stream = this.#streams.get(id);
    if (payload.length === 0) stream?.end();
    else stream?.onData(payload);
  }

  #die(why: string): void {
    if (this.#dead !== undefined) return;
    const words = this.#stderr.trim();
    this.#dead = words === "" ? why : `${why}: ${words}`;
    this.#child.kill("SIGKILL");
    for (const waiting of [...this.#waiting.values()]) waiting.reject(new Error(`the sandbox host is gone (${this.#dead})`));
    for (const stream of this.#streams.values()) stream.end();
    if (this.#stopped === undefined) this.#listener.gone(this.#dead);
  }
}

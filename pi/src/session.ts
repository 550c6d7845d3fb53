/**
 * One pi session and its host. Nothing is permitted until the host has answered. A host that dies is restarted once for
 * each start of the session; after that the session stays closed until the user starts it again.
 */
import type { ExtensionContext } from "@earendil-works/pi-coding-agent";
import { HostClient, HostError } from "./client.ts";
import { isSubAgent } from "./flag.ts";
import {
  closedForModel, closedForUser, EXIT_CLOSED, EXIT_REFUSED, NOT_STARTED, otherVersion, plain, restarted, STARTING,
} from "./messages.ts";
import { type Dialogs, PromptQueue, SelectDialogs } from "./prompt.ts";
import {
  type EventNotification, type HelloParams, type HelloResponse, type MenuEvent, type MenuScreen, PROTOCOL_VERSION,
  type RunMode, type StatusResponse, type Switch, VERSION_MISMATCH,
} from "./protocol.ts";
import { Refusals } from "./refusals.ts";
import { showStatus, type State } from "./status.ts";

/** The time for the handshake: a host without a warm cache compiles its policies before it answers. */
const HELLO_TIMEOUT_MS = 60_000;
/** The number of restarts of a dead host before the user has to start it. */
const RESTARTS = 1;

/** The information about pi that `index.ts` passes to the session. */
export interface Facts {
  extensionVersion: string;
  piVersion: string;
  agentDir: string;
  argv: readonly string[];
  /** Returns the path of the host, or throws. */
  findHost(cwd: string): string;
  /** Returns the command after which the extension and this host are of the same version. */
  mendingCommand(cwd: string, host: string): string;
  /** Makes dialogs for questions on pi's own terminal. */
  terminalDialogs(context: ExtensionContext): Dialogs;
  /** Adds the gate to every pi that this one starts, or removes it again. */
  guardChildren(guarded: boolean): void;
  /** Returns why this machine does not let pi run without the sandbox, or undefined if it does. */
  whyKept(cwd: string): string | undefined;
  /** Makes pi end with a status of Portcullis where it would end with success; used where pi has no interface. */
  failRun(status: number): void;
}

export class Session {
  readonly #facts: Facts;
  #state: State = { kind: "closed", why: NOT_STARTED };
  #host: HostClient | undefined;
  #prompts = new PromptQueue(undefined);
  #context: ExtensionContext | undefined;
  #waiting = 0;
  #ready: Promise<void> = Promise.resolve();
  #restartsLeft = 0;
  /** The user's choice at the last start; if undefined, the settings decide. */
  #wanted: Switch | undefined;
  /** Counts starts and stops, so that a start detects that a later one has superseded it. */
  #turn = 0;
  /** The host sends refusals only where there is no interface. */
  readonly #refusals = new Refusals((line) => console.error(line));

  constructor(facts: Facts) {
    this.#facts = facts;
  }

  get state(): State {
    return this.#state;
  }

  /** Returns the host, or undefined where pi's own tools run unchanged. Throws while nothing is permitted. */
  host(): HostClient | undefined {
    if (this.#state.kind === "disabled") return undefined;
    if (this.#state.kind === "open" && this.#host !== undefined && this.#host.dead === undefined) return this.#host;
    throw new Error(closedForModel(this.#whyClosed()));
  }

  /** Resolves when the host has answered or failed to start. Never rejects; every gate waits for it. */
  get ready(): Promise<void> {
    return this.#ready;
  }

  /** Whether pi has a terminal of its own to draw on. */
  get isTerminal(): boolean {
    return this.#context !== undefined && this.#context.hasUI && runMode(this.#context, this.#facts.argv) === "tui";
  }

  /**
   * Starts the host and opens the session when the host has answered. Never throws: a failure leaves everything closed.
   * `sandbox` is the user's choice for this session; without it the settings decide.
   */
  start(context: ExtensionContext, sandbox?: Switch): Promise<void> {
    this.#restartsLeft = RESTARTS;
    this.#wanted = sandbox;
    this.#ready = this.#open(context);
    return this.#ready;
  }

  async #open(context: ExtensionContext): Promise<void> {
    const turn = ++this.#turn;
    this.#context = context;
    this.#enter({ kind: "starting" });
    await this.#end();
    if (turn !== this.#turn) return;
    try {
      const prompts = new PromptQueue(this.#dialogs(context), (waiting) => this.#count(waiting));
      this.#prompts = prompts;
      const host = new HostClient(this.#facts.findHost(context.cwd), {
        ask: (ask, signal, reply) => prompts.ask(ask, signal, reply),
        withdraw: (notification) => prompts.withdraw(notification.askId),
        event: (notification) => this.#event(host, notification),
        gone: (why) => this.#gone(host, why),
      });
      this.#host = host;
      const hello = await this.#greet(host, context, this.#wanted);
      const { extensionVersion } = this.#facts;
      const mend = () => otherVersion(extensionVersion, hello.host.version, this.#facts.mendingCommand(context.cwd, host.path));
      if (hello.protocol !== PROTOCOL_VERSION) throw new Error(mend());
      if (this.#host !== host || host.dead !== undefined) throw new Error(host.dead ?? "it was stopped");
      const state = stateOf(hello.status);
      this.#enter(state);
      if (hello.host.version !== extensionVersion) this.tell(mend(), "warning");
      // The host checks its settings every second, and opens by itself once they are repaired.
      if (state.kind === "closed") this.tell(state.why, "error");
    } catch (error) {
      if (turn === this.#turn) await this.#close(error instanceof Error ? error.message : String(error));
    }
  }

  /** Ends the host; may be called at any time and more than once. */
  async stop(): Promise<void> {
    this.#turn += 1;
    this.#state = { kind: "closed", why: "the session has ended" };
    // First: pi may exit before the host has ended.
    this.#refusals.end();
    await this.#end();
  }

  async #end(): Promise<void> {
    const host = this.#host;
    this.#host = undefined;
    this.#prompts.clear();
    await host?.stop();
  }

  /**
   * Turns the sandbox off for this session: the host ends, and with it the sandbox, its processes, and every answer
   * that it remembered; pi's own tools run unchanged. Nothing changes if the machine does not permit it.
   */
  async turnOff(context: ExtensionContext): Promise<void> {
    const kept = this.#facts.whyKept(context.cwd);
    if (kept !== undefined) return this.tell(kept, "error");
    await this.stop();
    this.disable(context);
  }

  /**
   * Lets `use` exchange the events of `/sandbox` with the host; if the sandbox is off, a host is started for that
   * purpose.
   */
  async withMenuHost<T>(
    context: ExtensionContext, use: (ask: (event: MenuEvent) => Promise<MenuScreen>) => Promise<T>,
  ): Promise<T | undefined> {
    const running = this.#host;
    if (running !== undefined && running.dead === undefined) {
      // The first entry of the menu depends on the state, and the footer must show the same state.
      const status = await running.call("status", {});
      if (this.#host === running) this.#enter(stateOf(status));
      if (this.#state.kind !== "closed") return await use((event) => running.call("menu", { event }));
    }
    if (this.#state.kind !== "disabled") {
      this.tell(closedForUser(this.#whyClosed(), this.isTerminal), "error");
      return undefined;
    }
    const nobody = { ask: refuseAll, withdraw: () => {}, event: () => {}, gone: () => {} };
    const host = new HostClient(this.#facts.findHost(context.cwd), nobody);
    try {
      await this.#greet(host, context, "off");
      return await use((event) => host.call("menu", { event }));
    } finally {
      await host.stop();
    }
  }

  /** Shows no question until the returned function is called; questions wait, and the footer shows their number. */
  holdQuestions(): () => void {
    return this.#prompts.hold();
  }

  /** Leaves pi's tools unchanged, because the user chose so. */
  disable(context: ExtensionContext): void {
    this.#context = context;
    this.#enter({ kind: "disabled" });
  }

  /** Shows a line to the user, on stderr where there is no interface. */
  tell(text: string, level: "info" | "warning" | "error"): void {
    try {
      if (this.#context?.hasUI) return this.#context.ui.notify(text, level);
    } catch {
      // pi throws when an interface is used whose session it has replaced.
    }
    console.error(text);
  }

  #dialogs(context: ExtensionContext): Dialogs | undefined {
    if (!context.hasUI) return undefined;
    return this.isTerminal ? this.#facts.terminalDialogs(context) : new SelectDialogs(context.ui);
  }

  async #greet(host: HostClient, context: ExtensionContext, sandbox?: Switch): Promise<HelloResponse> {
    const timeout = AbortSignal.timeout(HELLO_TIMEOUT_MS);
    try {
      return await host.call("hello", this.#hello(context, sandbox), timeout);
    } catch (error) {
      if (timeout.aborted) throw new Error(`the host did not answer within ${HELLO_TIMEOUT_MS / 1000} seconds`);
      if (!(error instanceof HostError) || error.code !== VERSION_MISMATCH) throw error;
      throw new Error(`${error.message}: run \`${this.#facts.mendingCommand(context.cwd, host.path)}\``);
    }
  }

  #hello(context: ExtensionContext, sandbox?: Switch): HelloParams {
    const sessionFile = context.sessionManager.getSessionFile();
    return {
      protocol: PROTOCOL_VERSION,
      client: { name: "@portcullis/pi", version: this.#facts.extensionVersion },
      piVersion: this.#facts.piVersion,
      mode: runMode(context, this.#facts.argv),
      interactive: context.hasUI,
      cwd: context.cwd,
      agentDir: this.#facts.agentDir,
      sessionId: context.sessionManager.getSessionId(),
      ...(sessionFile === undefined ? {} : { sessionFile }),
      ...projectTrust(context),
      ...(sandbox === undefined ? {} : { sandbox }),
    };
  }

  #event(host: HostClient, notification: EventNotification): void {
    if (this.#host !== host) return;
    if (notification.kind === "refused") {
      this.#refusals.add(notification);
      // A sub-agent reports to its parent, which would take the status for a failure of the agent itself.
      if (this.#refusals.fails && !isSubAgent()) this.#facts.failRun(EXIT_REFUSED);
      return;
    }
    if (notification.kind === "notice") return this.tell(plain(notification.text, 2_000), notification.level);
    // Until the host has answered, the handshake decides.
    if (this.#state.kind !== "starting") this.#enter(stateOf(notification.status));
  }

  #gone(host: HostClient, why: string): void {
    // During the handshake, the handshake itself reports the death of the host.
    if (this.#host !== host || this.#state.kind === "starting") return;
    if (this.#context === undefined || this.#restartsLeft === 0) {
      void this.#close(`the host is gone, ${why}`);
      return;
    }
    this.#restartsLeft -= 1;
    this.#ready = this.#restart(this.#context, why);
  }

  /** Starts a host in the place of one that died, whose answers, grants and commands are gone. */
  async #restart(context: ExtensionContext, why: string): Promise<void> {
    await this.#open(context);
    if (this.#host !== undefined) this.tell(restarted(why, this.isTerminal), "warning");
  }

  #whyClosed(): string {
    if (this.#state.kind === "starting") return STARTING;
    return this.#state.kind === "closed" ? this.#state.why : this.#host?.dead ?? "the host is gone";
  }

  async #close(why: string): Promise<void> {
    const host = this.#host;
    this.#host = undefined;
    this.#prompts.clear();
    this.#enter({ kind: "closed", why });
    this.tell(closedForUser(why, this.isTerminal), "error");
    await host?.stop();
  }

  #count(waiting: number): void {
    this.#waiting = waiting;
    this.#enter(this.#state);
  }

  #enter(state: State): void {
    this.#state = state;
    this.#facts.guardChildren(state.kind !== "disabled");
    if (this.#context === undefined) return;
    if (state.kind === "closed" && !this.#context.hasUI) this.#facts.failRun(EXIT_CLOSED);
    try {
      showStatus(this.#context.ui, state, this.#waiting);
    } catch {
      // A footer that cannot be drawn, as when pi has replaced the session, does not affect the state.
    }
  }
}

function refuseAll(_ask: unknown, _signal: unknown, reply: (answer: { choice: "refuse"; cause: "noInterface" }) => void): void {
  reply({ choice: "refuse", cause: "noInterface" });
}

/**
 * Returns the state for a status of the host. A host that is itself closed, or in a state unknown here, opens nothing.
 */
function stateOf(status: StatusResponse): State {
  if (status.state === "enabled") return { kind: "open", status };
  if (status.state === "disabled") return { kind: "disabled" };
  return { kind: "closed", why: status.warnings.join("; ") || "the host permits nothing" };
}

/**
 * Returns pi's trust in the project. pi 0.74 has no project trust; without an answer of pi the project is not trusted.
 */
function projectTrust(context: ExtensionContext): { projectTrusted?: boolean } {
  const { isProjectTrusted } = context as { isProjectTrusted?: () => boolean };
  return isProjectTrusted === undefined ? {} : { projectTrusted: isProjectTrusted.call(context) };
}

function runMode(context: ExtensionContext, argv: readonly string[]): RunMode {
  // pi 0.74 does not report its mode, so the command line decides.
  const mode = (context as { mode?: RunMode }).mode;
  if (mode !== undefined) return mode;
  const named = argv[argv.indexOf("--mode") + 1];
  if (context.hasUI) return named === "rpc" ? "rpc" : "tui";
  return named === "json" ? "json" : "print";
}

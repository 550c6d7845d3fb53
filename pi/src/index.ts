/**
 * The pi extension: it connects pi to the Portcullis host and makes no decision itself.
 *
 * pi continues when a handler throws in session_start, so everything is closed from the moment this file is loaded, and
 * opens only after the handshake with the host.
 */
import { homedir } from "node:os";
import { dirname } from "node:path";
import { fileURLToPath } from "node:url";
import {
  AgentSession, createBashToolDefinition, createEditToolDefinition, createFindToolDefinition, createGrepToolDefinition,
  createLsToolDefinition, createReadToolDefinition, createWriteToolDefinition, type ExtensionAPI, type ExtensionContext, getAgentDir, VERSION,
} from "@earendil-works/pi-coding-agent";
import { Markdown, Text, TruncatedText } from "@earendil-works/pi-tui";
import { sanitize } from "./sanitize.ts";
import { guardChildren } from "./children.ts";
import { openBranch } from "./branch.ts";
import { announce, inquire } from "./duplicate-load.ts";
import { FLAG, isOnCommandLine, readSwitch } from "./flag.ts";
import { block, gateToolCall, gateUserCommand, refusedCommand } from "./gate.ts";
import { inspectToolResult, UserOutputs } from "./inspect.ts";
import { findHost, mendingCommand, type Surroundings } from "./lookup.ts";
import { openMenu } from "./menu-ui.ts";
import { BROKEN_OFF, FLAG_ATE_PROMPT, takenOver, TWICE } from "./messages.ts";
import { TerminalDialogs } from "./prompt-ui.ts";
import { OutsideTool } from "./escalate-tool.ts";
import { Relay } from "./relay.ts";
import { ReserveTool } from "./reserve.ts";
import { askAboutRpcCommands } from "./rpc-bash.ts";
import { Session } from "./session.ts";
import { OwnTools } from "./tools.ts";
import { WholeCalls } from "./truncated-calls.ts";
import { whyKept } from "./unprotected.ts";
import { Turns } from "./turns.ts";
import { offerUndo, openUndo } from "./undo.ts";

const EXTENSION_VERSION = "0.1.0";

export default function portcullis(pi: ExtensionAPI): void {
  if (inquire(pi.events).present) return standBy(pi);
  const copy = announce(pi.events);
  const argv = process.argv.slice(2);
  const session = new Session({
    extensionVersion: EXTENSION_VERSION,
    piVersion: VERSION,
    agentDir: getAgentDir(),
    argv,
    findHost: (cwd) => findHost(surroundings(cwd)),
    mendingCommand: (cwd, host) => mendingCommand(surroundings(cwd), host),
    terminalDialogs: (context) => new TerminalDialogs(context.ui),
    guardChildren,
    whyKept: (cwd) => whyKept(() => findHost(surroundings(cwd))),
    failRun,
  });
  const own = new OwnTools(VERSION.startsWith("0.") ? "any" : "real");
  const reserve = new ReserveTool();
  const outside = new OutsideTool(MAKERS.bash);
  const relay = new Relay();
  const turns = new Turns();
  pi.registerFlag(FLAG, {
    description: "Run pi's tools without the Portcullis sandbox (put it after the prompt)",
    type: "boolean",
    default: false,
  });
  // Called only when the session starts: a tool that is registered while pi loads its extensions must not clash with
  // one of another extension, or pi refuses to start. Without the sandbox pi's own tools stay in place, with all their
  // settings.
  let armed = false;
  const arm = () => {
    if (armed) return;
    armed = true;
    sanitize([Text, TruncatedText, Markdown].map((kind) => kind.prototype));
    const others = own.register(pi, session, MAKERS, process.cwd());
    if (others.size > 0) session.tell(takenOver(others), "warning");
  };
  let opening = Promise.resolve();
  let openings = 0;
  /** Starts the session and registers the tools. Never rejects: if a step fails, pi's own tools are blocked. */
  const open = async (context: ExtensionContext) => {
    const mine = ++openings;
    try {
      await session.start(context);
      // pi has ended or replaced the session meanwhile.
      if (mine !== openings) return;
      if (session.state.kind !== "disabled") arm();
      reserve.offer(pi, session);
      outside.offer(pi, session, context.cwd);
    } catch (error) {
      session.tell(error instanceof Error ? error.message : String(error), "error");
    }
  };
  const ready = async () => {
    await opening;
    await session.ready;
  };
  pi.registerCommand("sandbox", {
    description: "Show the sandbox, turn it on or off, edit what it allows",
    handler: async (_arguments, context) => {
      try {
        await ready();
        await openMenu(session, context, arm);
      } catch (error) {
        session.tell(error instanceof Error ? error.message : String(error), "error");
      }
    },
  });

  /** Does something about the user's files; a failure is told and changes nothing else. */
  const trying = async (what: string, act: () => Promise<void>) => {
    try {
      await ready();
      await act();
    } catch (error) {
      session.tell(`${what}: ${error instanceof Error ? error.message : String(error)}`, "error");
    }
  };
  const undoing = (act: () => Promise<void>) => trying("undo", act);
  pi.registerCommand("branch", {
    description: "Review what the agent changed in a branch, and commit it to the project",
    handler: (named, context) => trying("branch", () => openBranch(session, context, named.trim())),
  });
  pi.registerCommand("undo", {
    description: "Take back what the agent changed in your files",
    handler: (named, context) => undoing(() => openUndo(session, context, named.trim())),
  });
  pi.on("session_tree", (_event, context) => undoing(() => offerUndo(session, context, idsOf(context))));
  pi.on("session_before_fork", (event, context) => undoing(() => {
    const ids = idsOf(context, event.entryId);
    if (event.position === "before") ids.delete(event.entryId);
    return offerUndo(session, context, ids);
  }));

  const keptAtStart = isOnCommandLine(argv) ? whyKept(() => findHost(surroundings(process.cwd()))) : undefined;
  guardChildren(!isOnCommandLine(argv) || keptAtStart !== undefined);
  pi.on("session_start", async (event, context) => {
    copy.started(event);
    const { off, atePrompt } = readSwitch(pi.getFlag(FLAG), argv);
    const kept = off ? keptAtStart ?? whyKept(() => findHost(surroundings(context.cwd))) : undefined;
    if (off && kept === undefined) session.disable(context);
    else opening = open(context);
    // pi 0.74 drops a line that is typed before this handler returns; on a terminal it must not wait for the host.
    if (!session.isTerminal) await opening;
    if (kept !== undefined) session.tell(kept, "warning");
    if (atePrompt) session.tell(FLAG_ATE_PROMPT, "warning");
  });
  pi.on("session_shutdown", async () => {
    openings += 1;
    copy.leave();
    relay.close();
    await session.stop();
  });
  const whole = new WholeCalls();
  if (VERSION.startsWith("0.")) {
    askAboutRpcCommands(AgentSession.prototype);
    pi.on("message_update", (event) => whole.take(event.assistantMessageEvent));
  }
  pi.on("tool_call", async (event, context) => {
    await ready();
    if (whole.isBroken(event.toolCallId) && session.state.kind !== "disabled") return block(BROKEN_OFF);
    // Without its turn a call is recorded all the same.
    await turns.begin(session, context.sessionManager, context.signal).catch(() => {});
    return gateToolCall(pi, session, [own, reserve, outside], relay, event, context);
  });
  pi.on("tool_result", (event, context) => {
    relay.forget(event.toolCallId);
    return inspectToolResult(pi, session, event, context);
  });
  const outputs = new UserOutputs();
  pi.on("context", (event) => outputs.name(session, event.messages));
  pi.on("user_bash", async (event) => {
    await ready();
    await turns.command(session, event.command).catch(() => {});
    return gateUserCommand(session);
  });
  pi.on("before_agent_start", async (event, context) => {
    await ready();
    // The settings may have changed since the session began.
    outside.offer(pi, session, context.cwd);
    const brief = session.state.kind === "open" ? session.state.status.brief : "";
    return brief === "" ? undefined : { systemPrompt: `${event.systemPrompt}\n\n${brief}` };
  });
}

/** Returns the ids of the entries on pi's branch, or on the one that ends with an entry. */
function idsOf({ sessionManager }: ExtensionContext, end?: string): Set<string> {
  return new Set(sessionManager.getBranch(end).map(({ id }) => id));
}

function surroundings(cwd: string): Surroundings {
  return {
    env: process.env, cwd, home: homedir(), packageDir: dirname(dirname(fileURLToPath(import.meta.url))),
    platform: process.platform, arch: process.arch,
  };
}

let status: number | undefined;

/** Makes pi end with `wanted` where it would end with success. A run in which all tools were blocked counts as that. */
function failRun(wanted: number): void {
  if (status === undefined) {
    process.once("exit", () => {
      if (!process.exitCode) process.exitCode = status;
    });
  }
  status = Math.min(status ?? wanted, wanted);
}

const MAKERS = {
  bash: createBashToolDefinition,
  read: createReadToolDefinition,
  write: createWriteToolDefinition,
  edit: createEditToolDefinition,
  ls: createLsToolDefinition,
  find: createFindToolDefinition,
  grep: createGrepToolDefinition,
};

/** Handlers of a second copy: they do nothing, unless the first copy turns out not to be running. */
function standBy(pi: ExtensionAPI): void {
  let alone = true;
  pi.on("session_start", (event) => {
    alone = !inquire(pi.events, event).started;
  });
  pi.on("tool_call", () => (alone ? block(TWICE) : undefined));
  pi.on("user_bash", () => (alone ? refusedCommand(TWICE) : undefined));
}

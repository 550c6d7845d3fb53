/**
 * The pi extension: it connects pi to the Portcullis host and decides nothing itself.
 *
 * pi goes on when a handler throws in session_start, so everything is closed from the moment this file is
 * loaded, and opens only after the handshake with the host.
 */
import { homedir } from "node:os";
import { dirname } from "node:path";
import { fileURLToPath } from "node:url";
import {
  createBashToolDefinition, createEditToolDefinition, createFindToolDefinition, createGrepToolDefinition,
  createLsToolDefinition, createReadToolDefinition, createWriteToolDefinition, type ExtensionAPI, getAgentDir, VERSION,
} from "@earendil-works/pi-coding-agent";
import { announce, inquire } from "./copies.ts";
import { FLAG, isOnCommandLine, readSwitch } from "./flag.ts";
import { block, gateToolCall, gateUserCommand, refusedCommand } from "./gate.ts";
import { inspectToolResult } from "./inspect.ts";
import { findHost } from "./lookup.ts";
import { openMenu } from "./menu-ui.ts";
import { FLAG_ATE_PROMPT, TWICE } from "./messages.ts";
import { TerminalDialogs } from "./prompt-ui.ts";
import { ReserveTool } from "./reserve.ts";
import { Session } from "./session.ts";
import { OwnTools } from "./tools.ts";

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
    findHost: (cwd) => findHost({
      env: process.env, cwd, home: homedir(), packageDir: dirname(dirname(fileURLToPath(import.meta.url))),
      platform: process.platform, arch: process.arch,
    }),
    terminalDialogs: (context) => new TerminalDialogs(context.ui),
  });
  const own = new OwnTools();
  const reserve = new ReserveTool();
  pi.registerFlag(FLAG, {
    description: "Run pi's tools without the Portcullis sandbox (put it after the prompt)",
    type: "boolean",
    default: false,
  });
  // Without the sandbox pi's own tools stay in place, with all their settings.
  let armed = false;
  const arm = () => {
    if (!armed) own.register(pi, session, MAKERS, process.cwd());
    armed = true;
  };
  if (!isOnCommandLine(argv) && !wouldReactivate(argv)) arm();
  pi.registerCommand("sandbox", {
    description: "Show the sandbox, turn it on or off, edit what it allows",
    handler: async (_arguments, context) => {
      try {
        await openMenu(session, context, arm);
      } catch (error) {
        session.tell(error instanceof Error ? error.message : String(error), "error");
      }
    },
  });

  pi.on("session_start", async (event, context) => {
    copy.started(event);
    keepInactive(pi, argv);
    const { off, atePrompt } = readSwitch(pi.getFlag(FLAG), argv);
    if (off) session.disable(context);
    else await session.start(context);
    reserve.offer(pi, session);
    if (atePrompt) session.tell(FLAG_ATE_PROMPT, "warning");
  });
  pi.on("session_shutdown", async () => {
    copy.leave();
    await session.stop();
  });
  pi.on("tool_call", (event, context) => gateToolCall(pi, session, [own, reserve], event, context));
  pi.on("tool_result", (event, context) => inspectToolResult(pi, session, event, context));
  pi.on("user_bash", () => gateUserCommand(session));
  pi.on("before_agent_start", (event) => {
    const brief = session.state.kind === "open" ? session.state.status.brief : "";
    return brief === "" ? undefined : { systemPrompt: `${event.systemPrompt}\n\n${brief}` };
  });
}

/** pi 0.x makes every tool of an extension active, also where the user switched pi's own tools off. */
function wouldReactivate(argv: readonly string[]): boolean {
  return VERSION.startsWith("0.") && (argv.includes("--no-builtin-tools") || argv.includes("-nbt"));
}

/** Tools that pi leaves inactive unless the user names them. */
const USUALLY_INACTIVE = new Set(["ls", "find", "grep"]);

/** pi 0.x activates every tool of an extension; those that the user did not ask for are put away again. */
function keepInactive(pi: ExtensionAPI, argv: readonly string[]): void {
  if (!VERSION.startsWith("0.") || argv.includes("--tools") || argv.includes("-t")) return;
  const active = pi.getActiveTools();
  const wanted = active.filter((name) => !USUALLY_INACTIVE.has(name));
  if (wanted.length < active.length) pi.setActiveTools(wanted);
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

/** What a second copy does: nothing, unless the first one turns out not to be running. */
function standBy(pi: ExtensionAPI): void {
  let alone = true;
  pi.on("session_start", (event) => {
    alone = !inquire(pi.events, event).started;
  });
  pi.on("tool_call", () => (alone ? block(TWICE) : undefined));
  pi.on("user_bash", () => (alone ? refusedCommand(TWICE) : undefined));
}

/** The gate before every tool call and every command of the user. Any failure in it blocks the call. */
import type {
  ExtensionAPI, ExtensionContext, ToolCallEvent, ToolCallEventResult, UserBashEventResult,
} from "@earendil-works/pi-coding-agent";
import { notOurs, refused } from "./messages.ts";
import { BUILT_IN, providerOf } from "./provider.ts";
import type { Relay } from "./relay.ts";
import type { Session } from "./session.ts";
import { commandOperations, isOwnName } from "./tools.ts";

/** A set of tools that the host executes. */
export interface Ours {
  /** Returns whether the tool that pi would call by this name is one of them. */
  isInForce(pi: Pick<ExtensionAPI, "getAllTools">, name: string): boolean;
}

/** Lets a call through, changes its input, or blocks it. */
export async function gateToolCall(
  pi: ExtensionAPI, session: Session, ours: readonly Ours[], relay: Relay, event: ToolCallEvent, context: ExtensionContext,
): Promise<ToolCallEventResult | undefined> {
  try {
    const host = session.host();
    if (host === undefined) return undefined;
    // Calls of our own tools are decided when they act, on the files that they open and the commands that they run.
    if (ours.some((tools) => tools.isInForce(pi, event.toolName))) return undefined;
    const provider = providerOf(pi, event.toolName);
    const takenOver = isOwnName(event.toolName);
    // pi's own tools would run unconfined.
    if (takenOver && provider === BUILT_IN) return block(notOurs(event.toolName));
    const parentCallId = (event as { parentToolCallId?: string }).parentToolCallId;
    const input = event.input as Record<string, unknown>;
    const verdict = await host.call("decide", {
      callId: event.toolCallId, tool: event.toolName, provider, input,
      ...(takenOver ? { cwd: context.cwd } : {}),
      ...(parentCallId === undefined ? {} : { parentCallId }),
    }, context.signal);
    if (verdict.effect === "deny") return block(refused(verdict));
    if (verdict.rewrittenInput !== undefined) replace(input, verdict.rewrittenInput);
    if (verdict.effect === "exec") input.command = await relay.commandFor(host, event.toolCallId, String(input.command));
    return undefined;
  } catch (error) {
    return block(error instanceof Error ? error.message : String(error));
  }
}

let userCommands = 0;

/** Sends the user's own commands to the host. It must not throw: pi 0.74 would then run them unconfined. */
export function gateUserCommand(session: Session): UserBashEventResult | undefined {
  try {
    const host = session.host();
    if (host === undefined) return undefined;
    return { operations: commandOperations(host, `user-${++userCommands}`, "user") };
  } catch (error) {
    return refusedCommand(error instanceof Error ? error.message : String(error));
  }
}

/** Returns the result for a command of the user that did not run, with the reason. */
export function refusedCommand(why: string): UserBashEventResult {
  return { result: { output: why, exitCode: 126, cancelled: false, truncated: false } };
}

export function block(reason: string): ToolCallEventResult {
  return { block: true, reason };
}

/** Changes `input` in place, because pi continues with that very object. */
export function replace(input: Record<string, unknown>, rewritten: Record<string, unknown>): void {
  for (const key of Object.keys(input)) delete input[key];
  // Without an assignment: assigning to a key `__proto__` would set the object's prototype.
  for (const [key, value] of Object.entries(rewritten)) {
    Object.defineProperty(input, key, { value, writable: true, enumerable: true, configurable: true });
  }
}

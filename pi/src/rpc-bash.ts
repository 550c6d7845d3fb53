/**
 * The `bash` command of pi's RPC. pi 1.x asks extensions about it, as about the `!` of its terminal; pi 0.x runs it
 * without asking, so this module adds that step.
 */
import type { UserBashEventResult } from "@earendil-works/pi-coding-agent";

type Execute = (this: Asking, command: string, onChunk?: unknown, options?: { operations?: unknown }) => Promise<unknown>;

/** The part of pi's session that is used. */
interface Asking {
  extensionRunner: { emitUserBash(event: object): Promise<UserBashEventResult | undefined> };
  sessionManager: { getCwd(): string };
  recordBashResult(command: string, result: object): void;
}

/** Marks the function that asks; extensions are loaded more than once in a process. */
const ASKS = Symbol.for("portcullis.asks-about-commands");

/** Makes every session of this process ask its own extensions. */
export function askAboutRpcCommands(prototype: { executeBash?: unknown }): void {
  const run = prototype.executeBash as Execute | undefined;
  if (run === undefined || ASKS in run) return;
  const executeBash: Execute = async function (command, onChunk, options) {
    // pi's terminal has asked already, and then passes options.
    if (options !== undefined) return await run.call(this, command, onChunk, options);
    const event = { type: "user_bash", command, excludeFromContext: false, cwd: this.sessionManager.getCwd() };
    const answer = await this.extensionRunner.emitUserBash(event);
    if (answer?.result !== undefined) {
      this.recordBashResult(command, answer.result);
      return answer.result;
    }
    return await run.call(this, command, onChunk, answer?.operations === undefined ? undefined : { operations: answer.operations });
  };
  prototype.executeBash = Object.assign(executeBash, { [ASKS]: true });
}

/** The tool with which the agent requests one command outside the sandbox; the host asks the user each time. */
import type { ExtensionAPI } from "@earendil-works/pi-coding-agent";
import { refused } from "./messages.ts";
import type { Session } from "./session.ts";
import { copyOf, type Makers } from "./tools.ts";

const NAME = "run_outside_sandbox";

const DESCRIPTION = "Run one bash command outside of the sandbox. The user is asked each time, and mostly says no. "
  + "Use it only when a command cannot work inside and there is no other way, and tell the user why first.";

/** The schema object that the tool was registered with; no other tool has this very object. */
export class OutsideTool {
  readonly #bash: Makers["bash"];
  #parameters: object | undefined;

  /** `bash` makes pi's own tool. */
  constructor(bash: Makers["bash"]) {
    this.#bash = bash;
  }

  /** Returns whether the tool that pi would call by this name is ours. */
  isInForce(pi: Pick<ExtensionAPI, "getAllTools">, name: string): boolean {
    const ours = this.#parameters;
    return name === NAME && ours !== undefined
      && pi.getAllTools().find((tool) => tool.name === name)?.parameters === ours;
  }

  /** Registers the tool once the settings permit such requests. */
  offer(pi: Pick<ExtensionAPI, "registerTool">, session: Session, cwd: string): void {
    const { state } = session;
    if (this.#parameters !== undefined || state.kind !== "open" || !state.status.escalation) return;
    const definition = this.#bash(cwd);
    const parameters = copyOf(definition.parameters);
    this.#parameters = parameters;
    pi.registerTool({
      ...definition,
      name: NAME,
      label: "outside the sandbox",
      description: DESCRIPTION,
      promptSnippet: "Run one command outside of the sandbox, if the user lets you",
      promptGuidelines: [],
      parameters,
      execute: async (callId, params: { command: string }, signal, onUpdate, context) => {
        const host = session.host();
        if (host !== undefined) {
          const verdict = await host.call("escalate", { callId, script: params.command, cwd: context.cwd }, signal);
          if (verdict.effect !== "allow") throw new Error(refused(verdict));
        }
        return this.#bash(context.cwd).execute(callId, params, signal, onUpdate, context);
      },
    });
  }
}

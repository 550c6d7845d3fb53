/** The tool with which agents reserve files. It exists only where a policy uses reservations. */
import type { ExtensionAPI } from "@earendil-works/pi-coding-agent";
import { plain, refused } from "./messages.ts";
import type { ReserveResponse } from "./protocol.ts";
import type { Session } from "./session.ts";

const PARAMETERS = {
  type: "object",
  additionalProperties: false,
  properties: {
    paths: {
      type: "array",
      items: { type: "string" },
      description: "Files or directories. Leave it out to see what is reserved.",
    },
    release: { type: "boolean", description: "Give them back instead" },
  },
};

/** The schema object that the tool was registered with; no other tool has this very object. */
export class ReserveTool {
  #parameters: object | undefined;

  /** Returns whether the tool that pi would call by this name is ours. */
  isInForce(pi: Pick<ExtensionAPI, "getAllTools">, name: string): boolean {
    const ours = this.#parameters;
    return name === "reserve" && ours !== undefined
      && pi.getAllTools().find((tool) => tool.name === name)?.parameters === ours;
  }

  /** Registers the tool once the host reports that reservations are in use. */
  offer(pi: Pick<ExtensionAPI, "registerTool">, session: Session): void {
    const { state } = session;
    if (this.#parameters !== undefined || state.kind !== "open" || !state.status.reservations) return;
    const parameters = structuredClone(PARAMETERS);
    this.#parameters = parameters;
    pi.registerTool({
      name: "reserve",
      label: "reserve",
      description: "Reserve files or directories that you are about to change, so that no other agent changes them "
        + "meanwhile; with release, give them back. Shows what is reserved.",
      parameters: parameters as never,
      execute: async (callId, params, signal) => {
        const { paths, release } = params as { paths?: string[]; release?: boolean };
        const host = session.host();
        if (host === undefined) throw new Error("nothing is reserved while the sandbox is off");
        const answer = await host.call("reserve", { callId, paths: paths ?? [], release: release ?? false }, signal);
        if (answer.denied !== undefined) throw new Error(`${refused(answer.denied)}\n${listed(answer)}`);
        return { content: [{ type: "text", text: listed(answer) }], details: undefined };
      },
    });
  }
}

function listed({ claims }: ReserveResponse): string {
  if (claims.length === 0) return "Nothing is reserved.";
  const lines = claims.map(({ path, agent, own }) => `${plain(path, 400)}  ${own ? "you" : plain(agent, 80)}`);
  return `Reserved:\n${lines.join("\n")}`;
}

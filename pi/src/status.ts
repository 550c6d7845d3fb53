/** The footer and the states that it shows. */
import type { StatusResponse } from "./protocol.ts";

/** The state of the sandbox, from the point of view of this process. */
export type State =
  /** The host was started and has not answered; nothing is permitted. */
  | { kind: "starting" }
  /** Nothing is permitted. */
  | { kind: "closed"; why: string }
  /** The host decides. */
  | { kind: "open"; status: StatusResponse }
  /** The user turned the sandbox off; pi's own tools run unchanged. */
  | { kind: "disabled" };

/** The part of `ctx.ui` that is used. */
export interface Footer {
  setStatus(key: string, text: string | undefined): void;
  theme: { fg(color: "accent" | "error", text: string): string };
}

const KEY = "portcullis";

export function showStatus(footer: Footer, state: State, waiting: number): void {
  const [color, text] = footerText(state, waiting);
  let shown = text;
  try {
    shown = footer.theme.fg(color, text);
  } catch {
    // Modes without a terminal have no theme; there the text stays without colour.
  }
  footer.setStatus(KEY, shown);
}

export function footerText(state: State, waiting: number): ["accent" | "error", string] {
  if (state.kind === "disabled") return ["error", "Sandbox: disabled"];
  if (state.kind === "starting") return ["accent", "Sandbox: starting"];
  if (state.kind === "closed") return ["error", "Sandbox: closed, no tool can run"];
  const { domains, writePaths, warnings, reduced, contained } = state.status;
  const more = [
    ...(contained ? ["pi contained"] : []),
    ...(reduced === undefined ? [] : [reduced]),
    ...(warnings.length === 0 ? [] : [count(warnings.length, "warning")]),
    ...(waiting === 0 ? [] : [`${count(waiting, "question")} waiting`]),
  ];
  const counts = `🔒 Sandbox: ${count(domains, "domain")}, ${count(writePaths, "write path")}`;
  return ["accent", [counts, ...more].join(", ")];
}

function count(number: number, noun: string): string {
  return `${number} ${noun}${number === 1 ? "" : "s"}`;
}

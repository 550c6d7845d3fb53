/** The footer and the states that it shows. */
import { plain } from "./messages.ts";
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

/** In colour only where something waits or protection is missing. */
type FooterColor = "accent" | "error" | "muted";

/** The part of `ctx.ui` that is used. */
export interface Footer {
  setStatus(key: string, text: string | undefined): void;
  theme: { fg(color: FooterColor, text: string): string };
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

export function footerText(state: State, waiting: number): [FooterColor, string] {
  if (state.kind === "disabled") return ["error", "Portcullis OFF"];
  if (state.kind === "starting") return ["muted", "Portcullis starting"];
  if (state.kind === "closed") return ["error", "Portcullis closed · no tool can run"];
  const { summary, warnings, reduced, contained } = state.status;
  const needsALook = [
    ...(reduced === undefined ? [] : [plain(reduced, 80)]),
    ...(warnings.length === 0 ? [] : [count(warnings.length, "warning")]),
    ...(waiting === 0 ? [] : [`${count(waiting, "question")} waiting`]),
  ];
  // A narrow terminal shows the beginning only.
  const rest = [...(summary === "" ? [] : [plain(summary, 120)]), ...(contained ? ["pi contained"] : [])];
  const text = ["Portcullis on", ...needsALook, ...rest].join(" · ");
  return [needsALook.length === 0 ? "muted" : "accent", text];
}

function count(number: number, noun: string): string {
  return `${number} ${noun}${number === 1 ? "" : "s"}`;
}

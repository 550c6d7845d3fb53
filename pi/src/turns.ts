/** The turns of the user, which the host's record of changes needs, and which of them pi has left behind. */
import type { ExtensionContext } from "@earendil-works/pi-coding-agent";
import type { HostClient } from "./client.ts";
import type { ChangedPoint, ChangesResponse } from "./protocol.ts";
import type { Session } from "./session.ts";

/** The beginning of a turn's text that is recorded. */
const LABEL_CHARACTERS = 200;

type Entries = Pick<ExtensionContext["sessionManager"], "getBranch">;

/** A turn, or a call outside of all turns, with all that it changed. */
export interface Group {
  /** The host's name of its first point. */
  name: string;
  /** pi's id of the turn. */
  id: string | undefined;
  label: string;
  changed: number;
  names: string[];
}

export class Turns {
  /** The last turn that was named, and to which host: one that was restarted knows no turn. */
  #named: { id: string; host: HostClient } | undefined;

  /** Names the turn to the host, before the first call in it that could change something. */
  async begin(session: Session, entries: Entries, signal?: AbortSignal): Promise<void> {
    const host = session.host();
    const turn = turnOf(entries);
    if (host === undefined || turn === undefined) return;
    if (turn.id === this.#named?.id && host === this.#named.host) return;
    await host.call("turn", turn, signal);
    this.#named = { id: turn.id, host };
  }

  /** Names a command of the user, which is a turn of its own. */
  async command(session: Session, command: string): Promise<void> {
    this.#named = undefined;
    await session.host()?.call("turn", { id: `user-${Date.now()}`, label: `! ${line(command)}` });
  }
}

/** Returns the last message of the user on pi's branch. */
function turnOf(entries: Entries): { id: string; label: string } | undefined {
  const entry = entries.getBranch().findLast(({ type, ...entry }) =>
    type === "message" && (entry as { message?: { role?: string } }).message?.role === "user");
  if (entry === undefined) return undefined;
  const { content } = (entry as unknown as { message: { content: unknown } }).message;
  const text = typeof content === "string" ? content : Array.isArray(content)
    ? content.map((part: { text?: unknown }) => (typeof part.text === "string" ? part.text : "")).join(" ") : "";
  return { id: entry.id, label: line(text) };
}

/** Returns a text on one line without characters that the host refuses. */
function line(text: string): string {
  return text.replace(/[\s\0]+/g, " ").trim().slice(0, LABEL_CHARACTERS).toWellFormed();
}

/** Returns the turns whose changes are in force, the oldest first. */
export function groupsOf({ points }: ChangesResponse): Group[] {
  const groups: Group[] = [];
  let open: Group | undefined;
  for (const point of points) {
    if (point.kind === "turn") open = group(point);
    if (point.kind === "turn" || point.undone || point.changed === 0) continue;
    const into = open ?? group(point);
    if (!groups.includes(into)) groups.push(into);
    into.changed += point.changed;
    into.names.push(...point.names);
  }
  return groups;
}

function group({ name, id, label }: ChangedPoint): Group {
  return { name, id, label, changed: 0, names: [] };
}

/**
 * Returns the turns at the end of the record that are not on pi's branch, the oldest first. Changes before a turn that is
 * still on it cannot be taken back without that one.
 */
export function leftBehind(groups: readonly Group[], branch: ReadonlySet<string>): Group[] {
  const isLeft = ({ id }: Group) => id !== undefined && !branch.has(id) && !id.startsWith("user-");
  const last = groups.findLastIndex(({ id }) => id !== undefined && branch.has(id));
  const after = groups.slice(last + 1);
  const first = after.findIndex(isLeft);
  return first < 0 ? [] : after.slice(first);
}

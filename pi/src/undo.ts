/** The command `/undo`, and the offer to take files back when the user goes back in pi's tree. */
import type { ExtensionContext } from "@earendil-works/pi-coding-agent";
import type { HostClient } from "./client.ts";
import { plain } from "./messages.ts";
import type { UndoParams, UndoResponse } from "./protocol.ts";
import type { Session } from "./session.ts";
import { type Group, groupsOf, leftBehind } from "./turns.ts";

/** The lines of a plan or a report that are shown. */
const LINES = 12;
const YES = "Take the files back";
const NO = "Keep the files";
const REDO = "Redo what the last undo took back";

/** Shows the turns and takes files back to before the chosen one. `named` is the argument of the command. */
export async function openUndo(session: Session, context: ExtensionContext, named: string): Promise<void> {
  const host = session.host();
  if (host === undefined) return session.tell("The sandbox is off, so no changes are recorded.", "info");
  const release = session.holdQuestions();
  try {
    const answer = await host.call("changes", {});
    const groups = groupsOf(answer);
    const wanted = named === "" ? await choose(session, context, groups, answer.redoable) : parse(named, groups);
    if (wanted === undefined) return;
    const plan = await host.call("undo", { ...wanted, dryRun: true });
    if (plan.done + plan.left === 0) return session.tell("Nothing is left to take back.", "info");
    const title = [`${plan.done} to take back, ${plan.left} to leave:`, ...listed(plan)].join("\n");
    if (context.hasUI && await context.ui.select(title, [YES, NO]) !== YES) return;
    await takeBack(session, host, wanted);
  } finally {
    release();
  }
}

type Wanted = Omit<UndoParams, "dryRun">;

async function choose(
  session: Session, context: ExtensionContext, groups: Group[], redoable: boolean,
): Promise<Wanted | undefined> {
  const options = new Map<string, Wanted>();
  for (const group of groups.toReversed()) options.set(shown(group), { point: group.name, redo: false });
  if (redoable) options.set(REDO, { redo: true });
  if (options.size === 0) {
    session.tell("This session has changed nothing. `portcullis changes --list` shows others.", "info");
    return undefined;
  }
  if (!context.hasUI) {
    session.tell(["Say which one, such as `/undo t1`:", ...options.keys()].join("\n"), "info");
    return undefined;
  }
  const chosen = await context.ui.select("Take your files back to before which turn?", [...options.keys()]);
  return chosen === undefined ? undefined : options.get(chosen);
}

function parse(named: string, groups: Group[]): Wanted | undefined {
  if (named === "redo") return { redo: true };
  if (named !== "all") return { point: named, redo: false };
  const first = groups[0];
  return first === undefined ? { redo: false } : { point: first.name, redo: false };
}

function shown({ name, changed, label }: Group): string {
  return `${name}  ${files(changed)}  ${plain(label, 60)}`;
}

function files(count: number): string {
  return count === 1 ? "1 name" : `${count} names`;
}

async function takeBack(session: Session, host: HostClient, wanted: Wanted): Promise<void> {
  const report = await host.call("undo", { ...wanted, dryRun: false });
  const again = wanted.redo ? "`/undo` takes it back again." : "`/undo redo` takes this back.";
  const done = report.done === 0 ? "Nothing was restored." : `${files(report.done)} restored. ${again}`;
  const lines = [done, ...listed(report)];
  session.tell(lines.join("\n"), report.left === 0 ? "info" : "warning");
}

function listed({ lines, more }: UndoResponse): string[] {
  const told = lines.slice(0, LINES).map(({ what, name, note }) =>
    `  ${plain(what, 20)}  ${plain(name, 200)}${note === "" ? "" : `  (${plain(note, 200)})`}`);
  const rest = lines.length - told.length + more;
  return rest === 0 ? told : [...told, `  and ${rest} more`];
}

/** Offers to take back what was changed in turns that are not on pi's branch. `branch` holds the ids of its entries. */
export async function offerUndo(
  session: Session, context: ExtensionContext, branch: ReadonlySet<string>,
): Promise<void> {
  if (!context.hasUI || session.state.kind !== "open") return;
  const host = session.host();
  if (host === undefined) return;
  const left = leftBehind(groupsOf(await host.call("changes", {})), branch);
  const [first] = left;
  if (first === undefined) return;
  const release = session.holdQuestions();
  try {
    const changed = left.reduce((sum, { changed }) => sum + changed, 0);
    const names = [...new Set(left.flatMap(({ names }) => names))].slice(0, 4).map((name) => plain(name, 60));
    const title = `The agent changed ${files(changed)} since then (${names.join(", ")}). Take the files back as well?`;
    if (await context.ui.select(title, [YES, NO]) !== YES) return;
    await takeBack(session, host, { point: first.name, redo: false });
  } finally {
    release();
  }
}

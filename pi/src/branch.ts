/** The command `/branch`: the review of the branch in which the session works, and its commit. */
import type { ExtensionContext } from "@earendil-works/pi-coding-agent";
import type { HostClient } from "./client.ts";
import { plain } from "./messages.ts";
import type { BranchLine, BranchResponse } from "./protocol.ts";
import type { Session } from "./session.ts";

/** The changes that the page shows; the list of "Commit some" has all. */
const LINES = 14;
const ALL = "Commit all";
const PROTECTED = "Commit all, with protected names";
const SOME = "Commit some …";
const DIFF = "Show the differences";
const LATER = "Commit nothing";
const CHOSEN = "Commit what is marked";
const APPROVED = "Commit it";

/** Shows the review, and commits what the user chooses. `named` is the argument of the command: `all`, or paths. */
export async function openBranch(session: Session, context: ExtensionContext, named: string): Promise<void> {
  const host = session.host();
  if (host === undefined) return session.tell("The sandbox is off, so there is no branch.", "info");
  const release = session.holdQuestions();
  try {
    const review = await host.call("branch", { diff: false });
    if (review.name === undefined) {
      return session.tell("This session works in the project itself. `portcullis pi --branch` begins a branch.", "info");
    }
    if (review.lines.length === 0) return session.tell("Nothing differs from the project.", "info");
    if (named !== "") {
      return await commit(session, context, host, review, named === "all" ? [] : named.split(/\s+/), false);
    }
    if (!context.hasUI) return session.tell(page(review), "info");
    await choose(session, context, host, review);
  } finally {
    release();
  }
}

async function choose(
  session: Session, context: ExtensionContext, host: HostClient, review: BranchResponse,
): Promise<void> {
  const needsMore = review.together !== "" || review.lines.some((line) => line.protected && !line.blocked);
  const options = [LATER, ALL, ...(needsMore ? [PROTECTED] : []), SOME, DIFF];
  for (;;) {
    const chosen = await context.ui.select(page(review), options);
    if (chosen === ALL || chosen === PROTECTED) return commit(session, context, host, review, [], chosen === PROTECTED);
    if (chosen === SOME) {
      const paths = await mark(context, review.lines);
      if (paths.length > 0) return commit(session, context, host, review, paths, false);
    } else if (chosen === DIFF) {
      session.tell((await host.call("branch", { diff: true })).diff, "info");
    } else return;
  }
}

/** Lets the user mark names; returns none if the user goes back. */
async function mark(context: ExtensionContext, lines: readonly BranchLine[]): Promise<string[]> {
  const open = lines.filter(({ blocked }) => !blocked);
  const marked = new Set<string>();
  for (;;) {
    const options = new Map(open.map((line, index) =>
      [`${marked.has(line.name) ? "[x]" : "[ ]"} ${index + 1} ${shown(line)}`, line.name]));
    const chosen = await context.ui.select("Mark what to commit", [CHOSEN, ...options.keys()]);
    if (chosen === CHOSEN) return [...marked];
    const name = chosen === undefined ? undefined : options.get(chosen);
    if (name === undefined) return [];
    if (!marked.delete(name)) marked.add(name);
  }
}

async function commit(
  session: Session, context: ExtensionContext, host: HostClient, { review }: BranchResponse, paths: string[], isProtected: boolean,
): Promise<void> {
  const wanted = { review, paths, protected: isProtected };
  let done = await host.call("branch/commit", { ...wanted, approved: false });
  if (done.question !== "") {
    const question = `A policy asks about this commit: ${plain(done.question, 400)}`;
    if (!context.hasUI) return session.tell(`Nothing was committed. ${question}`, "warning");
    const answer = await context.ui.select(question, [LATER, APPROVED]);
    if (answer !== APPROVED) return session.tell("Nothing was committed.", "info");
    done = await host.call("branch/commit", { ...wanted, approved: true });
  }
  const rest = done.lines.map(({ what, name, note }) => `  ${plain(what, 20)}  ${plain(name, 200)}  (${plain(note, 200)})`);
  const first = `${names(done.committed)} committed; \`portcullis undo\` takes this back.`;
  session.tell([done.committed === 0 ? "Nothing was committed." : first, ...rest].join("\n"), rest.length === 0 ? "info" : "warning");
}

/** Returns the review as one page. */
function page({ name, lines, more, hosts, together }: BranchResponse): string {
  const rest = lines.length - Math.min(lines.length, LINES) + more;
  return [
    `Branch ${plain(name ?? "", 70)}: ${names(lines.length + more)} differ from the project`,
    ...lines.slice(0, LINES).map((line) => `  ${shown(line)}`),
    ...(rest > 0 ? [`  and ${rest} more`] : []),
    ...(hosts.length > 0 ? [`Hosts: ${hosts.slice(0, 20).map((host) => plain(host, 100)).join(", ")}`] : []),
    ...(together === "" ? [] : [plain(together, 400)]),
  ].join("\n");
}

function shown({ what, name, note }: BranchLine): string {
  return `${plain(what, 10)}  ${plain(name, 200)}${note === "" ? "" : `  (${plain(note, 200)})`}`;
}

function names(count: number): string {
  return count === 1 ? "1 name" : `${count} names`;
}

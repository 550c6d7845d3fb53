/** All texts for users and for the model. */
import { getSystemErrorMap } from "node:util";
import { type AskParams, type Denial, FILE_FAILED, type FailureData, type FailureKind } from "./protocol.ts";
import { HostError } from "./client.ts";

/** Installs the extension together with the program, also where npm leaves optional packages out. */
export const NPM_INSTALL = "npm_config_include=optional pi install npm:@portcullis/pi";

/** Says which program is missing, and how to get it. `npmPackage` should contain it, if the extension is from npm. */
export function missingProgram(npmPackage: string | undefined): string {
  if (npmPackage !== undefined) {
    return `the npm package ${npmPackage} with the program \`portcullis\` is not installed; run \`${NPM_INSTALL}\``;
  }
  return "there is no `portcullis` on PATH; run `portcullis pi-extension install` with the program that you built or "
    + "downloaded, or set PORTCULLIS_HOST to its absolute path";
}

/** Says that there is no program for this system. */
export function noProgramFor(platform: string): string {
  return `there is no \`portcullis\` for ${plain(platform, 40)}: it runs on Linux and macOS, on x64 and arm64`;
}

/** Says that a program is not whole, or of another processor. `command` mends that, if one does. */
export function notForThisMachine(path: string, command: string | undefined): string {
  const next = command === undefined ? "install it again" : `run \`${command}\``;
  return `\`${plain(path, 400)}\` cannot run on this machine: it is damaged, or made for another processor; ${next}`;
}

/** Says that the extension and the host are of different versions, and which command mends that. */
export function otherVersion(extension: string, host: string, command: string): string {
  return `The extension is Portcullis ${plain(extension, 40)}, the program ${plain(host, 40)}. Run \`${plain(command, 400)}\` `
    + "and start pi again.";
}

/** Returns a word as a shell takes it. */
export function quoted(word: string): string {
  return /^[\w/.@+-]+$/.test(word) ? word : `'${word.replaceAll("'", "'\\''")}'`;
}

export const NOT_STARTED = "the session has not started";

export const STARTING = "the host has not answered yet";

/** Returns the answer of a tool to the model while nothing is permitted. */
export function closedForModel(why: string): string {
  return `The Portcullis sandbox is not available, so this tool is blocked. Tell the user: ${plain(why, 800)}.`;
}

/** Tells the user that nothing is permitted, and how to continue. */
export function closedForUser(why: string, isTerminal: boolean): string {
  const again = isTerminal ? "/reload starts it again." : "Fix that and start pi again.";
  return `Portcullis is closed and blocks every tool: ${plain(why, 800)}. ${again} `
    + "To run pi without the sandbox, put the flag after the prompt: `pi \"prompt\" --no-sandbox`.";
}

/** Tells the user that the host died and was restarted. */
export function restarted(why: string, isTerminal: boolean): string {
  const next = isTerminal ? "If it happens again, tools stay blocked until you type /reload." : "It is not started a second time.";
  return `Portcullis stopped (${plain(why, 400)}) and was started again. Its commands have ended, and answers for the session `
    + `are forgotten. ${next}`;
}

/** What the model does after a refusal if the policy says nothing better. */
const AFTER_REFUSAL = "Do not work around it; if you need it, tell the user.";

/** Returns the answer of a tool to the model after a refusal: what happened, why, what to do. */
export function refused(denial: Denial): string {
  const { policy, rule, reason, hint } = denial;
  const next = hint === undefined ? AFTER_REFUSAL : plain(hint, 400);
  return `Refused by the sandbox: ${plain(reason.replace(/\.$/, ""), 400)} [${plain(rule, 80)} of ${plain(policy, 80)}]. ${next}`;
}

/** Returns the notes after the output of a command, each once. */
export function commandNotes(notes: readonly string[]): string {
  return [...new Set(notes)].map((note) => `[sandbox] ${note}\n`).join("");
}

/** The exit status of a pi without an interface whose tools were all blocked; `portcullis run` uses it as well. */
export const EXIT_CLOSED = 125;

/** The exit status of a pi without an interface to which something was refused because nobody could be asked. */
export const EXIT_REFUSED = 126;

/** Returns the line on standard error for a refusal. */
export function refusedLine(text: string): string {
  return `portcullis: refused: ${plain(text, 600)}`;
}

/** Returns the line at the end of a run with refusals. */
export function refusedSummary(count: number, unasked: number, fails: boolean): string {
  const refusals = count === 1 ? "1 refusal" : `${count} refusals`;
  const why = unasked === 0 ? "" : `, ${count === 1 ? "" : `${unasked} of them `}because nobody could be asked`;
  const status = fails ? ` Exit status ${EXIT_REFUSED} (setting unattendedRefusals).` : "";
  return `portcullis: ${refusals}${why}. See: portcullis audit tail --denied. Allow: portcullis allow.${status}`;
}

/** Returns the text in place of an output that a policy withholds. */
export function withheld(cause: Denial | undefined): string {
  const { policy, rule, reason } = cause ?? { policy: "?", rule: "?", reason: "no reason was given" };
  return `The sandbox withholds this output: ${plain(reason.replace(/\.$/, ""), 400)} `
    + `[${plain(rule, 80)} of ${plain(policy, 80)}]. Go on without it, or ask the user for it.`;
}

export function notOurs(tool: string): string {
  return `The tool ${plain(tool, 80)} is pi's own and would run unconfined. Start pi again.`;
}

/** Tells the user which tools another extension executes, and what that means. */
export function takenOver(others: ReadonlyMap<string, string>): string {
  const lines = [...new Set(others.values())].map((owner) => {
    const names = [...others].filter(([, other]) => other === owner).map(([name]) => name);
    return `${plain(owner.replace(/^extension:/, ""), 200)} replaces pi's ${names.join(", ")}.`;
  });
  return `${lines.join(" ")} Commands that it starts on this machine are confined, but its file tools are only checked by `
    + "path. Start pi without that extension to have the sandbox open the files itself.";
}

export const BROKEN_OFF = "The arguments of this call broke off before their end, so it was not carried out. Call it again.";

export const TWICE =
  "Portcullis is loaded twice and the first copy is not running. Remove one of the two (`pi list`, `-e`).";

export const FLAG_ATE_PROMPT =
  "pi took the word after --no-sandbox for its value. Put the flag last: pi \"prompt\" --no-sandbox";

/**
 * Returns the question as select() shows it: the host's text first, a policy's text quoted below. The subject may
 * contain several lines; the bar before each of them distinguishes them from ours.
 */
export function question(ask: AskParams): string {
  const lines = [
    ask.title.endsWith("?") ? plain(ask.title, 200) : `${plain(ask.title, 200)}:`,
    ...(ask.place ?? ask.subject).split("\n").map((line) => `  │ ${plain(line.replaceAll("\t", "  "), 8_000)}`),
    ...(ask.context ? [`  ${plain(ask.context, 300)}`] : []),
    ...(ask.preview ?? "").split("\n").filter((line) => line !== "").map((line) => `  │ ${plain(line, 200)}`),
    `  rule ${plain(ask.rule, 80)} of ${plain(ask.policy, 80)}`,
  ];
  if (ask.quote !== undefined) lines.push(`  policy ${plain(ask.policy, 80)} says: "${plain(ask.quote, 400)}"`);
  return lines.join("\n");
}

/**
 * Makes text safe to show: escapes characters that could move the cursor, colour the screen or reverse the reading
 * order. In a text that is too long the middle is replaced by a note of its length.
 */
export function plain(text: string, longest: number): string {
  const visible = text.replace(/[\p{Cc}\p{Cf}\p{Zl}\p{Zp}\p{Cs}]/gu, (character) =>
    `\\u{${(character.codePointAt(0) ?? 0).toString(16)}}`);
  if (visible.length <= longest) return visible;
  const half = Math.floor(longest / 2);
  return `${visible.slice(0, half)} …(${visible.length - 2 * half} characters left out)… ${visible.slice(-half)}`;
}

/** The system call in which pi's own tool would have failed, for the text of the error. */
export type SystemCall = "access" | "open" | "read" | "scandir" | "mkdir";

/** For these errors of the host, pi's tool would have thrown Node's own text for the error number. */
const OF_SYSTEM: ReadonlySet<FailureKind> = new Set(["notFound", "isDirectory", "notDirectory", "notPermitted", "other"]);

/** Converts an error of a file request into the one that pi's own tool would have thrown. */
export function fileError(error: unknown, call: SystemCall, path: string): Error {
  if (!(error instanceof HostError) || error.code !== FILE_FAILED || error.data === undefined) {
    return error instanceof Error ? error : new Error(String(error));
  }
  const data = error.data as FailureData;
  if (data.kind === "denied") {
    // Without a `code`: pi's edit tool shows the text of such an error, but only the code of others.
    const { policy = "?", rule = "?", reason = error.message, hint } = data;
    return new Error(refused({ policy, rule, reason, ...(hint === undefined ? {} : { hint }) }));
  }
  const known = data.errno === undefined ? undefined : getSystemErrorMap().get(-data.errno);
  if (known === undefined || !OF_SYSTEM.has(data.kind)) return new Error(error.message);
  // Node's message contains no path if the call used a file descriptor.
  const where = call === "read" ? call : `${call} '${path}'`;
  return Object.assign(new Error(`${known[0]}: ${known[1]}, ${where}`), { code: known[0] });
}

/**
 * Sends the results of tools to the host before the model sees them. If a handler of results throws, pi ignores the
 * error and uses the original result: so no function here throws, and any failure withholds the result.
 */
import { tmpdir } from "node:os";
import type { ExtensionAPI, ExtensionContext, ToolResultEvent } from "@earendil-works/pi-coding-agent";
import type { HostClient } from "./client.ts";
import { withheld } from "./messages.ts";
import type { OutputBlock } from "./protocol.ts";
import { providerOf } from "./provider.ts";
import type { Session } from "./session.ts";

/** The blocks of a result; pi 0.74 does not export their types. */
type Block = { type: "text"; text: string } | { type: "image"; data: string; mimeType: string };

/** The result that pi uses instead of the original one. */
interface Replacement {
  content: Block[];
  details: object;
  structuredContent?: unknown;
  isError?: true;
}

/**
 * The name of a file in which pi stores a result that is too long for the model; it cannot be guessed. The search takes
 * time linear in the text: the agent chooses the text, and pi waits.
 */
const FULL_OUTPUT = /\/pi-[a-z]+-[0-9a-f]{16}\.[a-z0-9]{1,5}/g;

/** The name of a file in which pi stores an image that the user pastes; pi inserts the name into the user's input. */
const PASTED = /\/pi-clipboard-[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}\.[a-z0-9]{1,5}/g;

/**
 * The number of file names that are reported for a result. pi names one file at its end; the others would come from the
 * agent, and pi waits for each.
 */
const MOST_OUTPUTS = 8;

/** Sends a result to the host; returns the result that pi must use instead, or undefined. */
export async function inspectToolResult(
  pi: Pick<ExtensionAPI, "getAllTools">, session: Session, event: ToolResultEvent, context: Pick<ExtensionContext, "signal">,
): Promise<Replacement | undefined> {
  try {
    const host = session.host();
    if (host === undefined) return undefined;
    await nameFullOutput(host, event);
    const structured = (event as { structuredContent?: unknown }).structuredContent;
    const blocks = event.content as Block[];
    const content = blocks.map(shown);
    if (structured !== undefined) content.push({ kind: "other", json: JSON.stringify(structured) ?? "null" });
    const answer = await host.call("inspect", {
      callId: event.toolCallId, tool: event.toolName, provider: providerOf(pi, event.toolName),
      input: event.input, isError: event.isError, content,
    }, context.signal?.aborted ? undefined : context.signal);
    if (answer.verdict === "pass") return undefined;
    if (answer.verdict === "replace") return replacement(answer.content ?? [], blocks);
    return keptBack(withheld(answer.cause));
  } catch (error) {
    return keptBack(error instanceof Error ? error.message : String(error));
  }
}

/** Tells the host of the file that the model is told to read; only the host can permit that. */
async function nameFullOutput(host: HostClient, event: ToolResultEvent): Promise<void> {
  const texts = (event.content as Block[]).map((block) => (block.type === "text" ? block.text : ""));
  const paths = [...new Set(texts.flatMap(fullOutputs))];
  for (const path of paths.slice(-MOST_OUTPUTS)) await host.call("file/output", { path }).catch(() => {});
}

/** Returns the files with whole outputs, in the directory for temporary files, that a text names. */
export function fullOutputs(text: string): string[] {
  return temporaryFiles(text, FULL_OUTPUT);
}

/** Returns the files with pasted images that a text names. */
export function pasted(text: string): string[] {
  return temporaryFiles(text, PASTED);
}

function temporaryFiles(text: string, names: RegExp): string[] {
  const directory = tmpdir();
  return [...text.matchAll(names)]
    .filter(({ index }) => text.startsWith(directory, index - directory.length))
    .map(([name]) => directory + name);
}

/** The part of the model's next messages that is read. */
interface Message {
  role: string;
  content?: unknown;
  fullOutputPath?: string;
  excludeFromContext?: boolean;
}

/**
 * Does the same for the user's own commands, which are not tools: their outputs are among the messages. And for images
 * that the user has pasted, whose names are in the user's input.
 */
export class UserOutputs {
  readonly #named = new Set<string>();

  /** Tells the host of the files that these messages name. Never throws: the model can do without them. */
  async name(session: Session, messages: readonly Message[]): Promise<void> {
    try {
      const host = session.host();
      if (host === undefined) return;
      for (const path of messages.flatMap(filesOf)) {
        if (this.#named.has(path)) continue;
        this.#named.add(path);
        await host.call("file/output", { path }).catch(() => {});
      }
    } catch {
      // The session is closed, so no file can be read.
    }
  }
}

/** Returns pi's files that a message of the user or of a command names. */
function filesOf({ role, content, fullOutputPath: path, excludeFromContext }: Message): string[] {
  if (role === "user") return textsOf(content).flatMap(pasted).slice(-MOST_OUTPUTS);
  if (role !== "bashExecution" || path === undefined || excludeFromContext) return [];
  return fullOutputs(path).filter((named) => named === path);
}

/** Returns the texts of a message: its content is a string or a list of blocks. */
function textsOf(content: unknown): string[] {
  if (typeof content === "string") return [content];
  if (!Array.isArray(content)) return [];
  return content.flatMap((block: { text?: unknown }) => (typeof block?.text === "string" ? [block.text] : []));
}

function shown(block: Block): OutputBlock {
  switch (block.type) {
    case "text": return { kind: "text", text: block.text };
    case "image": return { kind: "image", mimeType: block.mimeType, bytes: Buffer.byteLength(block.data, "base64") };
    default: return { kind: "other", json: JSON.stringify(block) ?? "null" };
  }
}

/**
 * Converts the host's blocks for pi. There are as many as in the original and of the same kinds; the last one may be
 * the structured result.
 */
function replacement(content: OutputBlock[], originals: Block[]): Replacement {
  const blocks = originals.map((original, place): Block => {
    const block = content[place];
    if (block?.kind === "text") return { type: "text", text: block.text };
    if (block?.kind === "image") return original;
    return { type: "text", text: block?.json ?? "" };
  });
  const last = content[originals.length];
  const structured = last?.kind === "other" ? { structuredContent: JSON.parse(last.json) as unknown } : {};
  return { content: blocks, details: {}, ...structured };
}

function keptBack(text: string): Replacement {
  return { content: [{ type: "text", text }], details: {}, isError: true };
}

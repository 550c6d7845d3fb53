/** Lists and searches in the host, which for find and grep also formats the result. */
import { basename } from "node:path";
import type { LsOperations } from "@earendil-works/pi-coding-agent";
import { type HostClient, HostError } from "./client.ts";
import type { Call } from "./files.ts";
import { fileError } from "./messages.ts";
import type { FailureData, FailureKind, FileSearchResponse, ListedKind } from "./protocol.ts";

/** The parameters of a search that are used; pi has checked their types. */
export interface Search {
  path?: string;
  pattern?: string;
  glob?: string;
  ignoreCase?: boolean;
  literal?: boolean;
  context?: number;
  limit?: number;
}

/** A result in the form of pi's tools. */
interface Result {
  content: { type: "text"; text: string }[];
  details: Record<string, unknown> | undefined;
}

/** The names in one directory, or the reason why there are none. */
type Listing = { names: Map<string, ListedKind> } | { failure: FailureKind | undefined; error: unknown };

/**
 * Returns operations for pi's ls tool. The directory is listed once, when pi checks whether it exists; pi formats the
 * result.
 */
export function listOperations(host: HostClient, { callId, given, signal }: Call): LsOperations {
  let top = "";
  let listing: Promise<Listing> | undefined;
  const list = (path: string) => host.call("file/list", { callId, path, given }, signal).then(
    ({ entries }): Listing => ({ names: new Map(entries.map(({ name, kind }) => [name, kind])) }),
    (error): Listing => ({ failure: kindOf(error), error }),
  );
  const known = async () => await listing ?? { failure: "notFound" as const, error: new Error("nothing was listed") };
  return {
    exists: async (path) => {
      top = path;
      listing = list(path);
      const listed = await listing;
      if ("names" in listed || listed.failure === "notDirectory" || listed.failure === "notPermitted") return true;
      if (listed.failure === "notFound") return false;
      throw fileError(listed.error, "scandir", path);
    },
    stat: async (path) => {
      const listed = await known();
      if (path === top) return { isDirectory: () => "names" in listed || listed.failure !== "notDirectory" };
      const kind = "names" in listed ? listed.names.get(basename(path)) : undefined;
      // pi leaves out entries for which stat throws.
      if (kind === undefined || kind === "nothing") throw new Error(`nothing is at ${path}`);
      return { isDirectory: () => kind === "directory" };
    },
    readdir: async (path) => {
      const listed = await known();
      if ("names" in listed) return [...listed.names.keys()];
      throw fileError(listed.error, "scandir", path);
    },
  };
}

export async function find(host: HostClient, callId: string, cwd: string, search: Search, signal?: AbortSignal): Promise<Result> {
  const { pattern = "", path, limit } = search;
  return result(host.call("file/find", { callId, cwd, pattern, ...given({ path, limit }) }, signal), signal);
}

export async function grep(host: HostClient, callId: string, cwd: string, search: Search, signal?: AbortSignal): Promise<Result> {
  const { pattern = "", ignoreCase = false, literal = false, path, glob, context, limit } = search;
  const params = { callId, cwd, pattern, ignoreCase, literal, ...given({ path, glob, context, limit }) };
  return result(host.call("file/grep", params, signal), signal);
}

/** Returns the object without the members that were not given. */
function given<T extends object>(values: T): { [K in keyof T]?: NonNullable<T[K]> } {
  const present = Object.entries(values).filter(([, value]) => value !== undefined && value !== null);
  return Object.fromEntries(present) as { [K in keyof T]?: NonNullable<T[K]> };
}

async function result(answer: Promise<FileSearchResponse>, signal?: AbortSignal): Promise<Result> {
  let found;
  try {
    found = await answer;
  } catch (error) {
    throw signal?.aborted ? new Error("Operation aborted") : fileError(error, "scandir", "");
  }
  if (found.failed) throw new Error(found.text);
  return { content: [{ type: "text", text: found.text }], details: found.details };
}

function kindOf(error: unknown): FailureKind | undefined {
  return error instanceof HostError ? (error.data as FailureData | undefined)?.kind : undefined;
}

/**
 * The file operations of one tool call. The host opens the file when pi checks whether it is accessible, and everything
 * after that uses the open file: its name is never looked up a second time.
 */
import type { EditOperations, ReadOperations, WriteOperations } from "@earendil-works/pi-coding-agent";
import { type HostClient, HostError } from "./client.ts";
import { fileError, type SystemCall } from "./messages.ts";
import type { FailureData, FileIntent } from "./protocol.ts";

/** The size of a chunk; its base64 fits a message of the host with a wide margin. */
const CHUNK_BYTES = 4 * 1024 * 1024;

/** The tool call that the operations belong to. */
export interface Call {
  callId: string;
  /** The path as the model wrote it. */
  given: string;
  signal: AbortSignal | undefined;
}

interface Content {
  bytes: Buffer;
  mimeType: string | null;
}

export class FileCall {
  readonly #host: HostClient;
  readonly #call: Call;
  #path = "";
  #handle: Promise<number> | undefined;
  #content: Promise<Content> | undefined;
  /** The error for a directory: it can be accessed, and only reading it fails. */
  #directory: HostError | undefined;

  constructor(host: HostClient, call: Call) {
    this.#host = host;
    this.#call = call;
  }

  read(): ReadOperations {
    return {
      access: (path) => this.#open(path, { kind: "read" }),
      readFile: async (path) => (await this.#read(path)).bytes,
      detectImageMimeType: async (path) => (await this.#read(path)).mimeType,
    };
  }

  edit(edits: { oldText: string; newText: string }[]): EditOperations {
    return {
      access: (path) => this.#open(path, { kind: "edit", edits }),
      readFile: async (path) => (await this.#read(path)).bytes,
      writeFile: async (path, content) => {
        const handle = await this.#opened(path);
        await this.#file("open", this.#host.call("file/writeHandle", { handle, content }, this.#call.signal));
      },
    };
  }

  write(): WriteOperations {
    const { callId, given, signal } = this.#call;
    return {
      // The host creates parent directories when it writes; a directory without the file is not wanted.
      mkdir: async () => {},
      writeFile: async (path, content) => {
        this.#path = path;
        await this.#file("open", this.#host.call("file/write", { callId, path, given, content }, signal));
      },
    };
  }

  /** Ends the call, also if its file is still being opened. Never throws. */
  async close(): Promise<void> {
    try {
      const handle = await this.#handle;
      if (handle !== undefined) await this.#host.call("file/close", { handle });
    } catch {
      // The file was never open, or the host is gone and has closed every file.
    }
  }

  async #open(path: string, intent: FileIntent): Promise<void> {
    const { callId, given, signal } = this.#call;
    this.#path = path;
    this.#handle = this.#host.call("file/open", { callId, path, given, intent }, signal).then(({ handle }) => handle);
    try {
      await this.#handle;
    } catch (error) {
      if (!isDirectory(error)) throw fileError(error, "access", path);
      this.#directory = error;
    }
  }

  #opened(path: string): Promise<number> {
    if (this.#handle === undefined || path !== this.#path) throw new Error(`\`${path}\` was not opened by this call`);
    return this.#handle;
  }

  #read(path: string): Promise<Content> {
    this.#content ??= this.#file("read", this.#readAll(path));
    return this.#content;
  }

  async #readAll(path: string): Promise<Content> {
    if (this.#directory !== undefined) throw this.#directory;
    const handle = await this.#opened(path);
    const parts: Buffer[] = [];
    let offset = 0;
    for (;;) {
      const part = await this.#host.call("file/read", { handle, offset, length: CHUNK_BYTES }, this.#call.signal);
      const bytes = Buffer.from(part.contentBase64, "base64");
      parts.push(bytes);
      offset += bytes.length;
      if (part.eof) return { bytes: Buffer.concat(parts), mimeType: part.mimeType ?? null };
      if (bytes.length === 0) throw new Error("the host gave nothing and no end of the file");
    }
  }

  async #file<T>(call: SystemCall, outcome: Promise<T>): Promise<T> {
    try {
      return await outcome;
    } catch (error) {
      throw fileError(error, call, this.#path);
    }
  }
}

function isDirectory(error: unknown): error is HostError {
  return error instanceof HostError && (error.data as FailureData | undefined)?.kind === "isDirectory";
}

/** Splits bytes of the host into messages and frames. */
import { MAX_FRAME_BYTES } from "./protocol.ts";

/** The longest line; replies of the host are far shorter, so a longer line means that the program is not a host. */
const MAX_LINE_BYTES = 64 * 1024 * 1024;

/**
 * Calls `onLine` for each line. Only a newline ends a line: Node's readline would also split at U+2028, which may occur
 * inside a JSON string.
 */
export function lineSplitter(onLine: (line: string) => void): (chunk: Buffer) => void {
  let parts: Buffer[] = [];
  let held = 0;
  return (chunk) => {
    let start = 0;
    for (let end = chunk.indexOf(10); end !== -1; end = chunk.indexOf(10, start)) {
      parts.push(chunk.subarray(start, end));
      onLine(Buffer.concat(parts).toString("utf8"));
      parts = [];
      held = 0;
      start = end + 1;
    }
    if (start < chunk.length) parts.push(chunk.subarray(start));
    held += chunk.length - start;
    if (held > MAX_LINE_BYTES) throw new Error("a message of the host is too long");
  };
}

/** Calls `onFrame` for each frame of the side channel; an empty payload marks the end of its stream. */
export function frameSplitter(onFrame: (stream: number, payload: Buffer) => void): (chunk: Buffer) => void {
  let held: Buffer = Buffer.alloc(0);
  return (chunk) => {
    held = held.length === 0 ? chunk : Buffer.concat([held, chunk]);
    while (held.length >= 8) {
      const length = held.readUInt32LE(4);
      if (length > MAX_FRAME_BYTES) throw new Error("a frame of the host is too long");
      if (held.length < 8 + length) return;
      onFrame(held.readUInt32LE(0), held.subarray(8, 8 + length));
      held = held.subarray(8 + length);
    }
  };
}

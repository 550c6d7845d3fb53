/**
 * Putting a message into a line that the host accepts. What it would refuse must be found here: it could
 * not say which request was meant, and the connection would be over.
 */
import { MAX_MESSAGE_BYTES } from "./protocol.ts";

/** Below the host's bound of 64, which also counts the message around the parameters. */
const MAX_DEPTH = 60;

/** How strings with half a surrogate pair are treated, which JSON for the host cannot hold. */
export type Surrogates =
  /** Refused: what is judged must be exactly what somebody else goes on to use. */
  | "refuse"
  /** Replaced by U+FFFD, as Node does when it writes such a string to a file or passes it to a program. */
  | "replace";

/** Returns the line without its newline, or throws. */
export function encode(message: object, surrogates: Surrogates): string {
  const line = JSON.stringify(checked({ jsonrpc: "2.0", ...message }, surrogates, 0));
  if (Buffer.byteLength(line) > MAX_MESSAGE_BYTES) throw new Error(`more than ${MAX_MESSAGE_BYTES} bytes at once are not accepted`);
  return line;
}

function checked(value: unknown, surrogates: Surrogates, depth: number): unknown {
  if (typeof value === "string") return whole(value, surrogates);
  // JSON would make another number of it, or none: what is judged would not be what runs.
  if (typeof value === "number" && (!Number.isFinite(value) || Object.is(value, -0))) {
    throw new Error(`the number ${Object.is(value, -0) ? "-0" : value} is not accepted`);
  }
  if (typeof value !== "object" || value === null) return value;
  if (depth >= MAX_DEPTH) throw new Error(`arguments that nest deeper than ${MAX_DEPTH} are not accepted`);
  if (Array.isArray(value)) return value.map((item) => checked(item, surrogates, depth + 1));
  // Two keys could become the same one, so keys are never changed.
  const entries = Object.entries(value).map(([key, item]) => [whole(key, "refuse"), checked(item, surrogates, depth + 1)]);
  return Object.fromEntries(entries);
}

function whole(text: string, surrogates: Surrogates): string {
  const repaired = text.toWellFormed();
  if (repaired !== text && surrogates === "refuse") throw new Error("a text with half a character is not accepted");
  return repaired;
}

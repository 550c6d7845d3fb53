/**
 * Encodes a message as a line that the host accepts. A message that the host would refuse must be found here: its error
 * could not name the request, and the connection would end.
 */
import { MAX_MESSAGE_BYTES } from "./protocol.ts";

/** The deepest nesting of parameters; below the host's limit of 64, which includes the message around them. */
const MAX_DEPTH = 60;

/** The treatment of strings with half a surrogate pair, which the host's JSON cannot represent. */
export type Surrogates =
  /** Refused: the value that is judged must be exactly the one that is used afterwards. */
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
  // JSON would change the number or drop it: the judged value would differ from the one that is used.
  if (typeof value === "number" && (!Number.isFinite(value) || Object.is(value, -0))) {
    throw new Error(`the number ${Object.is(value, -0) ? "-0" : value} is not accepted`);
  }
  if (typeof value !== "object" || value === null) return value;
  if (depth >= MAX_DEPTH) throw new Error(`arguments that nest deeper than ${MAX_DEPTH} are not accepted`);
  if (Array.isArray(value)) return value.map((item) => checked(item, surrogates, depth + 1));
  // Two keys could become equal, so keys are refused and never changed.
  const entries = Object.entries(value).map(([key, item]) => [whole(key, "refuse"), checked(item, surrogates, depth + 1)]);
  return Object.fromEntries(entries);
}

function whole(text: string, surrogates: Surrogates): string {
  const repaired = text.toWellFormed();
  if (repaired !== text && surrogates === "refuse") throw new Error("a text with half a character is not accepted");
  return repaired;
}

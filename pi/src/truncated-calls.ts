/**
 * Detects calls with truncated arguments. pi 0.x completes the JSON that a model began to write and executes the call:
 * the command `rm -rf /tmp/x` may have been meant to continue. pi 1.x refuses such calls itself.
 */

/** The part of the events of an unfinished message that is used. */
interface Writing {
  type: string;
  contentIndex?: number;
  delta?: string;
  toolCall?: { id: string };
}

export class WholeCalls {
  readonly #texts = new Map<number, string>();
  readonly #broken = new Set<string>();

  /** Records one more piece. */
  take({ type, contentIndex = -1, delta = "", toolCall }: Writing): void {
    if (type === "toolcall_start") this.#texts.set(contentIndex, "");
    else if (type === "toolcall_delta") this.#texts.set(contentIndex, (this.#texts.get(contentIndex) ?? "") + delta);
    else if (type === "toolcall_end" && toolCall !== undefined) {
      const text = this.#texts.get(contentIndex) ?? "";
      this.#texts.delete(contentIndex);
      // Some models send no pieces, and no text at all if a tool needs no arguments.
      if (text !== "" && !isJson(text)) this.#broken.add(toolCall.id);
    }
  }

  /** Returns whether a call was truncated; true only once for each call. */
  isBroken(callId: string): boolean {
    return this.#broken.delete(callId);
  }
}

function isJson(text: string): boolean {
  try {
    JSON.parse(text);
    return true;
  } catch {
    return false;
  }
}

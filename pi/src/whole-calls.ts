/**
 * Calls whose arguments broke off. pi 0.x completes what a model began to write and carries it out: `rm -rf /tmp/x`
 * may have been meant to go on. pi 1.x refuses such calls itself.
 */

/** What is looked at of the events of a message that is being written. */
interface Writing {
  type: string;
  contentIndex?: number;
  delta?: string;
  toolCall?: { id: string };
}

export class WholeCalls {
  readonly #texts = new Map<number, string>();
  readonly #broken = new Set<string>();

  /** Takes note of one more piece. */
  take({ type, contentIndex = -1, delta = "", toolCall }: Writing): void {
    if (type === "toolcall_start") this.#texts.set(contentIndex, "");
    else if (type === "toolcall_delta") this.#texts.set(contentIndex, (this.#texts.get(contentIndex) ?? "") + delta);
    else if (type === "toolcall_end" && toolCall !== undefined) {
      const text = this.#texts.get(contentIndex) ?? "";
      this.#texts.delete(contentIndex);
      // Some models say nothing in pieces, and nothing at all where a tool needs no arguments.
      if (text !== "" && !isJson(text)) this.#broken.add(toolCall.id);
    }
  }

  /** Whether a call broke off; says so once. */
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

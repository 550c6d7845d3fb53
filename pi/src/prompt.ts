/**
 * Questions, one at a time. pi 0.74 loses a dialog when a second one opens, and 1.x puts the newer one
 * under the user's fingers, so they wait in a queue here.
 */
import type { AskParams, AskResponse } from "./protocol.ts";
import { plain, question } from "./messages.ts";

/** What is needed of `ctx.ui`. */
export interface Dialogs {
  select(title: string, options: string[], dialog: { signal: AbortSignal }): Promise<string | undefined>;
}

interface Entry {
  ask: AskParams;
  /** Fires when nobody needs the answer any more, for whatever reason. */
  over: AbortController;
  cause: AskResponse["cause"];
  reply(answer: AskResponse): void;
}

export class PromptQueue {
  readonly #dialogs: Dialogs | undefined;
  #entries: Entry[] = [];
  #showing = false;

  /** Without dialogs, everything is refused. */
  constructor(dialogs: Dialogs | undefined) {
    this.#dialogs = dialogs;
  }

  /** Puts a question at the end of the queue; `reply` is called exactly once. */
  ask(ask: AskParams, signal: AbortSignal | undefined, reply: (answer: AskResponse) => void): void {
    if (this.#dialogs === undefined) return reply({ choice: "refuse", cause: "noInterface" });
    if (signal?.aborted) return reply({ choice: "refuse", cause: "aborted" });
    const entry: Entry = { ask, over: new AbortController(), cause: undefined, reply };
    const abort = () => this.#end(entry, "aborted");
    signal?.addEventListener("abort", abort, { once: true });
    entry.over.signal.addEventListener("abort", () => signal?.removeEventListener("abort", abort), { once: true });
    this.#entries.push(entry);
    void this.#showNext(this.#dialogs);
  }

  /** Takes a question back; an answer that still comes means nothing. */
  withdraw(askId: number): void {
    const entry = this.#entries.find((candidate) => candidate.ask.askId === askId);
    if (entry !== undefined) this.#end(entry, "aborted");
  }

  /** Refuses whatever is open. */
  clear(): void {
    for (const entry of [...this.#entries]) this.#end(entry, "aborted");
  }

  #end(entry: Entry, cause: AskResponse["cause"]): void {
    if (!this.#entries.includes(entry)) return;
    this.#entries = this.#entries.filter((other) => other !== entry);
    entry.reply({ choice: "refuse", ...(cause === undefined ? {} : { cause }) });
    entry.over.abort();
  }

  async #showNext(dialogs: Dialogs): Promise<void> {
    if (this.#showing) return;
    this.#showing = true;
    try {
      for (let entry = this.#entries[0]; entry !== undefined; entry = this.#entries[0]) await this.#show(entry, dialogs);
    } finally {
      this.#showing = false;
    }
  }

  async #show(entry: Entry, dialogs: Dialogs): Promise<void> {
    const { ask, over } = entry;
    // The time to answer runs only while the question is seen.
    const timer = ask.timeoutMs === undefined ? undefined
      : setTimeout(() => this.#end(entry, "timeout"), ask.timeoutMs);
    const labels = labelsOf(ask);
    // "Refuse" comes first, so that a key meant for something else permits nothing.
    const choice = dialogs.select(question(ask), ["Refuse", ...labels], { signal: over.signal });
    try {
      const picked = await Promise.race([choice, aborted(over.signal)]);
      const index = picked === undefined ? -1 : labels.indexOf(picked);
      if (index === -1) return this.#end(entry, undefined);
      if (!this.#entries.includes(entry)) return;
      this.#entries = this.#entries.filter((other) => other !== entry);
      entry.reply({ choice: index });
      over.abort();
    } catch {
      this.#end(entry, "aborted");
    } finally {
      clearTimeout(timer);
    }
  }
}

/** pi 0.74 may leave a dialog's promise open for ever; the queue must go on all the same. */
function aborted(signal: AbortSignal): Promise<undefined> {
  return new Promise((resolve) => {
    if (signal.aborted) return resolve(undefined);
    signal.addEventListener("abort", () => resolve(undefined), { once: true });
  });
}

/** Labels that differ from one another and from "Refuse", because select() answers with the text. */
function labelsOf(ask: AskParams): string[] {
  return ask.options.map((option, index) => `${index + 1}. ${plain(option.label, 200)}`);
}

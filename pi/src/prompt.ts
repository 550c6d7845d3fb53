/**
 * A queue of questions, which are shown one at a time. pi 0.74 loses a dialog when a second one opens, and in pi 1.x a
 * newer dialog takes the keys that were meant for the older one.
 */
import type { AskOption, AskParams, AskResponse } from "./protocol.ts";
import { plain, question } from "./messages.ts";
import type { Outcome } from "./prompt-view.ts";

/** Shows one question. */
export interface Dialogs {
  /** Resolves with the answer, or with undefined if there was none. */
  ask(ask: AskParams, signal: AbortSignal, waiting: () => number): Promise<Outcome>;
  /** Called when the number of waiting questions has changed. */
  refresh?(): void;
  /** Called when a question waits that cannot be shown yet. */
  attention?(): void;
}

/** The part of `ctx.ui` that {@link SelectDialogs} uses. */
export interface Selecting {
  select(title: string, options: string[], dialog: { signal: AbortSignal }): Promise<string | undefined>;
  input(title: string, placeholder?: string, dialog?: { signal: AbortSignal }): Promise<string | undefined>;
}

interface Entry {
  ask: AskParams;
  /** Fires when the answer is no longer needed, for whatever reason. */
  over: AbortController;
  cause: AskResponse["cause"];
  reply(answer: AskResponse): void;
}

export class PromptQueue {
  readonly #dialogs: Dialogs | undefined;
  readonly #changed: (waiting: number) => void;
  #entries: Entry[] = [];
  #showing = false;
  #held = 0;

  /** Without dialogs, everything is refused. `changed` gets the number of open questions. */
  constructor(dialogs: Dialogs | undefined, changed: (waiting: number) => void = () => {}) {
    this.#dialogs = dialogs;
    this.#changed = changed;
  }

  /** Adds a question to the end of the queue; `reply` is called exactly once. */
  ask(ask: AskParams, signal: AbortSignal | undefined, reply: (answer: AskResponse) => void): void {
    if (this.#dialogs === undefined) return reply({ choice: "refuse", cause: "noInterface" });
    if (signal?.aborted) return reply({ choice: "refuse", cause: "aborted" });
    const entry: Entry = { ask, over: new AbortController(), cause: undefined, reply };
    const abort = () => this.#end(entry, "aborted");
    signal?.addEventListener("abort", abort, { once: true });
    entry.over.signal.addEventListener("abort", () => signal?.removeEventListener("abort", abort), { once: true });
    this.#entries.push(entry);
    this.#tell();
    if (this.#held > 0) this.#dialogs.attention?.();
    void this.#showNext(this.#dialogs);
  }

  /**
   * Shows no further question until the returned function is called: a component that has the keys must not lose them
   * to a question, where the same key means something else.
   */
  hold(): () => void {
    this.#held += 1;
    let held = true;
    return () => {
      if (!held) return;
      held = false;
      this.#held -= 1;
      if (this.#dialogs !== undefined) void this.#showNext(this.#dialogs);
    };
  }

  /** Withdraws a question; an answer that still comes is ignored. */
  withdraw(askId: number): void {
    const entry = this.#entries.find((candidate) => candidate.ask.askId === askId);
    if (entry !== undefined) this.#end(entry, "aborted");
  }

  /** Refuses all open questions. */
  clear(): void {
    for (const entry of [...this.#entries]) this.#end(entry, "aborted");
  }

  #end(entry: Entry, cause: AskResponse["cause"]): void {
    if (!this.#take(entry)) return;
    entry.reply({ choice: "refuse", ...(cause === undefined ? {} : { cause }) });
    entry.over.abort();
  }

  /** Removes an entry from the queue; returns false if its answer has no effect any more. */
  #take(entry: Entry): boolean {
    if (!this.#entries.includes(entry)) return false;
    this.#entries = this.#entries.filter((other) => other !== entry);
    this.#tell();
    return true;
  }

  #tell(): void {
    this.#changed(this.#entries.length);
    this.#dialogs?.refresh?.();
  }

  async #showNext(dialogs: Dialogs): Promise<void> {
    if (this.#showing) return;
    this.#showing = true;
    try {
      for (let entry = this.#next(); entry !== undefined; entry = this.#next()) await this.#show(entry, dialogs);
    } finally {
      this.#showing = false;
    }
  }

  #next(): Entry | undefined {
    return this.#held > 0 ? undefined : this.#entries[0];
  }

  async #show(entry: Entry, dialogs: Dialogs): Promise<void> {
    const { ask, over } = entry;
    // The time to answer runs only while the question is shown.
    const timer = ask.timeoutMs === undefined ? undefined
      : setTimeout(() => this.#end(entry, "timeout"), ask.timeoutMs);
    const choice = dialogs.ask(ask, over.signal, () => this.#entries.length - 1);
    try {
      const picked = await Promise.race([choice, aborted(over.signal)]);
      if (picked === undefined || picked === "refuse") return this.#end(entry, undefined);
      if (!this.#take(entry)) return;
      entry.reply(typeof picked === "number" ? { choice: picked } : { choice: "refuse", ...picked });
      over.abort();
    } catch {
      this.#end(entry, "aborted");
    } finally {
      clearTimeout(timer);
    }
  }
}

/** pi 0.74 may never settle a dialog's promise; the queue must continue nevertheless. */
function aborted(signal: AbortSignal): Promise<undefined> {
  return new Promise((resolve) => {
    if (signal.aborted) return resolve(undefined);
    signal.addEventListener("abort", () => resolve(undefined), { once: true });
  });
}

/** Shows questions where pi has only a list to choose from, as over RPC. */
export class SelectDialogs implements Dialogs {
  readonly #ui: Selecting;

  constructor(ui: Selecting) {
    this.#ui = ui;
  }

  async ask(ask: AskParams, signal: AbortSignal): Promise<Outcome> {
    // "No" comes first, so that a key meant for something else permits nothing.
    const labels = ask.options.map(label);
    const picked = await this.#ui.select(question(ask), [NO, ...labels, BECAUSE], { signal });
    if (picked === BECAUSE) {
      const because = (await this.#ui.input(BECAUSE, "The agent reads this line", { signal }))?.trim();
      return because ? { because } : "refuse";
    }
    const index = picked === undefined ? -1 : labels.indexOf(picked);
    return index === -1 ? "refuse" : index;
  }
}

const NO = "No";
const BECAUSE = "No, and tell the agent why";

/** Returns a label with a number, so that no two labels are equal and none is "No": select() returns the label. */
function label(option: AskOption, index: number): string {
  const covers = option.covers === undefined ? "" : `: ${plain(option.covers, 300)}`;
  return `${index + 1}. ${plain(option.label, 200)}${covers}`;
}

/**
 * A question on the terminal, as a state that keys change. Whatever is pressed before the question has been
 * quiet for a moment, and whatever is not understood, permits nothing.
 */
import { plain } from "./messages.ts";
import type { AskParams } from "./protocol.ts";
import { Scroll } from "./scroll.ts";

/** Keys pressed sooner than this after one another, or after the question was drawn, were meant for something else. */
export const QUIET_MS = 350;

/** Stands before every line of what is asked for, on the screen as well: what has no bar is not the agent's. */
export const BAR = "  │ ";

/** What a key press means to a question. */
export type Key = "up" | "down" | "left" | "right" | "enter" | "escape" | "pageUp" | "pageDown"
  /** A character, or several that came at once. */
  | { character: string };

/** One line that can be chosen: the options with one key, or the plain "no". */
interface Row {
  key: string;
  /** Numbers of the options, the narrowest first; none for the plain "no". */
  options: number[];
}

/** The answer: the number of an option, or the plain "no"; nothing while it is open. */
export type Outcome = number | "refuse" | undefined;

export class PromptView {
  /** How far the subject has been read: nothing is permitted before all of it was on the screen. */
  readonly scroll = new Scroll();
  readonly #ask: AskParams;
  readonly #rows: Row[];
  #marked = 0;
  #width = 0;
  /** When a key was last pressed, or the question drawn for the first time. */
  #lastAt: number | undefined;
  /** Whether the keys before were meant for this question, so that Enter may follow them at once. */
  #settled = false;

  constructor(ask: AskParams) {
    this.#ask = ask;
    this.#rows = [{ key: "esc", options: [] }];
    ask.options.forEach((option, index) => {
      const row = this.#rows.find((known) => known.key === option.key);
      if (row === undefined) this.#rows.push({ key: option.key, options: [index] });
      else row.options.push(index);
    });
  }

  /** Is told when the question is drawn: a key that was pressed before is not about it. */
  drawn(now: number): void {
    this.#lastAt ??= now;
  }

  /** Takes a key; returns the answer when it gives one. A letter always needs the quiet: it may be part of a word. */
  press(key: Key, now: number): Outcome {
    if (this.#lastAt === undefined) return undefined;
    const quiet = now - this.#lastAt >= QUIET_MS;
    this.#lastAt = now;
    const meant = quiet || (this.#settled && typeof key === "string");
    this.#settled = meant && (typeof key === "string" || this.#rowOf(key.character) !== -1);
    if (!meant) return undefined;
    switch (key) {
      case "escape": return "refuse";
      case "enter": return this.#chosen(this.#rows[this.#marked]);
      case "up": return this.#mark(this.#marked - 1);
      case "down": return this.#mark(this.#marked + 1);
      case "left": return this.#widen(-1);
      case "right": return this.#widen(1);
      case "pageUp": return this.scroll.back();
      case "pageDown": return this.scroll.forth();
    }
    if (key.character === " ") return this.scroll.forth();
    const row = this.#rowOf(key.character);
    if (row === -1) return undefined;
    this.#mark(row);
    // A letter that is written in upper case needs it, or Enter; the others act at once.
    return this.#rows[row]!.key === key.character ? this.#chosen(this.#rows[row]) : undefined;
  }

  #rowOf(character: string): number {
    return this.#rows.findIndex(({ key }) => key.toLowerCase() === character.toLowerCase());
  }

  #mark(row: number): undefined {
    this.#marked = Math.max(0, Math.min(this.#rows.length - 1, row));
  }

  #widen(by: number): undefined {
    const widest = Math.max(...this.#rows.map((row) => row.options.length)) - 1;
    this.#width = Math.max(0, Math.min(widest, this.#width + by));
  }

  #chosen(row: Row | undefined): Outcome {
    if (row === undefined) return undefined;
    if (row.options.length === 0) return "refuse";
    const option = this.#option(row);
    return this.scroll.done || this.#ask.options[option]!.effect === "deny" ? option : undefined;
  }

  /** The option of a row that covers as much as is wanted, or as little less as there is. */
  #option(row: Row): number {
    return row.options[Math.min(this.#width, row.options.length - 1)]!;
  }

  /** The lines to be drawn; `waiting` questions come after this one. */
  lines(waiting: number): { text: string; tone: "title" | "subject" | "plain" | "faint" | "marked" }[] {
    const ask = this.#ask;
    const more = waiting === 0 ? "" : `  (1 of ${waiting + 1})`;
    const lines: ReturnType<PromptView["lines"]> = [{ text: `🔒 ${plain(ask.title, 200)}${more}`, tone: "title" }];
    for (const line of ask.subject.split("\n")) {
      lines.push({ text: `${BAR}${plain(line.replaceAll("\t", "  "), 8_000)}`, tone: "subject" });
    }
    lines.push({
      text: `  asked by ${plain(ask.asker, 100)}: ${plain(ask.reason, 400)} (${plain(ask.policy, 80)}, ${plain(ask.rule, 80)})`,
      tone: "faint",
    });
    if (ask.quote !== undefined) {
      lines.push({ text: `  policy ${plain(ask.policy, 80)} says: "${plain(ask.quote, 400)}"`, tone: "faint" });
    }
    const covers = this.#covers();
    if (covers !== undefined) lines.push({ text: `  covers ${plain(covers, 300)}${this.#arrows()}`, tone: "plain" });
    lines.push({ text: "", tone: "plain" });
    this.#rows.forEach((row, index) => {
      const option = row.options.length === 0 ? undefined : ask.options[this.#option(row)];
      const target = option?.target === undefined ? "" : `  → ${plain(option.target, 200)}`;
      const label = option === undefined ? "Abort" : plain(option.label, 200);
      const mark = index === this.#marked ? "→" : " ";
      lines.push({
        text: ` ${mark} ${`[${row.key}]`.padEnd(6)} ${label}${target}`, tone: index === this.#marked ? "marked" : "plain",
      });
    });
    return lines;
  }

  /** What the marked answer would cover, or else the first one for longer than once, as far as it is widened now. */
  #covers(): string | undefined {
    const lasts = (row: Row) => row.options.some((index) => this.#ask.options[index]!.covers !== undefined);
    const marked = this.#rows[this.#marked];
    const lasting = marked !== undefined && lasts(marked) ? marked : this.#rows.find(lasts);
    return lasting === undefined ? undefined : this.#ask.options[this.#option(lasting)]!.covers;
  }

  #arrows(): string {
    const widest = Math.max(...this.#rows.map((row) => row.options.length)) - 1;
    if (widest < 1) return "";
    return `   [${this.#width > 0 ? "← narrower" : ""}${this.#width > 0 && this.#width < widest ? ", " : ""}${this.#width < widest ? "→ wider" : ""}]`;
  }
}

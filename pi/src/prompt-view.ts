/**
 * A question on the terminal, as a state machine with keys as its input. A key permits nothing if it is pressed before
 * the keyboard was quiet for a moment, or if it has no meaning here.
 */
import { plain } from "./messages.ts";
import type { AskParams } from "./protocol.ts";
import { Scroll } from "./scroll.ts";

/**
 * Keys that come sooner than this after another one, or after the question was drawn, were meant for something else.
 */
export const QUIET_MS = 350;

/** The bar before every line of the subject, also on the screen: a line without it does not come from the agent. */
export const BAR = "  │ ";

/** A key press, as far as it matters to a question. */
export type Key = "up" | "down" | "left" | "right" | "enter" | "escape" | "pageUp" | "pageDown"
  /** A character, or several that came at once. */
  | { character: string };

/** A line that can be chosen: the options with one key, or the plain "no". */
interface Row {
  key: string;
  /** The indices of the options, the narrowest first; empty for the plain "no". */
  options: number[];
}

/** The answer: the index of an option, or the plain "no"; undefined while there is none. */
export type Outcome = number | "refuse" | undefined;

export class PromptView {
  /**
   * The part of the subject that has been shown: no option that permits can be chosen before all of it was on the
   * screen.
   */
  readonly scroll = new Scroll();
  readonly #ask: AskParams;
  readonly #rows: Row[];
  #marked = 0;
  #width = 0;
  /** The time when a key was last pressed, or when the question was first drawn. */
  #lastAt: number | undefined;
  /** Whether the previous keys were meant for this question, so that Enter may follow them at once. */
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

  /** Called when the question is drawn: keys that were pressed before are not an answer to it. */
  drawn(now: number): void {
    this.#lastAt ??= now;
  }

  /**
   * Takes a key; returns the answer if it completes one. A letter always needs the quiet time, because it may be part
   * of a word.
   */
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
    // An option with an upper-case letter needs that letter or Enter; the others take effect at once.
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

  /** Returns the option of a row with the chosen width, or with the widest one that the row has. */
  #option(row: Row): number {
    return row.options[Math.min(this.#width, row.options.length - 1)]!;
  }

  /** Returns the lines to be drawn; `waiting` questions come after this one. */
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

  /** Returns what the marked answer would cover, or else the first one for longer than once, at the chosen width. */
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

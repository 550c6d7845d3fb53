/** Questions on pi's terminal. */
import type { Dialogs } from "./prompt.ts";
import { BAR, PromptView } from "./prompt-view.ts";
import type { AskParams } from "./protocol.ts";
import { type Canvas, draw, type Painted } from "./terminal.ts";

const COLORS = { title: "warning", subject: "accent", plain: "text", faint: "muted", marked: "accent" } as const;

export class TerminalDialogs implements Dialogs {
  readonly #canvas: Canvas;
  #redraw: () => void = () => {};

  constructor(canvas: Canvas) {
    this.#canvas = canvas;
  }

  async ask(ask: AskParams, signal: AbortSignal, waiting: () => number): Promise<number | "refuse" | undefined> {
    const view = new PromptView(ask);
    this.attention();
    return await draw<number | "refuse">(this.#canvas, {
      scroll: view.scroll,
      lines: (): Painted[] => {
        view.drawn(Date.now());
        return view.lines(waiting()).map(({ text, tone }) =>
          ({ text, color: COLORS[tone], ...(tone === "subject" ? { before: BAR, scrolls: true } : {}) }));
      },
      press: (key, done) => {
        const outcome = view.press(key, Date.now());
        if (outcome !== undefined) done(outcome);
      },
    }, signal, (redraw) => (this.#redraw = redraw));
  }

  refresh(): void {
    this.#redraw();
  }

  /** Rings the bell, so that terminals and multiplexers mark the window for a user who looks elsewhere. */
  attention(): void {
    process.stdout.write("\x07");
  }
}

/** Questions on pi's terminal. */
import type { Dialogs } from "./prompt.ts";
import { BAR, type Outcome, PromptView } from "./prompt-view.ts";
import type { AskParams } from "./protocol.ts";
import { type Canvas, draw, type Painted } from "./terminal.ts";

const COLORS = { title: "warning", subject: "accent", plain: "text", faint: "muted", marked: "accent", alarm: "error" } as const;

export class TerminalDialogs implements Dialogs {
  readonly #canvas: Canvas;
  #redraw: () => void = () => {};

  constructor(canvas: Canvas) {
    this.#canvas = canvas;
  }

  async ask(ask: AskParams, signal: AbortSignal, waiting: () => number): Promise<Outcome> {
    const view = new PromptView(ask);
    this.attention();
    return await draw<NonNullable<Outcome>>(this.#canvas, {
      get scroll() {
        return view.scroll;
      },
      lines: (columns): Painted[] => {
        view.drawn(Date.now());
        return view.lines(waiting(), columns).map(({ text, tone, row, spare }) => ({
          text, color: COLORS[tone], scrolls: tone === "subject",
          ...(text.startsWith(BAR) ? { before: BAR } : {}),
          ...(row === undefined ? {} : { row, isMarked: tone === "marked" }), ...(spare ? { spare } : {}),
        }));
      },
      fitted: (rows) => view.fitted(rows),
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

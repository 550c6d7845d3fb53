/** Terminal functions that questions and `/sandbox` share: keys, and lines that fit the width. */
import type { ExtensionUIContext } from "@earendil-works/pi-coding-agent";
import { decodeKittyPrintable, isKeyRelease, parseKey } from "@earendil-works/pi-tui";
import type { Key } from "./prompt-view.ts";
import { fitted, type Piece, type Scroll } from "./scroll.ts";
import { wrapped } from "./wrapped.ts";

/** The part of `ctx.ui` that a component of our own needs. */
export type Canvas = Pick<ExtensionUIContext, "custom">;

type Color = "accent" | "error" | "success" | "warning" | "muted" | "text";

export interface Painted {
  text: string;
  color: Color;
  /** The prefix of the continuation of a line that does not fit, which must not look like a line of its own. */
  before?: string;
  /** Whether the line may be scrolled where the screen is too small for everything. */
  scrolls?: boolean;
  /** The row of a choice that it belongs to: where there is little room, only rows near the marked one are shown. */
  row?: number;
  isMarked?: boolean;
  /** Whether it is left out first where there is little room. */
  spare?: boolean;
}

/** The number of screen lines that belong to pi. */
const OF_PI = 6;
const REST = "      ";

/** A component that consists of lines and gets keys. */
export interface Drawing<T> {
  lines(columns: number): Painted[];
  /** Called with the rows of choices that are on the screen. */
  fitted?(rows: ReadonlySet<number>): void;
  /** The scroll state of its long text; without one, everything is shown at once. */
  scroll?: Scroll;
  /** Takes a key; calls `done` when the component is finished. */
  press(key: Key, done: (result: T) => void): void;
}

/**
 * Shows a drawing in place of pi's editor until it is done; resolves with undefined if `signal` fires first. `shown`
 * gets a function that redraws it.
 */
export function draw<T>(
  canvas: Canvas, drawing: Drawing<T>, signal: AbortSignal, shown: (redraw: () => void) => void,
): Promise<T | undefined> {
  return canvas.custom<T | undefined>((tui, theme, _keybindings, done) => {
    let over = false;
    const finish = (result: T | undefined) => {
      if (over) return;
      over = true;
      done(result);
    };
    if (signal.aborted) queueMicrotask(() => finish(undefined));
    signal.addEventListener("abort", () => finish(undefined), { once: true });
    shown(() => {
      if (!over) tui.requestRender();
    });
    return {
      render: (width: number) => {
        const pieces: Piece[] = drawing.lines(width).map(({ text, color, before = REST, ...piece }) =>
          ({ ...piece, lines: wrapped(text, width, before).map((line) => theme.fg(color, line)) }));
        const where = (text: string) => wrapped(`  ${text}`, width, REST).map((line) => theme.fg("warning", line));
        const { lines, rows } = fitted(pieces, (process.stdout.rows ?? 24) - OF_PI, drawing.scroll, where);
        drawing.fitted?.(rows);
        return lines;
      },
      handleInput: (data: string) => {
        const key = keyOf(data);
        if (key === undefined || over) return;
        drawing.press(key, finish);
        tui.requestRender();
      },
      invalidate: () => {},
    };
  });
}

const NAMED: Record<string, Key> = {
  up: "up", down: "down", left: "left", right: "right", enter: "enter", return: "enter", escape: "escape",
  esc: "escape", pageUp: "pageUp", pageDown: "pageDown", backspace: { character: "\b" }, tab: "right", "shift+tab": "left", "ctrl+c": "escape",
};

/** Returns the key that a terminal sent; undefined for input without a meaning here. */
function keyOf(data: string): Key | undefined {
  if (isKeyRelease(data)) return undefined;
  const named = NAMED[parseKey(data) ?? ""];
  if (named !== undefined) return named;
  // Fast typing and pasted text come in one piece, which is not a key, but text where text is expected.
  const text = decodeKittyPrintable(data) ?? data.replaceAll(/\x1b\[20[01]~/g, "");
  return text !== "" && !/\p{Cc}/u.test(text) ? { character: text } : undefined;
}

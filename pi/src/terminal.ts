/** What questions and `/sandbox` share on the terminal: keys, and lines that fit. */
import type { ExtensionUIContext } from "@earendil-works/pi-coding-agent";
import { decodeKittyPrintable, isKeyRelease, parseKey } from "@earendil-works/pi-tui";
import type { Key } from "./prompt-view.ts";
import { fitted, type Scroll } from "./scroll.ts";
import { wrapped } from "./wrapped.ts";

/** What is needed of `ctx.ui` for a component of our own. */
export type Canvas = Pick<ExtensionUIContext, "custom">;

type Color = "accent" | "error" | "success" | "warning" | "muted" | "text";

export interface Painted {
  text: string;
  color: Color;
  /** What stands before the rest of a line that does not fit: such a rest must not look like a line of its own. */
  before?: string;
  /** Whether it may be shown piece by piece where the screen is too small for everything. */
  scrolls?: boolean;
}

/** Lines of the screen that are pi's own. */
const OF_PI = 6;
const REST = "      ";

/** A component that is drawn from lines and told of keys. */
export interface Drawing<T> {
  lines(): Painted[];
  /** How far its long text has been read; without it everything is shown at once. */
  scroll?: Scroll;
  /** Takes a key; calls `done` when it is the last one. */
  press(key: Key, done: (result: T) => void): void;
}

/**
 * Shows a drawing in place of pi's editor until it is done or `signal` fires, which gives nothing. `shown` gets
 * a function that draws it anew.
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
        const pieces = drawing.lines().map(({ text, color, before = REST, scrolls = false }) =>
          ({ scrolls, lines: wrapped(text, width, before).map((line) => theme.fg(color, line)) }));
        const where = (text: string) => wrapped(`  ${text}`, width, REST).map((line) => theme.fg("warning", line));
        return fitted(pieces, (process.stdout.rows ?? 24) - OF_PI, drawing.scroll, where);
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

/** The key that a terminal sent; nothing for what means nothing here. */
function keyOf(data: string): Key | undefined {
  if (isKeyRelease(data)) return undefined;
  const named = NAMED[parseKey(data) ?? ""];
  if (named !== undefined) return named;
  // Fast typing and pasting come as one piece, which is no key, but text where text is wanted.
  const text = decodeKittyPrintable(data) ?? data.replaceAll(/\x1b\[20[01]~/g, "");
  return text !== "" && !/\p{Cc}/u.test(text) ? { character: text } : undefined;
}

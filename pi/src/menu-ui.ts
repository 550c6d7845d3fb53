/** The command `/sandbox` in pi. */
import type { ExtensionCommandContext, ExtensionUIContext } from "@earendil-works/pi-coding-agent";
import { type Ask, inDialogs, printed, walk } from "./menu.ts";
import { MenuView } from "./menu-view.ts";
import type { Key } from "./prompt-view.ts";
import type { MenuEffect } from "./protocol.ts";
import type { Session } from "./session.ts";
import { draw } from "./terminal.ts";

/** Opens `/sandbox`; resolves when the user leaves it. */
export async function openMenu(session: Session, context: ExtensionCommandContext, arm: () => void): Promise<void> {
  // `s` saves here, and allows for the session in a question.
  const release = session.isTerminal ? session.holdQuestions() : () => {};
  try {
    const effect = await session.withMenuHost(context, (ask) => {
      if (!context.hasUI) return walk(ask, printed);
      return session.isTerminal ? onTerminal(context.ui, ask) : walk(ask, inDialogs(context.ui));
    });
    if (effect === "enable") {
      arm();
      await session.start(context, "on");
    } else if (effect === "disable") {
      await session.turnOff(context);
    }
  } finally {
    release();
  }
}

/**
 * Shows all screens in one component: between two components keys would go to pi's editor. Keys that are pressed while
 * the host prepares a screen go to that screen.
 */
async function onTerminal(ui: ExtensionUIContext, ask: Ask): Promise<MenuEffect | undefined> {
  const first = await ask({ kind: "open" });
  if (first.effect !== undefined) return first.effect;
  let view = new MenuView(first);
  let busy = false;
  let failure: unknown;
  let redraw = () => {};
  const pressed: Key[] = [];
  const next = (done: (effect: MenuEffect) => void) => {
    while (!busy && pressed.length > 0) {
      const event = view.press(pressed.shift()!);
      if (event === undefined) continue;
      busy = true;
      ask(event).then((screen) => {
        busy = false;
        if (screen.effect !== undefined) return done(screen.effect);
        view = new MenuView(screen, view);
        redraw();
        next(done);
      }, (error: unknown) => {
        failure = error;
        done("close");
      });
    }
  };
  const effect = await draw<MenuEffect>(ui, {
    lines: () => view.lines(),
    press: (key, done) => {
      pressed.push(key);
      next(done);
    },
  }, new AbortController().signal, (again) => (redraw = again));
  if (failure !== undefined) throw failure;
  return effect;
}

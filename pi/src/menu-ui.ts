/** `/sandbox` in pi. */
import type { ExtensionCommandContext, ExtensionUIContext } from "@earendil-works/pi-coding-agent";
import { inDialogs, printed, type Screens, walk } from "./menu.ts";
import { MenuView } from "./menu-view.ts";
import type { MenuEvent } from "./protocol.ts";
import type { Session } from "./session.ts";
import { draw } from "./terminal.ts";

/** Opens `/sandbox` and stays until the user leaves it. */
export async function openMenu(session: Session, context: ExtensionCommandContext, arm: () => void): Promise<void> {
  const show = !context.hasUI ? printed : session.isTerminal ? onTerminal(context.ui) : inDialogs(context.ui);
  const effect = await session.withMenuHost(context, (ask) => walk(ask, show));
  if (effect === "enable") {
    arm();
    await session.start(context, "on");
  } else if (effect === "disable") {
    await session.turnOff(context);
  }
}

function onTerminal(ui: ExtensionUIContext): Screens {
  return (screen) => {
    const view = new MenuView(screen);
    return draw<MenuEvent>(ui, {
      lines: () => view.lines(),
      press: (key, done) => {
        const event = view.press(key);
        if (event !== undefined) done(event);
      },
    }, new AbortController().signal, () => {});
  };
}

/** The command `/sandbox`: the host provides the screens, which are only drawn here. */
import type { ExtensionUIContext } from "@earendil-works/pi-coding-agent";
import { plain } from "./messages.ts";
import type { MenuEvent, MenuScreen } from "./protocol.ts";

/** Shows a screen and resolves with the user's event; with undefined when the user has left. */
export type Screens = (screen: MenuScreen) => Promise<MenuEvent | undefined>;

/** Sends an event to the host and resolves with the next screen. */
export type Ask = (event: MenuEvent) => Promise<MenuScreen>;

/** Goes from screen to screen until the user leaves; returns the effect of the last one. */
export async function walk(ask: Ask, show: Screens): Promise<MenuScreen["effect"]> {
  let event: MenuEvent | undefined = { kind: "open" };
  while (event !== undefined) {
    const screen: MenuScreen = await ask(event);
    if (screen.effect !== undefined) return screen.effect;
    event = await show(screen);
  }
  return "close";
}

/** Shows screens where pi has only lists and input lines, as over RPC. */
export function inDialogs(ui: Pick<ExtensionUIContext, "select" | "input">): Screens {
  return async (screen) => {
    const lines = screen.lines.map((line) => plain(line.text, 1_000));
    const title = [plain(screen.title, 200), ...lines].join("\n");
    if (screen.input !== undefined) {
      const text = await ui.input(`${title}\n${screen.input.label}`, screen.input.value);
      return text === undefined ? { kind: "back" } : { kind: "text", text };
    }
    const items = screen.items.map((item, index) => {
      const value = item.value === undefined ? "" : `: ${plain(item.value, 300)}`;
      const problem = item.problem === undefined ? "" : ` ✗ ${plain(item.problem, 300)}`;
      return `${index + 1}. ${plain(item.label, 300)}${value}${problem}`;
    });
    // A key that applies to an item needs one, which the user chooses next.
    const keys = screen.keys.map(({ key, label }) => `[${key}] ${label}`);
    const picked = await ui.select(title, [...items, ...keys]);
    if (picked === undefined) return { kind: "back" };
    const key = keys.indexOf(picked);
    if (key === -1) return { kind: "choose", index: items.indexOf(picked) };
    const chosen = screen.keys[key]!.key;
    if (chosen !== "d") return { kind: "key", key: chosen, index: 0 };
    const item = await ui.select(screen.keys[key]!.label, items);
    return item === undefined ? { kind: "key", key: "", index: 0 } : { kind: "key", key: "d", index: items.indexOf(item) };
  };
}

/** Prints the first screen where pi has no interface. */
export async function printed(screen: MenuScreen): Promise<undefined> {
  for (const line of screen.lines) console.error(plain(line.text, 1_000));
}

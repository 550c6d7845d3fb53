/** A screen of `/sandbox` on the terminal, as a state machine with keys as its input. */
import { plain } from "./messages.ts";
import type { MenuEvent, MenuScreen } from "./protocol.ts";
import type { Key } from "./prompt-view.ts";
import type { Painted } from "./terminal.ts";

const TONES = { plain: "text", heading: "accent", faint: "muted", good: "success", bad: "error" } as const;
/** The number of items on the screen at once; the list scrolls. */
const SHOWN = 16;

export class MenuView {
  readonly #screen: MenuScreen;
  #marked: number;
  #typed: string;

  constructor(screen: MenuScreen) {
    this.#screen = screen;
    this.#marked = Math.max(0, Math.min(screen.items.length - 1, screen.selected));
    this.#typed = screen.input?.value ?? "";
  }

  /** Takes a key; returns the event that it causes, if any. */
  press(key: Key): MenuEvent | undefined {
    if (key === "escape") return { kind: "back" };
    if (this.#screen.input !== undefined) return this.#type(key);
    const last = this.#screen.items.length - 1;
    switch (key) {
      case "up": return this.#mark(this.#marked === 0 ? last : this.#marked - 1);
      case "down": return this.#mark(this.#marked === last ? 0 : this.#marked + 1);
      case "left": case "right": case "pageUp": case "pageDown": return undefined;
      case "enter": return last < 0 ? undefined : { kind: "choose", index: this.#marked };
    }
    const known = this.#screen.keys.some((wanted) => wanted.key === key.character);
    return known ? { kind: "key", key: key.character, index: this.#marked } : undefined;
  }

  #mark(item: number): undefined {
    this.#marked = Math.max(0, item);
  }

  #type(key: Key): MenuEvent | undefined {
    if (key === "enter") return { kind: "text", text: this.#typed };
    if (typeof key === "string") return undefined;
    if (key.character === "\b") this.#typed = [...this.#typed].slice(0, -1).join("");
    else this.#typed += key.character;
    return undefined;
  }

  lines(): Painted[] {
    const screen = this.#screen;
    const lines: Painted[] = [{ text: plain(screen.title, 200), color: "accent" }];
    for (const line of screen.lines) lines.push({ text: `  ${plain(line.text, 1_000)}`, color: TONES[line.tone] });
    lines.push({ text: "", color: "text" });
    if (screen.input !== undefined) {
      lines.push({ text: ` ${plain(screen.input.label, 200)}: ${plain(this.#typed, 1_000)}▏`, color: "accent" });
      lines.push({ text: " enter take it   esc back", color: "muted" });
      return lines;
    }
    const first = Math.max(0, Math.min(this.#marked - SHOWN + 2, screen.items.length - SHOWN));
    const width = Math.max(0, ...screen.items.map((item) => (item.value === undefined ? 0 : item.label.length)));
    screen.items.slice(first, first + SHOWN).forEach((item, place) => {
      const marked = first + place === this.#marked;
      const label = plain(item.label, 300);
      const value = item.value === undefined ? "" : `${" ".repeat(Math.max(0, Math.min(width, 40) - label.length))}  ${plain(item.value, 300)}`;
      lines.push({ text: ` ${marked ? "→" : " "} ${label}${value}`, color: marked ? "accent" : "text" });
      if (item.problem !== undefined) lines.push({ text: `     ✗ ${plain(item.problem, 400)}`, color: "error" });
    });
    const hidden = screen.items.length - SHOWN;
    if (hidden > 0) lines.push({ text: `   ${this.#marked + 1} of ${screen.items.length}`, color: "muted" });
    const arrows = screen.items.length === 0 ? "" : "↑↓ navigate   enter choose   ";
    const keys = screen.keys.map(({ key, label }) => `${key} ${label}`).join("   ");
    lines.push({ text: "", color: "text" }, { text: ` ${arrows}${keys}   esc back`, color: "muted" });
    return lines;
  }
}

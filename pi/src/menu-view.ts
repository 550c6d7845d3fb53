/** A screen of `/sandbox` on the terminal, as a state machine with keys as its input. */
import { plain } from "./messages.ts";
import type { MenuEvent, MenuItem, MenuScreen } from "./protocol.ts";
import type { Key } from "./prompt-view.ts";
import type { Painted } from "./terminal.ts";

const TONES = { plain: "text", heading: "accent", faint: "muted", good: "success", bad: "error" } as const;
/** The number of items on the screen at once; the list scrolls. */
const SHOWN = 16;

export class MenuView {
  readonly #screen: MenuScreen;
  /** The place of the marked item among those that the filter leaves. */
  #marked: number;
  #typed: string;
  /** The text that items have to contain. */
  #filter: string;
  #isFiltering = false;

  /** `before` is the screen before: its filter stays as long as the list does. */
  constructor(screen: MenuScreen, before?: MenuView) {
    this.#screen = screen;
    this.#filter = before !== undefined && listOf(before.#screen) === listOf(screen) ? before.#filter : "";
    const place = this.#items().findIndex(({ index }) => index >= screen.selected);
    this.#marked = place === -1 ? Math.max(0, this.#items().length - 1) : place;
    this.#typed = screen.input?.value ?? "";
  }

  /** Returns the items that the filter leaves, each with its place in the list. */
  #items(): { item: MenuItem; index: number }[] {
    const wanted = this.#filter.toLowerCase();
    const all = this.#screen.items.map((item, index) => ({ item, index }));
    return all.filter(({ item }) => `${item.label} ${item.value ?? ""}`.toLowerCase().includes(wanted));
  }

  /** Takes a key; returns the event that it causes, if any. */
  press(key: Key): MenuEvent | undefined {
    if (this.#isFiltering) return this.#filterBy(key);
    if (key === "escape" && this.#filter !== "") return this.#leave("");
    if (key === "escape") return { kind: "back" };
    if (this.#screen.input !== undefined) return this.#type(key);
    const items = this.#items();
    const last = items.length - 1;
    const index = items[this.#marked]?.index ?? 0;
    switch (key) {
      case "up": return this.#mark(this.#marked === 0 ? last : this.#marked - 1);
      case "down": return this.#mark(this.#marked === last ? 0 : this.#marked + 1);
      case "left": case "right": case "pageUp": case "pageDown": return undefined;
      case "enter": return last < 0 ? undefined : { kind: "choose", index };
    }
    if (key.character === "/" && this.#screen.items.length > 0) {
      this.#isFiltering = true;
      return undefined;
    }
    // A key that is about an item needs one.
    if (last < 0 && this.#filter !== "") return undefined;
    const known = this.#screen.keys.some((wanted) => wanted.key === key.character);
    return known ? { kind: "key", key: key.character, index } : undefined;
  }

  #filterBy(key: Key): undefined {
    if (key === "enter") return this.#leave(this.#filter);
    if (key === "escape") return this.#leave("");
    if (typeof key === "string") return undefined;
    if (key.character === "\b") this.#filter = [...this.#filter].slice(0, -1).join("");
    else this.#filter += key.character;
    this.#marked = 0;
  }

  /** Ends typing the filter, with the mark on the same item. */
  #leave(filter: string): undefined {
    const marked = this.#items()[this.#marked]?.index ?? 0;
    this.#isFiltering = false;
    this.#filter = filter;
    this.#marked = Math.max(0, this.#items().findIndex(({ index }) => index >= marked));
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
      lines.push({ text: " enter accept  esc back", color: "muted" });
      return lines;
    }
    const items = this.#items();
    if (this.#isFiltering || this.#filter !== "") {
      lines.push({ text: ` / ${plain(this.#filter, 200)}${this.#isFiltering ? "▏" : ""}`, color: "accent" });
      if (items.length === 0) lines.push({ text: "   no match", color: "muted" });
    }
    const first = Math.max(0, Math.min(this.#marked - SHOWN + 2, items.length - SHOWN));
    const width = Math.max(0, ...items.map(({ item }) => (item.value === undefined ? 0 : item.label.length)));
    items.slice(first, first + SHOWN).forEach(({ item }, place) => {
      const marked = first + place === this.#marked;
      const label = plain(item.label, 300);
      const value = item.value === undefined ? "" : `${" ".repeat(Math.max(0, Math.min(width, 40) - label.length))}  ${plain(item.value, 300)}`;
      lines.push({ text: ` ${marked ? "→" : " "} ${label}${value}`, color: marked ? "accent" : "text" });
      if (item.problem !== undefined) lines.push({ text: `     ✗ ${plain(item.problem, 400)}`, color: "error" });
    });
    if (items.length > SHOWN) lines.push({ text: `   ${this.#marked + 1} of ${items.length}`, color: "muted" });
    const arrows = screen.items.length === 0 ? "" : "↑↓ move  enter choose  / filter  ";
    const keys = screen.keys.map(({ key, label }) => `${key} ${label}  `).join("");
    const hint = this.#isFiltering ? " type to filter  enter keep  esc all" : ` ${arrows}${keys}esc back`;
    lines.push({ text: "", color: "text" }, { text: hint, color: "muted" });
    return lines;
  }
}

/** Returns what names the list of a screen. */
function listOf(screen: MenuScreen): string {
  return [screen.title.replace(" (not saved)", ""), screen.input?.label ?? "", screen.keys.map(({ key }) => key).join("")].join("\n");
}

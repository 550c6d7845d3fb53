/** A part of the screen that shows a long text in pieces, and records how much of it has been seen. */
export class Scroll {
  #top = 0;
  #height = 1;
  /** The number of lines of the text when it was last shown; 0 if it needed no scrolling. */
  #length = 0;
  /** The number of lines from the beginning that have been seen. */
  #seen = 0;

  /** Whether all of the text has been seen. */
  get done(): boolean {
    return this.#seen >= this.#length;
  }

  /** Records that the whole text is on the screen. */
  whole(): void {
    this.#top = this.#length = this.#seen = 0;
  }

  /** Returns the lines to show, at most `height` of them, and a text that says where they are. */
  window(lines: string[], height: number): { shown: string[]; where: string } {
    // At another width the lines are different ones.
    if (lines.length !== this.#length) this.#top = this.#seen = 0;
    this.#length = lines.length;
    this.#height = Math.max(1, height);
    this.#top = Math.max(0, Math.min(this.#top, lines.length - this.#height));
    const end = Math.min(lines.length, this.#top + this.#height);
    if (this.#top <= this.#seen) this.#seen = Math.max(this.#seen, end);
    const left = this.done ? "" : "; see all of it before you say yes";
    return {
      shown: lines.slice(this.#top, end),
      where: `lines ${this.#top + 1} to ${end} of ${lines.length}: space for more, page up to go back${left}`,
    };
  }

  forth(): undefined {
    this.#top += this.#height;
  }

  back(): undefined {
    this.#top = Math.max(0, this.#top - this.#height);
  }
}

/** The smallest number of lines of a long text that are shown. */
const LEAST = 3;

/** A part of what is drawn, wrapped to the width. */
export interface Piece {
  lines: string[];
  /** Whether it may be scrolled. */
  scrolls?: boolean;
  /** The row of a choice. */
  row?: number;
  isMarked?: boolean;
  /** Whether it is left out first. */
  spare?: boolean;
}

/**
 * Fits the drawn pieces into `rows` lines: by leaving out spare ones, then by showing less of the part that scrolls,
 * then only choices around the marked one. Returns the lines, and the rows of choices among them; none of these if not
 * even the marked one fits.
 */
export function fitted(
  pieces: Piece[], rows: number, scroll: Scroll | undefined, where: (text: string) => string[],
): { lines: string[]; rows: Set<number> } {
  const linesOf = (part: Piece[]) => part.flatMap(({ lines }) => lines);
  const result = (part: Piece[]) =>
    ({ lines: linesOf(part), rows: new Set(part.flatMap(({ row }) => (row === undefined ? [] : [row]))) });
  let kept = pieces;
  if (linesOf(kept).length > rows) kept = kept.filter(({ spare }) => !spare);
  if (scroll === undefined || linesOf(kept).length <= rows) {
    scroll?.whole();
    return result(kept);
  }
  const choices = kept.filter(({ row }) => row !== undefined);
  const fixed = linesOf(kept.filter(({ scrolls, row }) => !scrolls && row === undefined)).length;
  const long = linesOf(kept.filter(({ scrolls }) => scrolls));
  // The line with the position may wrap into two.
  const needed = long.length <= LEAST ? long.length : LEAST + 2;
  if (fixed + needed + linesOf(choices).length > rows) {
    const around = nearMarked(choices, rows - fixed - needed - 1);
    const last = choices.indexOf(around.at(-1) ?? choices.at(-1)!);
    const hidden = choices.length - around.length;
    const note: Piece = { lines: where(around.length === 0 ? "enlarge the window to answer" : `↑↓ ${hidden} more`).slice(0, 1) };
    kept = kept.flatMap((piece) => {
      if (piece.row === undefined) return [piece];
      const rest = piece === choices[last] ? [note] : [];
      return around.includes(piece) ? [piece, ...rest] : rest;
    });
  }
  const room = rows - linesOf(kept.filter(({ scrolls }) => !scrolls)).length;
  if (long.length <= room) {
    scroll.whole();
    return result(kept);
  }
  const window = scroll.window(long, Math.max(LEAST, room - 2));
  const first = kept.findIndex(({ scrolls }) => scrolls);
  const shown = kept.flatMap((piece, index): Piece[] => {
    if (!piece.scrolls) return [piece];
    return index === first ? [{ lines: [...window.shown, ...where(window.where)] }] : [];
  });
  return result(shown);
}

/** Returns the choices around the marked one that fit into a number of lines. */
function nearMarked(choices: Piece[], room: number): Piece[] {
  const marked = Math.max(0, choices.findIndex(({ isMarked }) => isMarked));
  let [first, end] = [marked, marked];
  let used = 0;
  const fits = (index: number) => index >= 0 && index < choices.length && used + choices[index]!.lines.length <= room;
  while (fits(end) || fits(first - 1)) {
    if (fits(end)) used += choices[end++]!.lines.length;
    if (end > marked && fits(first - 1)) used += choices[--first]!.lines.length;
    if (end === marked) break;
  }
  return choices.slice(first, end);
}

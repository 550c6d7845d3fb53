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

/** Fits the drawn lines into `rows`, by showing less of the part that scrolls. */
export function fitted(
  pieces: { scrolls: boolean; lines: string[] }[], rows: number, scroll: Scroll | undefined,
  where: (text: string) => string[],
): string[] {
  const all = pieces.flatMap(({ lines }) => lines);
  if (scroll === undefined || all.length <= rows) {
    scroll?.whole();
    return all;
  }
  const first = pieces.findIndex(({ scrolls }) => scrolls);
  const long = pieces.filter(({ scrolls }) => scrolls).flatMap(({ lines }) => lines);
  const fixed = (part: typeof pieces) => part.flatMap(({ scrolls, lines }) => (scrolls ? [] : lines));
  const [head, tail] = [fixed(pieces.slice(0, first)), fixed(pieces.slice(first))];
  // The line with the position may wrap into two.
  const window = scroll.window(long, Math.max(LEAST, rows - head.length - tail.length - 2));
  return [...head, ...window.shown, ...where(window.where), ...tail];
}

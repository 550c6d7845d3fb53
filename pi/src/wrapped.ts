/** Wraps lines to a width that fits on every terminal. */

/**
 * Wraps a line at `width` columns, with `before` in front of every piece but the first. In a text behind a mark, which
 * is someone else's, every character stays; in our own texts, a space at a break is dropped.
 */
export function wrapped(text: string, width: number, before: string): string[] {
  let room = Math.max(2, width);
  const isOwn = before.trim() === "";
  const pieces: string[] = [];
  let [piece, used] = ["", 0];
  for (const character of text) {
    if (used + columns(character) > room) {
      // At a space, unless that would leave half of the line empty.
      const end = piece.lastIndexOf(" ") + 1;
      const isAtWord = isOwn && character === " ";
      const cut = end * 2 > piece.length && !isAtWord ? end : piece.length;
      pieces.push(piece.slice(0, cut));
      room = Math.max(2, width - columns(before));
      piece = piece.slice(cut);
      used = columns(piece);
      if (isOwn && piece === "" && character === " ") continue;
    }
    piece += character;
    used += columns(character);
  }
  pieces.push(piece);
  return pieces.map((line, index) => (index > 0 && width > before.length ? before + line : line));
}

/**
 * Returns an upper bound for the width of a text. Terminals differ in which characters they combine, but none draws a
 * character wider than two columns. A smaller count would treat text beyond the edge of the screen as seen.
 */
function columns(text: string): number {
  let columns = 0;
  for (const character of text) columns += character <= "~" ? 1 : 2;
  return columns;
}

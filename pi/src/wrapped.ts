/** Lines that fit, on every terminal. */

/** Breaks a line to `width` columns, with `before` in front of every piece but the first. */
export function wrapped(text: string, width: number, before: string): string[] {
  const room = Math.max(2, width - columns(before));
  const pieces: string[] = [];
  let [piece, used] = ["", 0];
  for (const character of text) {
    if (used + columns(character) > room) {
      // Between words, where that does not leave half of the line empty.
      const end = piece.lastIndexOf(" ") + 1;
      const cut = end * 2 > piece.length && character !== " " ? end : piece.length;
      pieces.push(piece.slice(0, cut));
      piece = piece.slice(cut);
      used = columns(piece);
    }
    piece += character;
    used += columns(character);
  }
  pieces.push(piece);
  return pieces.map((line, index) => (index > 0 && width > before.length ? before + line : line));
}

/**
 * How much room a text takes at most. Terminals do not agree on what they draw together in one place, but none draws
 * a character wider than two columns; whoever counts less takes for seen what is beyond the edge of the screen.
 */
function columns(text: string): number {
  let columns = 0;
  for (const character of text) columns += character <= "~" ? 1 : 2;
  return columns;
}

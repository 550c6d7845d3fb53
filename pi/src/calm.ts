/**
 * What pi's components bring to the terminal. pi takes what acts on a terminal out of what tools bring back, and not
 * out of what they are called with, nor of what the model says; both are the agent's. A sequence in there can copy into
 * the clipboard, write over the screen, or have the terminal type. So here it is taken out of every line.
 */

/** A component of pi's, as far as it is touched. */
export interface Drawn {
  render(width: number): string[];
}

/** On the function that is in the place of pi's; extensions are loaded more than once in a process. */
const CALM = Symbol.for("portcullis.calm");

/** Everything that begins a sequence, and single characters that act; colours and links are told apart later. */
const ACTS = /\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)|[P_^X][^\x07\x1b]*(?:\x07|\x1b\\))|[\x00-\x08\x0b-\x1f\x7f-\x9f]/g;

/**
 * Characters that take no space and reorder or hide text: direction marks, zero-width spaces, tags. Joiners and variation
 * selectors stay, because emoji and several scripts are written with them.
 */
const REORDERS_OR_HIDES =
  /[\u00ad\u061c\u180e\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb\u{e0000}-\u{e007f}]/gu;

/** What lines of text need: colours, and the links that pi makes itself. */
const HARMLESS = /^\x1b(?:\[[0-9;:]*m|\]8;)/;

/** Removes what acts on a terminal, reorders text or hides it; colours and links stay. The line gets no wider. */
export function calmed(line: string): string {
  return line.replaceAll(ACTS, (found) => (HARMLESS.test(found) ? found : "")).replaceAll(REORDERS_OR_HIDES, "");
}

/** Has all components of these kinds draw calm lines. */
export function calm(prototypes: readonly (Drawn | undefined)[]): void {
  for (const prototype of prototypes) {
    if (prototype === undefined || CALM in prototype.render) continue;
    const draw = prototype.render;
    // pi draws all that is there for each frame, and keeps the lines of what has not changed.
    const known = new WeakMap<string[], string[]>();
    const render = function (this: Drawn, width: number): string[] {
      const lines = draw.call(this, width);
      let calmLines = known.get(lines);
      if (calmLines === undefined) {
        calmLines = lines.map(calmed);
        known.set(lines, calmLines);
      }
      return calmLines;
    };
    prototype.render = Object.assign(render, { [CALM]: true });
  }
}

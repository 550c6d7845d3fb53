/**
 * Removes terminal sequences from the output of pi's components. pi itself removes them from the results of tools, but
 * neither from their arguments nor from the model's text, both of which the agent controls. A sequence in them could
 * set the clipboard, overwrite the screen, or make the terminal send input. So it is removed from every line here.
 */

/** The part of pi's components that is changed. */
export interface Drawn {
  render(width: number): string[];
}

/** Marks the function that replaces pi's; extensions are loaded more than once in a process. */
const SANITIZED = Symbol.for("portcullis.sanitized");

/** Every terminal sequence and control character; the harmless ones among them are filtered out later. */
const ACTS = /\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)|[P_^X][^\x07\x1b]*(?:\x07|\x1b\\))|[\x00-\x08\x0b-\x1f\x7f-\x9f]/g;

/**
 * Invisible characters that reorder or hide text: direction marks, zero-width spaces, tags. Joiners and variation
 * selectors stay, because emoji and several scripts need them.
 */
const REORDERS_OR_HIDES =
  /[\u00ad\u061c\u180e\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb\u{e0000}-\u{e007f}]/gu;

/** The sequences that lines of text need: colours, and the links that pi makes itself. */
const HARMLESS = /^\x1b(?:\[[0-9;:]*m|\]8;)/;

/**
 * Returns the line without sequences that control the terminal and without characters that reorder or hide text;
 * colours and links stay. The result is never wider.
 */
export function sanitized(line: string): string {
  return line.replaceAll(ACTS, (found) => (HARMLESS.test(found) ? found : "")).replaceAll(REORDERS_OR_HIDES, "");
}

/** Replaces the `render` of these kinds of components by one that returns sanitized lines. */
export function sanitize(prototypes: readonly (Drawn | undefined)[]): void {
  for (const prototype of prototypes) {
    if (prototype === undefined || SANITIZED in prototype.render) continue;
    const draw = prototype.render;
    // pi renders all components for each frame, and returns the same array of lines if nothing has changed.
    const known = new WeakMap<string[], string[]>();
    const render = function (this: Drawn, width: number): string[] {
      const lines = draw.call(this, width);
      let sanitizedLines = known.get(lines);
      if (sanitizedLines === undefined) {
        sanitizedLines = lines.map(sanitized);
        known.set(lines, sanitizedLines);
      }
      return sanitizedLines;
    };
    prototype.render = Object.assign(render, { [SANITIZED]: true });
  }
}

/**
 * `--no-sandbox`. pi learns of an extension's flags too late: it takes the next word for the value, so
 * `pi --no-sandbox "prompt"` loses the prompt, and any value, also `false`, becomes true.
 */
export const FLAG = "no-sandbox";

export interface Switch {
  /** The user asked for pi without the sandbox. */
  off: boolean;
  /** pi took the prompt for the value of the flag. */
  atePrompt: boolean;
}

/** Whether this pi is a sub-agent of one with a sandbox (see child.cjs): its command line may be the model's word. */
export function isSubAgent(): boolean {
  return Symbol.for("portcullis.sub-agent") in globalThis;
}

/**
 * Reads the switch from what pi says and from the command line; where the two differ the sandbox stays on, and so it
 * does in a sub-agent.
 */
export function readSwitch(flagValue: unknown, argv: readonly string[], subAgent = isSubAgent()): Switch {
  const given = spellings(argv);
  const kept = given.some(({ value }) => value !== undefined && /^(false|0|no|off)$/i.test(value));
  const off = (flagValue === true || flagValue === "true") && !kept && !subAgent;
  return { off, atePrompt: given.some(({ next }) => next !== undefined) };
}

/** Returns whether the command line asks for it, before pi has said anything. */
export function isOnCommandLine(argv: readonly string[]): boolean {
  return spellings(argv).length > 0 && readSwitch(true, argv).off;
}

/** Each place where the flag stands, with its value, or with the word that pi will take for one. */
function spellings(argv: readonly string[]): { value?: string; next?: string }[] {
  const end = argv.indexOf("--");
  const words = end === -1 ? argv : argv.slice(0, end);
  return words.flatMap((word, index) => {
    if (word.startsWith(`--${FLAG}=`)) return [{ value: word.slice(FLAG.length + 3) }];
    if (word !== `--${FLAG}`) return [];
    const next = words[index + 1];
    return next === undefined || next.startsWith("-") || next.startsWith("@") ? [{}] : [{ next }];
  });
}

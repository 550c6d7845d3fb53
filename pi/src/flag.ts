/**
 * The flag `--no-sandbox`. pi parses the flags of extensions before it knows their types: it takes the next word for
 * the value, so `pi --no-sandbox "prompt"` loses the prompt, and any value, even `false`, becomes true.
 */
export const FLAG = "no-sandbox";

export interface Switch {
  /** Whether the user asked for pi without the sandbox. */
  off: boolean;
  /** Whether pi took the prompt for the value of the flag. */
  atePrompt: boolean;
}

/**
 * Whether this pi is a sub-agent of one with a sandbox (see child.cjs): the model may have written its command line.
 */
export function isSubAgent(): boolean {
  return Symbol.for("portcullis.sub-agent") in globalThis;
}

/**
 * Reads the switch from pi's value and from the command line. If the two differ, and in every sub-agent, the sandbox
 * stays on.
 */
export function readSwitch(flagValue: unknown, argv: readonly string[], subAgent = isSubAgent()): Switch {
  const given = spellings(argv);
  const kept = given.some(({ value }) => value !== undefined && /^(false|0|no|off)$/i.test(value));
  const off = (flagValue === true || flagValue === "true") && !kept && !subAgent;
  return { off, atePrompt: given.some(({ next }) => next !== undefined) };
}

/** Returns whether the command line turns the sandbox off, before pi has parsed it. */
export function isOnCommandLine(argv: readonly string[]): boolean {
  return spellings(argv).length > 0 && readSwitch(true, argv).off;
}

/** Returns each occurrence of the flag, with its value, or with the word that pi will take for one. */
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

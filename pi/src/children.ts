/**
 * Guards sub-agents that run in a pi process of their own. A process that an extension starts inherits this process's
 * environment, and NODE_OPTIONS there makes Node load a file first: child.cjs, which adds this extension to every pi.
 * Commands never see the variable: the host removes NODE_OPTIONS from their environment.
 */
import { fileURLToPath } from "node:url";

const CHILD = fileURLToPath(new URL("./child.cjs", import.meta.url));
const OPTION = `--require="${CHILD.replaceAll("\\", "\\\\").replaceAll('"', '\\"')}"`;

/** Returns the environment without the option for sub-agents. */
export function withoutGuard(env: NodeJS.ProcessEnv): NodeJS.ProcessEnv {
  const copy = { ...env };
  guardChildren(false, copy);
  return copy;
}

/** Adds the gate to every pi that is started from this one, or removes it again. */
export function guardChildren(guarded: boolean, env: NodeJS.ProcessEnv = process.env): void {
  const others = (env.NODE_OPTIONS ?? "").replace(OPTION, "").trim();
  const options = guarded ? `${others} ${OPTION}`.trim() : others;
  if (options === "") delete env.NODE_OPTIONS;
  else env.NODE_OPTIONS = options;
}

/**
 * Sub-agents that are a pi of their own. What an extension starts has this process's environment, and NODE_OPTIONS is
 * how Node is told to load something first: child.cjs, which gives every pi this extension. Commands never see it, the
 * host takes NODE_OPTIONS out of their environment.
 */
import { fileURLToPath } from "node:url";

const CHILD = fileURLToPath(new URL("./child.cjs", import.meta.url));
const OPTION = `--require="${CHILD.replaceAll("\\", "\\\\").replaceAll('"', '\\"')}"`;

/** Returns the environment without what is in it for sub-agents. */
export function withoutGuard(env: NodeJS.ProcessEnv): NodeJS.ProcessEnv {
  const copy = { ...env };
  guardChildren(false, copy);
  return copy;
}

/** Puts a gate into every pi that is started from this one, or takes it out again. */
export function guardChildren(guarded: boolean, env: NodeJS.ProcessEnv = process.env): void {
  const others = (env.NODE_OPTIONS ?? "").replace(OPTION, "").trim();
  const options = guarded ? `${others} ${OPTION}`.trim() : others;
  if (options === "") delete env.NODE_OPTIONS;
  else env.NODE_OPTIONS = options;
}

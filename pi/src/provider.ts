/** Whose a tool is. */
import type { ExtensionAPI } from "@earendil-works/pi-coding-agent";

/** What is pi's own; nobody is mistaken for it. */
export const BUILT_IN = "builtin";

/**
 * `builtin`, `mcp:<server>` or `extension:<name>`. pi says only `mcp__<server>__<tool>`: of a server whose own name
 * holds `__` it is what stands before that.
 */
export function providerOf(pi: Pick<ExtensionAPI, "getAllTools">, tool: string): string {
  const source = pi.getAllTools().find((candidate) => candidate.name === tool)?.sourceInfo;
  if (source === undefined) return "extension:unknown";
  if (source.source !== BUILT_IN) return `extension:${source.source === "cli" ? source.path : source.source}`;
  const server = source.path === "builtin:mcp" ? /^mcp__(.+?)__/.exec(tool)?.[1] : undefined;
  return server === undefined ? BUILT_IN : `mcp:${server}`;
}

/** Whose the tool is, where another extension has put it in the place of pi's own. */
export function replacedBy(pi: Pick<ExtensionAPI, "getAllTools">, tool: string): string | undefined {
  // One that the user left out of this run is nobody's.
  if (!pi.getAllTools().some((candidate) => candidate.name === tool)) return undefined;
  const provider = providerOf(pi, tool);
  return provider === BUILT_IN ? undefined : provider;
}

/** The providers of tools. */
import type { ExtensionAPI } from "@earendil-works/pi-coding-agent";

/** The provider of pi's own tools; no other provider gets this name. */
export const BUILT_IN = "builtin";

/**
 * Returns `builtin`, `mcp:<server>` or `extension:<name>`. pi gives only the name `mcp__<server>__<tool>`: for a server
 * whose own name contains `__`, the part before it is returned.
 */
export function providerOf(pi: Pick<ExtensionAPI, "getAllTools">, tool: string): string {
  const source = pi.getAllTools().find((candidate) => candidate.name === tool)?.sourceInfo;
  if (source === undefined) return "extension:unknown";
  if (source.source !== BUILT_IN) return `extension:${source.source === "cli" ? source.path : source.source}`;
  const server = source.path === "builtin:mcp" ? /^mcp__(.+?)__/.exec(tool)?.[1] : undefined;
  return server === undefined ? BUILT_IN : `mcp:${server}`;
}

/** Returns the provider of the tool if another extension has replaced pi's own. */
export function replacedBy(pi: Pick<ExtensionAPI, "getAllTools">, tool: string): string | undefined {
  // A tool that the user left out of this run has no provider.
  if (!pi.getAllTools().some((candidate) => candidate.name === tool)) return undefined;
  const provider = providerOf(pi, tool);
  return provider === BUILT_IN ? undefined : provider;
}

/**
 * Whether this machine lets pi run without the sandbox. The machine's team file decides, and only the host reads it:
 * without that file nothing is asked, so a pi without a host can still be started.
 */
import { spawnSync } from "node:child_process";
import { existsSync } from "node:fs";

const MACHINE_FILE = "/etc/portcullis/team.toml";
const TIMEOUT_MS = 10_000;

/** Returns why pi must keep the sandbox, or undefined if it may run without it. */
export function whyKept(findHost: () => string, machineFile = MACHINE_FILE): string | undefined {
  if (!existsSync(machineFile)) return undefined;
  try {
    const { status, stderr, error } = spawnSync(findHost(), ["team", "unprotected"], { encoding: "utf8", timeout: TIMEOUT_MS });
    if (error !== undefined) throw error;
    if (status === 0) return undefined;
    return stderr.trim() || `${machineFile} could not be checked, so the sandbox stays on`;
  } catch (error) {
    return `${machineFile} could not be checked, so the sandbox stays on: ${error instanceof Error ? error.message : String(error)}`;
  }
}

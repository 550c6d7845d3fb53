/**
 * Finds the host binary. A project must never decide which one runs: the search ignores everything below the working
 * directory, relative names, and every `node_modules/.bin`.
 */
import { accessSync, constants, readFileSync, realpathSync, statSync } from "node:fs";
import { delimiter, dirname, isAbsolute, join, relative, sep } from "node:path";
import { INSTALL } from "./messages.ts";

/** The prefix of the npm packages that contain a host, one for each platform. */
export const HOST_PACKAGE_PREFIX = "@portcullis/host";

/** The file beside this package in which `portcullis pi-extension install` records the host that installed it. */
const HOST_FILE = "host.json";

/** The inputs of the search. */
export interface Surroundings {
  env: NodeJS.ProcessEnv;
  cwd: string;
  home: string;
  /** The directory of this extension's package. */
  packageDir: string;
  platform: string;
  arch: string;
}

/** Returns the path of the host, or throws an error with the paths that were tried. */
export function findHost(from: Surroundings): string {
  const named = from.env.PORTCULLIS_HOST;
  if (named !== undefined && named !== "") {
    if (!isAbsolute(named)) throw new Error(`PORTCULLIS_HOST is \`${named}\`, which is no absolute path`);
    if (!isProgram(named)) throw new Error(`PORTCULLIS_HOST is \`${named}\`, which is no program`);
    return named;
  }
  const candidates = [...installedCandidates(from), ...packageCandidates(from), ...pathCandidates(from)];
  const found = candidates.find(isProgram);
  if (found === undefined) {
    throw new Error(`there is no \`portcullis\` on PATH and none in an npm package of this extension; ${INSTALL}`);
  }
  return found;
}

/** Returns the host that installed this extension, if it is still there; otherwise the search continues. */
function installedCandidates({ packageDir }: Surroundings): string[] {
  try {
    const { host } = JSON.parse(readFileSync(join(packageDir, HOST_FILE), "utf8")) as { host?: unknown };
    return typeof host === "string" && isAbsolute(host) ? [host] : [];
  } catch {
    return [];
  }
}

/**
 * Returns the packages beside this one or below it, but not in a `node_modules` further up, which may belong to a
 * project.
 */
function packageCandidates({ packageDir, platform, arch }: Surroundings): string[] {
  const binary = join(`${HOST_PACKAGE_PREFIX}-${platform}-${arch}`, "bin", "portcullis");
  const candidates = [join(packageDir, "node_modules", binary)];
  const parent = dirname(packageDir);
  if (parent.endsWith(`${sep}node_modules`)) candidates.push(join(parent, binary));
  return candidates;
}

function pathCandidates(from: Surroundings): string[] {
  const directories = (from.env.PATH ?? "").split(delimiter);
  return directories.filter((directory) => isTrustworthy(directory, from)).map((directory) => join(directory, "portcullis"));
}

function isTrustworthy(directory: string, { cwd, home }: Surroundings): boolean {
  if (!isAbsolute(directory) || directory.includes(`${sep}node_modules${sep}`)) return false;
  // If the home directory is the project itself, the user's own programs are below it.
  if (isWithin(real(home), real(cwd))) return true;
  return !isWithin(real(directory), real(cwd));
}

function isWithin(path: string, directory: string): boolean {
  const way = relative(directory, path);
  return way === "" || (way !== ".." && !way.startsWith(`..${sep}`) && !isAbsolute(way));
}

function real(path: string): string {
  try {
    return realpathSync(path);
  } catch {
    return path;
  }
}

function isProgram(path: string): boolean {
  try {
    accessSync(path, constants.X_OK);
    return statSync(path).isFile();
  } catch {
    return false;
  }
}

/**
 * Finds the host binary. A project must never decide which one runs: the search ignores everything below the working
 * directory, relative names, and every `node_modules/.bin`.
 */
import { accessSync, constants, readFileSync, realpathSync, statSync } from "node:fs";
import { delimiter, dirname, isAbsolute, join, relative, sep } from "node:path";
import { isForThisMachine } from "./executable.ts";
import { missingProgram, noProgramFor, notForThisMachine, NPM_INSTALL, quoted } from "./messages.ts";

/** The scope of this extension's npm package, `@portcullis/pi`, and of those that contain a host: one for each platform. */
const SCOPE = "@portcullis";

/** The platforms with a package of their own. */
const PLATFORMS: readonly string[] = ["linux-x64", "linux-arm64", "darwin-x64", "darwin-arm64"];

/**
 * The file in which `portcullis pi-extension install` records the host that installed an extension. It lies in the state
 * directory, because `~/.pi` may be the same on several machines.
 */
const HOSTS_FILE = "extension-hosts.json";

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
    if (!isForThisMachine(named, from)) throw new Error(notForThisMachine(named, "unset PORTCULLIS_HOST"));
    return named;
  }
  const candidates = [...installedCandidates(from), ...packageCandidates(from), ...pathCandidates(from)];
  const found = candidates.find(isProgram);
  if (found !== undefined) {
    if (isForThisMachine(found, from)) return found;
    throw new Error(notForThisMachine(found, isFromNpm(from) ? NPM_INSTALL : undefined));
  }
  const platform = platformOf(from);
  if (!PLATFORMS.includes(platform)) throw new Error(noProgramFor(platform));
  throw new Error(missingProgram(isFromNpm(from) ? `${SCOPE}/${platform}` : undefined));
}

/** Returns the command after which the extension and the host `program` are of the same version. */
export function mendingCommand(from: Surroundings, program: string): string {
  if (!isFromNpm(from)) return `${quoted(program)} pi-extension install`;
  // Without the variable the program of the extension's own package is taken, which fits.
  return program === from.env.PORTCULLIS_HOST ? "unset PORTCULLIS_HOST" : NPM_INSTALL;
}

function isFromNpm({ packageDir }: Surroundings): boolean {
  return packageDir.includes(`${sep}node_modules${sep}`);
}

function platformOf({ platform, arch }: Surroundings): string {
  return `${platform}-${arch}`;
}

/** Returns the host that installed this extension, if this machine knows one; otherwise the search continues. */
function installedCandidates({ env, home, packageDir }: Surroundings): string[] {
  const named = env.XDG_STATE_HOME;
  const state = named !== undefined && isAbsolute(named) ? named : join(home, ".local", "state");
  try {
    const hosts = JSON.parse(readFileSync(join(state, "portcullis", HOSTS_FILE), "utf8")) as Record<string, unknown>;
    const host = hosts[real(packageDir)];
    return typeof host === "string" && isAbsolute(host) ? [host] : [];
  } catch {
    return [];
  }
}

/**
 * Returns the packages below this one or beside it, but not in a `node_modules` further up, which may belong to a
 * project.
 */
function packageCandidates(from: Surroundings): string[] {
  const binary = join(platformOf(from), "bin", "portcullis");
  const candidates = [join(from.packageDir, "node_modules", SCOPE, binary)];
  const parent = dirname(from.packageDir);
  if (parent.endsWith(join(sep, "node_modules", SCOPE))) candidates.push(join(parent, binary));
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

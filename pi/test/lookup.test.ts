import assert from "node:assert/strict";
import { chmodSync, mkdirSync, mkdtempSync, realpathSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { after, test } from "node:test";
import { findHost, mendingCommand, type Surroundings } from "../src/lookup.ts";

const top = realpathSync(mkdtempSync(join(tmpdir(), "lookup-")));
after(() => rmSync(top, { recursive: true }));
let number = 0;
const SCRIPT = "#!/bin/sh\n";

/** Creates programs in a fresh directory, and searches the host from its `project`. */
function look(programs: string[], more: (at: (path: string) => string) => Partial<Surroundings>): string {
  const root = join(top, String(number++));
  const at = (path: string) => join(root, path);
  for (const directory of ["project", "home", "ext/portcullis"]) mkdirSync(at(directory), { recursive: true });
  for (const program of programs) {
    mkdirSync(dirname(at(program)), { recursive: true });
    writeFileSync(at(program), SCRIPT);
    chmodSync(at(program), 0o755);
  }
  const from = {
    env: {}, cwd: at("project"), home: at("home"), packageDir: at("ext/portcullis"), platform: "linux", arch: "x64",
  };
  return findHost({ ...from, ...more(at) }).replace(`${root}/`, "");
}

const PACKAGE = "node_modules/@portcullis/linux-x64/bin/portcullis";

test("PORTCULLIS_HOST comes first and is never passed over", () => {
  const path = (at: (path: string) => string) => at("bin");
  assert.equal(look(["a/host", "bin/portcullis"], (at) => ({ env: { PORTCULLIS_HOST: at("a/host"), PATH: path(at) } })), "a/host");
  assert.throws(() => look(["bin/portcullis"], (at) => ({ env: { PORTCULLIS_HOST: "./host", PATH: path(at) } })), /no absolute path/);
  assert.throws(() => look(["bin/portcullis"], (at) => ({ env: { PORTCULLIS_HOST: at("none"), PATH: path(at) } })), /no program/);
  assert.throws(() => look(["bin/portcullis"], (at) => ({ env: { PORTCULLIS_HOST: at("bin"), PATH: path(at) } })), /no program/);
});

test("the npm package is taken below this one or beside it, before PATH", () => {
  const env = (at: (path: string) => string) => ({ PATH: at("bin") });
  const nested = `ext/portcullis/${PACKAGE}`;
  assert.equal(look([nested, "bin/portcullis"], (at) => ({ env: env(at) })), nested);
  const beside = `g/${PACKAGE}`;
  assert.equal(look([beside], (at) => ({ packageDir: at("g/node_modules/@portcullis/pi") })), beside);
});

test("the host that installed the extension comes before packages and PATH, while it is there", () => {
  const installed = (at: (path: string) => string, host: string) => {
    mkdirSync(at("home/.local/state/portcullis"), { recursive: true });
    const hosts = { [at("ext/portcullis")]: host, [at("other")]: at("bin/portcullis") };
    writeFileSync(at("home/.local/state/portcullis/extension-hosts.json"), JSON.stringify(hosts));
    return { env: { PATH: at("bin") } };
  };
  const programs = ["own/portcullis", "bin/portcullis"];
  assert.equal(look(programs, (at) => installed(at, at("own/portcullis"))), "own/portcullis");
  const packaged = [...programs, `ext/portcullis/${PACKAGE}`];
  assert.equal(look(packaged, (at) => installed(at, at("own/portcullis"))), "own/portcullis");
  assert.equal(look(programs, (at) => installed(at, at("gone/portcullis"))), "bin/portcullis");
  assert.equal(look(programs, (at) => installed(at, "own/portcullis")), "bin/portcullis");
  assert.equal(look(programs, (at) => ({ ...installed(at, at("own/portcullis")), packageDir: at("home") })), "bin/portcullis");
});

test("no node_modules further up is looked into", () => {
  assert.throws(() => look([PACKAGE, `ext/${PACKAGE}`, `project/${PACKAGE}`], () => ({})), /pi-extension install/);
});

test("PATH counts, except what a project could have put there", () => {
  const from = (program: string, directory: string) =>
    look([program], (at) => ({ env: { PATH: directory.startsWith("/") ? at(directory.slice(1)) : directory } }));
  assert.equal(from("bin/portcullis", "/bin"), "bin/portcullis");
  for (const [program, directory] of [
    ["project/portcullis", "/project"], ["project/bin/portcullis", "/project/bin"], ["project/bin/portcullis", "/home/../project/bin"],
    ["up/node_modules/.bin/portcullis", "/up/node_modules/.bin"], ["project/portcullis", "."], ["project/portcullis", ""],
    ["project/portcullis", "project"],
  ] as const) assert.throws(() => from(program, directory), /pi-extension install/, `${program} through ${directory}`);
});

test("a link into the project is the project", () => {
  assert.throws(() => look(["project/bin/portcullis"], (at) => {
    symlinkSync(at("project/bin"), at("link"));
    return { env: { PATH: at("link") } };
  }), /pi-extension install/);
});

test("a program in the project that PATH reaches later does not hide the user's own", () => {
  const found = look(["project/bin/portcullis", "bin/portcullis"], (at) => ({ env: { PATH: `${at("project/bin")}:${at("bin")}` } }));
  assert.equal(found, "bin/portcullis");
});

test("where home is the project, the user's own programs count", () => {
  const found = look(["home/.cargo/bin/portcullis"], (at) => ({ cwd: at("home"), env: { PATH: at("home/.cargo/bin") } }));
  assert.equal(found, "home/.cargo/bin/portcullis");
});

test("a file that cannot be run is not the host", () => {
  assert.throws(() => look(["bin/x"], (at) => {
    writeFileSync(at("bin/portcullis"), "");
    mkdirSync(at("bin2/portcullis"), { recursive: true });
    return { env: { PATH: `${at("bin")}:${at("bin2")}` } };
  }), /pi-extension install/);
});

test("what is missing is said in one line, with the command that gets it", () => {
  const missing = (more: (at: (path: string) => string) => Partial<Surroundings>, expected: RegExp) =>
    assert.throws(() => look([], more), (error: Error) => expected.test(error.message) && !error.message.includes("\n"));
  const fromNpm = (at: (path: string) => string) => ({ packageDir: at("g/node_modules/@portcullis/pi") });
  missing(fromNpm, /npm package @portcullis\/linux-x64 .* `npm_config_include=optional pi install npm:@portcullis\/pi`$/);
  missing((at) => ({ ...fromNpm(at), arch: "arm64" }), /@portcullis\/linux-arm64/);
  missing(() => ({}), /pi-extension install/);
  missing((at) => ({ ...fromNpm(at), platform: "darwin", arch: "arm64" }), /@portcullis\/darwin-arm64/);
  missing((at) => ({ ...fromNpm(at), platform: "win32", arch: "x64" }), /no `portcullis` for win32-x64: .*Linux and macOS/);
});

test("one command mends each way to a host of another version", () => {
  const from = (packageDir: string, env = {}): Surroundings =>
    ({ env, cwd: "/p", home: "/h", packageDir, platform: "linux", arch: "x64" });
  const npm = "/usr/lib/node_modules/@portcullis/pi";
  const installed = "/h/.pi/agent/extensions/portcullis";
  assert.equal(mendingCommand(from(installed), "/a b/portcullis"), "'/a b/portcullis' pi-extension install");
  assert.equal(mendingCommand(from(installed, { PORTCULLIS_HOST: "/o/p" }), "/o/p"), "/o/p pi-extension install");
  assert.equal(mendingCommand(from(npm, { PORTCULLIS_HOST: "/o/p" }), "/o/p"), "unset PORTCULLIS_HOST");
  assert.match(mendingCommand(from(npm), "/usr/bin/portcullis"), /pi install npm:@portcullis\/pi$/);
});

test("a program that is cut off or for another machine is not started, and not passed over", () => {
  const header = (machine: number, size: number) => {
    const bytes = Buffer.alloc(64);
    bytes.write("\x7fELF\x02\x01\x01", 0, "latin1");
    bytes.writeUInt16LE(machine, 18);
    bytes.writeBigUInt64LE(BigInt(size), 40);
    return bytes;
  };
  const own = "g/node_modules/@portcullis/pi/node_modules/@portcullis/linux-x64/bin/portcullis";
  const check = (bytes: Buffer) => look([own, "bin/portcullis"], (at) => {
    writeFileSync(at(own), bytes);
    return { packageDir: at("g/node_modules/@portcullis/pi"), env: { PATH: at("bin") } };
  });
  assert.equal(check(header(62, 64)), own);
  for (const bad of [header(183, 64), header(62, 65), header(62, 64).subarray(0, 63), Buffer.alloc(0), Buffer.from("text")]) {
    assert.throws(() => check(bad), /cannot run on this machine: it is damaged, or made for another processor; run `npm_config/);
  }
  assert.throws(() => look(["bin/x"], (at) => {
    writeFileSync(at("bin/x"), header(183, 64));
    return { env: { PORTCULLIS_HOST: at("bin/x") } };
  }), /made for another processor; run `unset PORTCULLIS_HOST`/);
});

test("on macOS the npm package has a program for its processor, whole", () => {
  const own = "g/node_modules/@portcullis/pi/node_modules/@portcullis/darwin-arm64/bin/portcullis";
  /** A program of one segment that ends at `end`. */
  const program = (processor: number, end: number) => {
    const bytes = Buffer.alloc(32 + 72);
    for (const [word, at] of [[0xfeedfacf, 0], [processor, 4], [2, 12], [1, 16], [72, 20], [0x19, 32], [72, 36]] as const) {
      bytes.writeUInt32LE(word, at);
    }
    bytes.writeBigUInt64LE(0n, 32 + 40);
    bytes.writeBigUInt64LE(BigInt(end), 32 + 48);
    return bytes;
  };
  const check = (bytes: Buffer) => look([own], (at) => {
    writeFileSync(at(own), bytes);
    return { packageDir: at("g/node_modules/@portcullis/pi"), platform: "darwin", arch: "arm64" };
  });
  assert.equal(check(program(0x0100000c, 104)), own);
  const elf = Buffer.alloc(64);
  elf.write("\x7fELF", 0, "latin1");
  elf.writeUInt16LE(183, 18);
  for (const bad of [program(0x01000007, 104), program(0x0100000c, 105), program(0x0100000c, 104).subarray(0, 80), elf]) {
    assert.throws(() => check(bad), /cannot run on this machine/);
  }
});

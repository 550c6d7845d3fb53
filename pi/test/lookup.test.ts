import assert from "node:assert/strict";
import { chmodSync, mkdirSync, mkdtempSync, realpathSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { after, test } from "node:test";
import { findHost, type Surroundings } from "../src/lookup.ts";

const top = realpathSync(mkdtempSync(join(tmpdir(), "lookup-")));
after(() => rmSync(top, { recursive: true }));
let number = 0;

/** Creates programs in a fresh directory, and searches the host from its `project`. */
function look(programs: string[], more: (at: (path: string) => string) => Partial<Surroundings>): string {
  const root = join(top, String(number++));
  const at = (path: string) => join(root, path);
  for (const directory of ["project", "home", "ext/pi-portcullis"]) mkdirSync(at(directory), { recursive: true });
  for (const program of programs) {
    mkdirSync(dirname(at(program)), { recursive: true });
    writeFileSync(at(program), "");
    chmodSync(at(program), 0o755);
  }
  const from = {
    env: {}, cwd: at("project"), home: at("home"), packageDir: at("ext/pi-portcullis"), platform: "linux", arch: "x64",
  };
  return findHost({ ...from, ...more(at) }).replace(`${root}/`, "");
}

const PACKAGE = "node_modules/@portcullis/host-linux-x64/bin/portcullis";

test("PORTCULLIS_HOST comes first and is never passed over", () => {
  const path = (at: (path: string) => string) => at("bin");
  assert.equal(look(["a/host", "bin/portcullis"], (at) => ({ env: { PORTCULLIS_HOST: at("a/host"), PATH: path(at) } })), "a/host");
  assert.throws(() => look(["bin/portcullis"], (at) => ({ env: { PORTCULLIS_HOST: "./host", PATH: path(at) } })), /no absolute path/);
  assert.throws(() => look(["bin/portcullis"], (at) => ({ env: { PORTCULLIS_HOST: at("none"), PATH: path(at) } })), /no program/);
  assert.throws(() => look(["bin/portcullis"], (at) => ({ env: { PORTCULLIS_HOST: at("bin"), PATH: path(at) } })), /no program/);
});

test("the npm package is taken below this one or beside it, before PATH", () => {
  const env = (at: (path: string) => string) => ({ PATH: at("bin") });
  const nested = `ext/pi-portcullis/${PACKAGE}`;
  assert.equal(look([nested, "bin/portcullis"], (at) => ({ env: env(at) })), nested);
  const beside = `g/${PACKAGE}`;
  assert.equal(look([beside], (at) => ({ packageDir: at("g/node_modules/pi-portcullis") })), beside);
});

test("the host that installed the extension comes before packages and PATH, while it is there", () => {
  const installed = (at: (path: string) => string, host: string) => {
    writeFileSync(at("ext/pi-portcullis/host.json"), JSON.stringify({ host }));
    return { env: { PATH: at("bin") } };
  };
  const programs = ["own/portcullis", "bin/portcullis"];
  assert.equal(look(programs, (at) => installed(at, at("own/portcullis"))), "own/portcullis");
  assert.equal(look(programs, (at) => installed(at, at("gone/portcullis"))), "bin/portcullis");
  assert.equal(look(programs, (at) => installed(at, "own/portcullis")), "bin/portcullis");
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

import assert from "node:assert/strict";
import { chmodSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, test } from "node:test";
import { whyKept } from "../src/unprotected.ts";

const folder = mkdtempSync(join(tmpdir(), "portcullis-unprotected-"));
after(() => rmSync(folder, { recursive: true }));

function host(script: string): () => string {
  const file = join(folder, "host");
  writeFileSync(file, `#!/bin/sh\n${script}\n`);
  chmodSync(file, 0o755);
  return () => file;
}

const machineFile = join(folder, "team.toml");

test("without the machine's file no host is asked", () => {
  assert.equal(whyKept(() => { throw new Error("no host"); }, machineFile), undefined);
});

test("with it, only a yes of the host turns the sandbox off", () => {
  writeFileSync(machineFile, "");
  assert.equal(whyKept(host("exit 0"), machineFile), undefined);
  assert.match(whyKept(host("echo forbidden here >&2; exit 1"), machineFile) ?? "", /^forbidden here$/);
  assert.match(whyKept(host("exit 1"), machineFile) ?? "", /stays on/);
  assert.match(whyKept(() => { throw new Error("no host"); }, machineFile) ?? "", /stays on: no host/);
  assert.match(whyKept(() => "/nowhere/portcullis", machineFile) ?? "", /stays on/);
});

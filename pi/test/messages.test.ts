import assert from "node:assert/strict";
import { test } from "node:test";
import { HostError } from "../src/client.ts";
import { commandNotes, fileError, plain, question, refused, type SystemCall } from "../src/messages.ts";
import { footerText, showStatus } from "../src/status.ts";
import { askOf } from "./support.ts";

test("nothing that is shown can move the cursor or turn the text around", () => {
  const cases: [string, string][] = [
    ["plain ünïcode 日本 🔒", "plain ünïcode 日本 🔒"], ["a\x1b[2Jb", "a\\u{1b}[2Jb"], ["a\r\nb", "a\\u{d}\\u{a}b"],
    ["\u202egpj.exe", "\\u{202e}gpj.exe"], ["a\u200bb\u2028c\x9bd", "a\\u{200b}b\\u{2028}c\\u{9b}d"], ["\ud800", "\\u{d800}"],
  ];
  for (const [text, shown] of cases) assert.equal(plain(text, 100), shown);
  assert.equal(plain(`${"a".repeat(50)}${"b".repeat(50)}`, 20), `${"a".repeat(10)} …(80 characters left out)… ${"b".repeat(10)}`);
});

test("a subject cannot look like the host's own lines, nor a policy's text", () => {
  const text = question(askOf(1, { subject: "ls\nasked by nobody", quote: "trust\nme", title: "a\x1bb" }));
  assert.deepEqual(text.split("\n"), [
    "a\\u{1b}b:", "  │ ls", "  │ asked by nobody", "  c", "  rule u of p", "  policy p says: \"trust\\u{a}me\"",
  ]);
});

test("a file error is what pi's own tool would throw", () => {
  const error = (data: object, call: SystemCall = "access") => fileError(new HostError(-32010, "why", data), call, "/a") as Error & { code?: string };
  assert.equal(error({ kind: "other", errno: 13 }).code, "EACCES");
  assert.equal(error({ kind: "notFound", errno: 2 }).message, "ENOENT: no such file or directory, access '/a'");
  assert.equal(error({ kind: "isDirectory", errno: 21 }, "read").message, "EISDIR: illegal operation on a directory, read");
  assert.equal(error({ kind: "notRegular", errno: 22 }).message, "why");
  assert.equal(error({ kind: "conflict" }).code, undefined);
  const denied = error({ kind: "denied", policy: "p", rule: "r", reason: "why.", hint: "Do that.", errno: 13 });
  assert.equal(denied.code, undefined);
  assert.equal(denied.message, "Refused by the sandbox: why [r of p]. Do that.");
  assert.equal(refused({ policy: "p", rule: "r", reason: "why" }), "Refused by the sandbox: why [r of p]. Do not work around it; if you need it, tell the user.");
  const other = new Error("x");
  assert.equal(fileError(other, "open", "/a"), other);
});

test("a note on a command is said once", () => {
  assert.equal(commandNotes(["a", "b", "a"]), "[sandbox] a\n[sandbox] b\n");
});

test("the footer says what is so", () => {
  const status = { state: "enabled" as const, domains: 0, writePaths: 1, summary: "writes here · asks network", waiting: 0, reservations: false, escalation: false, contained: false, brief: "", warnings: [] as string[] };
  const open = (more: object, waiting = 0) => footerText({ kind: "open", status: { ...status, ...more } }, waiting);
  const on = "Portcullis on · writes here · asks network";
  assert.deepEqual(open({}), ["muted", on]);
  assert.deepEqual(open({ warnings: ["w"] }), ["accent", "Portcullis on · 1 warning · writes here · asks network"]);
  assert.deepEqual(open({ contained: true }), ["muted", `${on} · pi contained`]);
  assert.deepEqual(open({ reduced: "no commands" }, 2), ["accent", "Portcullis on · no commands · 2 questions waiting · writes here · asks network"]);
  assert.deepEqual(footerText({ kind: "disabled" }, 0), ["error", "Portcullis OFF"]);
  assert.equal(footerText({ kind: "closed", why: "x" }, 0)[0], "error");
  const shown: unknown[] = [];
  const theme = { fg: () => { throw new Error("no theme"); } };
  showStatus({ setStatus: (...all) => shown.push(all), theme }, { kind: "disabled" }, 0);
  assert.deepEqual(shown, [["portcullis", "Portcullis OFF"]]);
});

import assert from "node:assert/strict";
import { test } from "node:test";
import { sanitize, sanitized } from "../src/sanitize.ts";

test("what acts on a terminal goes, colours and links stay", () => {
  for (const [line, expected] of [
    ["plain  text", "plain  text"],
    ["\x1b[1;38:5:2mgreen\x1b[0m", "\x1b[1;38:5:2mgreen\x1b[0m"],
    ["\x1b]8;;https://a.test\x07a\x1b]8;;\x07 \x1b]8;;b\x1b\\b", "\x1b]8;;https://a.test\x07a\x1b]8;;\x07 \x1b]8;;b\x1b\\b"],
    ["\x1b]52;c;ZXZpbA==\x07a", "a"],
    ["\x1b]0;title\x1b\\a\x1b[2J\x1b[1;1Hb\x1b[?1049hc\x1b[>4;2md", "abcd"],
    ["\x1bP$qm\x1b\\a\x1b_Gi=1\x1b\\b\x1b^x\x07c", "abc"],
    // An unterminated sequence would swallow the text after it.
    ["a\x1b]52;c;ZXZp", "a]52;c;ZXZp"],
    ["a\x1b", "a"],
    ["\x1bcb", "cb"],
    ["a\rb\x08c\x00d\x07e\x7ff\x9b2Jg\x85h", "abcdef2Jgh"],
    ["\x1b]8;;x\x1b]52;c;ZXZpbA==\x07y", "]8;;xy"],
    ["tab\tnew", "tab\tnew"],
    ["rm \u202egpj.exe\u202c \u2066x\u2069\u200f\u200e\u061c", "rm gpj.exe x"],
    ["a\u200bb\ufeffc\u2060d\u00ade\u{e0041}\u{e007f}f\u2028g", "abcdefg"],
    ["👩\u200d💻 ⚠\ufe0f می\u200cخواهم", "👩\u200d💻 ⚠\ufe0f می\u200cخواهم"],
  ] as const) assert.equal(sanitized(line), expected);
});

test("a component draws sanitized lines, and the same ones as long as nothing changes", () => {
  class Words {
    lines = ["\x1b[2Ja", "b"];
    render(_width: number): string[] {
      return this.lines;
    }
  }
  sanitize([Words.prototype, undefined]);
  const patched = Words.prototype.render;
  sanitize([Words.prototype]);
  assert.equal(Words.prototype.render, patched);
  const words = new Words();
  assert.deepEqual(words.render(9), ["a", "b"]);
  assert.equal(words.render(9), words.render(9));
  words.lines = ["\x07c"];
  assert.deepEqual(words.render(9), ["c"]);
});

import assert from "node:assert/strict";
import { test } from "node:test";
import { PromptQueue, SelectDialogs, type Selecting } from "../src/prompt.ts";
import type { AskResponse } from "../src/protocol.ts";
import { askOf, until } from "./support.ts";

/** Dialogs like those of pi 0.74: aborted ones never settle. */
class Shown implements Selecting {
  open: { title: string; options: string[]; signal: AbortSignal; pick(label: string | undefined): void }[] = [];

  select(title: string, options: string[], { signal }: { signal: AbortSignal }): Promise<string | undefined> {
    return new Promise((pick) => this.open.push({ title, options, signal, pick }));
  }

  input(): Promise<undefined> {
    return Promise.resolve(undefined);
  }
}

function start() {
  const shown = new Shown();
  const queue = new PromptQueue(new SelectDialogs(shown));
  const answers: Record<number, AskResponse> = {};
  const ask = (id: number, more = {}, signal?: AbortSignal) => queue.ask(askOf(id, more), signal, (answer) => {
    assert.equal(answers[id], undefined, "answered twice");
    answers[id] = answer;
  });
  return { shown, queue, answers, ask };
}

test("questions are shown one after the other, in order", async () => {
  const { shown, answers, ask } = start();
  for (const id of [1, 2, 3]) ask(id, { subject: `s${id}` });
  for (const [id, label] of [[1, "2. Session"], [2, "1. Once"], [3, "No"]] as const) {
    await until(() => shown.open.length === id);
    assert.match(shown.open[id - 1]!.title, new RegExp(`s${id}`));
    shown.open[id - 1]!.pick(label);
  }
  await until(() => answers[3] !== undefined);
  assert.deepEqual(answers, { 1: { choice: 1 }, 2: { choice: 0 }, 3: { choice: "refuse" } });
});

test("refusing comes first, and anything unknown refuses", async () => {
  const { shown, answers, ask } = start();
  ask(1);
  ask(2);
  await until(() => shown.open.length === 1);
  assert.equal(shown.open[0]!.options[0], "No");
  shown.open[0]!.pick("Once");
  await until(() => shown.open.length === 2);
  shown.open[1]!.pick(undefined);
  await until(() => answers[2] !== undefined);
  assert.deepEqual(answers, { 1: { choice: "refuse" }, 2: { choice: "refuse" } });
});

test("without an interface, or for an aborted call, nothing is shown", () => {
  const answers: AskResponse[] = [];
  new PromptQueue(undefined).ask(askOf(1), undefined, (answer) => answers.push(answer));
  const { shown, queue } = start();
  queue.ask(askOf(2), AbortSignal.abort(), (answer) => answers.push(answer));
  assert.deepEqual(answers, [{ choice: "refuse", cause: "noInterface" }, { choice: "refuse", cause: "aborted" }]);
  assert.equal(shown.open.length, 0);
});

test("a withdrawn question closes its dialog, its late answer is void, and the next one is shown", async () => {
  const { shown, queue, answers, ask } = start();
  ask(1);
  ask(2);
  await until(() => shown.open.length === 1);
  queue.withdraw(1);
  assert.deepEqual(answers[1], { choice: "refuse", cause: "aborted" });
  assert.equal(shown.open[0]!.signal.aborted, true);
  shown.open[0]!.pick("1. Once");
  await until(() => shown.open.length === 2);
  queue.withdraw(99);
  shown.open[1]!.pick("1. Once");
  await until(() => answers[2] !== undefined);
  assert.deepEqual(answers[2], { choice: 0 });
});

test("an answer in the very moment of the withdrawal is void as well", async () => {
  const { shown, queue } = start();
  const answers: AskResponse[] = [];
  queue.ask(askOf(1), undefined, (answer) => answers.push(answer));
  await until(() => shown.open.length === 1);
  shown.open[0]!.pick("1. Once");
  queue.withdraw(1);
  await new Promise((resolve) => setTimeout(resolve, 20));
  assert.deepEqual(answers, [{ choice: "refuse", cause: "aborted" }]);
});

test("a question that waits is withdrawn without having been seen", async () => {
  const { shown, queue, answers, ask } = start();
  ask(1);
  ask(2);
  queue.withdraw(2);
  await until(() => shown.open.length === 1);
  shown.open[0]!.pick("1. Once");
  await until(() => answers[1] !== undefined);
  await new Promise((resolve) => setTimeout(resolve, 30));
  assert.equal(shown.open.length, 1);
});

test("the abort of a call ends its question", async () => {
  const { shown, answers, ask } = start();
  const abort = new AbortController();
  ask(1, {}, abort.signal);
  await until(() => shown.open.length === 1);
  abort.abort();
  assert.deepEqual(answers[1], { choice: "refuse", cause: "aborted" });
});

test("the time to answer runs only while the question is seen", async () => {
  const { shown, answers, ask } = start();
  ask(1);
  ask(2, { timeoutMs: 60 });
  await new Promise((resolve) => setTimeout(resolve, 120));
  assert.equal(answers[2], undefined);
  shown.open[0]!.pick("1. Once");
  await until(() => answers[2] !== undefined);
  assert.equal(shown.open.length, 2);
  assert.deepEqual(answers[2], { choice: "refuse", cause: "timeout" });
});

test("a dialog that fails refuses and does not stop the queue", async () => {
  let shown = 0;
  const queue = new PromptQueue(new SelectDialogs({ select: () => { shown++; return Promise.reject(new Error("stale")); }, input: async () => undefined }));
  const answers: AskResponse[] = [];
  for (const id of [1, 2]) queue.ask(askOf(id), undefined, (answer) => answers.push(answer));
  await until(() => answers.length === 2);
  assert.equal(shown, 2);
  assert.ok(answers.every((answer) => answer.choice === "refuse"));
});

test("the choices of a list spell out what they cover", async () => {
  const { shown, ask } = start();
  ask(1, { options: [
    { key: "o", effect: "allow", label: "Once", width: 0, scope: "once" },
    { key: "s", effect: "allow", label: "For this session", covers: "reading /a", width: 0, scope: "session" },
    { key: "P", effect: "allow", label: "Always in this project", covers: "reading /a", width: 0, target: "projects.json[\"/w\"]", scope: "project" },
    { key: "A", effect: "allow", label: "Always, in every project", covers: "reading /a", width: 0, target: "default.json", scope: "user" },
    { key: "d", effect: "deny", label: "No, for this session", covers: "reading /a\u202e", width: 0, scope: "session" },
  ] });
  await until(() => shown.open.length === 1);
  assert.deepEqual(shown.open[0]!.options, [
    "No",
    "1. Once",
    "2. For this session: reading /a",
    "3. Always in this project: reading /a",
    "4. Always, in every project: reading /a",
    "5. No, for this session: reading /a\\u{202e}",
    "No, and tell the agent why",
  ]);
});

test("whoever shows the footer is told how many questions are open", async () => {
  const counts: number[] = [];
  const shown = new Shown();
  const queue = new PromptQueue(new SelectDialogs(shown), (waiting) => counts.push(waiting));
  for (const id of [1, 2]) queue.ask(askOf(id), undefined, () => {});
  await until(() => shown.open.length === 1);
  shown.open[0]!.pick("1. Once");
  await until(() => shown.open.length === 2);
  queue.withdraw(2);
  assert.deepEqual(counts, [1, 2, 1, 0]);
});

test("clear refuses everything that is open", () => {
  const { queue, answers, ask } = start();
  for (const id of [1, 2]) ask(id);
  queue.clear();
  assert.ok([1, 2].every((id) => answers[id]!.choice === "refuse"));
});

test("while a menu has the keys no question takes them; it waits, calls for attention, and comes afterwards", async () => {
  const { shown, queue, answers, ask } = start();
  const release = queue.hold();
  ask(1, { timeoutMs: 1 });
  await new Promise((resolve) => setTimeout(resolve, 20));
  assert.equal(shown.open.length, 0);
  assert.deepEqual(answers, {}, "the time to answer runs only while the question is seen");
  release();
  release();
  await until(() => shown.open.length === 1);
  await until(() => answers[1] !== undefined);
  assert.deepEqual(answers[1], { choice: "refuse", cause: "timeout" });
});

test("a question that is open stays open when a menu is, and the next one waits", async () => {
  let attention = 0;
  const shown = new Shown();
  const dialogs = new SelectDialogs(shown);
  const queue = new PromptQueue({
    ask: (ask, signal) => dialogs.ask(ask, signal),
    attention: () => { attention += 1; },
  });
  const answers: AskResponse[] = [];
  queue.ask(askOf(1), undefined, (answer) => answers.push(answer));
  await until(() => shown.open.length === 1);
  const release = queue.hold();
  queue.ask(askOf(2), undefined, (answer) => answers.push(answer));
  assert.equal(attention, 1);
  shown.open[0]!.pick("1. Once");
  await until(() => answers.length === 1);
  await new Promise((resolve) => setTimeout(resolve, 20));
  assert.equal(shown.open.length, 1);
  release();
  await until(() => shown.open.length === 2);
});

test("no with a line for the agent, where pi has only lists and lines", async () => {
  const ui = { select: async () => "No, and tell the agent why", input: async () => " use the copy " as string | undefined };
  const ask = () => new SelectDialogs(ui).ask(askOf(1), new AbortController().signal);
  assert.deepEqual(await ask(), { because: "use the copy" });
  ui.input = async () => undefined;
  assert.equal(await ask(), "refuse");
  const answers: unknown[] = [];
  const dialogs = { ask: async () => ({ because: "why" }) };
  new PromptQueue(dialogs).ask(askOf(2), undefined, (answer) => answers.push(answer));
  await new Promise((resolve) => setTimeout(resolve, 10));
  assert.deepEqual(answers, [{ choice: "refuse", because: "why" }]);
});

// The answers of the scripted model: reads a scenario file, and selects the step for each request.
//
//   {
//     "turns": [ { "match": "regex on the user's prompt", "steps": [STEP, …] }, … ],
//     "vars":  { "NAME": "value" }
//   }
//
// The first turn whose `match` fits the prompt is used; a turn without `match` fits every prompt. A file
// may also be `{ "steps": […] }` or just `[STEP, …]`: one turn for every prompt.
//
//   STEP = {
//     "text":       "what the assistant says",
//     "calls":      [ { "name": "bash", "args": { … } } ],   several calls are parallel calls;
//                                                            "raw": "{broken" replaces args, word for word
//     "delay_ms":   100,                                     wait before the first byte
//     "await_file": "${CWD}/go",                             wait until this file exists
//     "hang":       true,                                    begin the stream and never end it
//     "status":     429, "body": { … },                      an HTTP error in place of a stream
//     "expect":     "regex", "expect_not": "regex"           checked against the tool results just received
//   }
//
// `${NAME}` in any string stands for a variable; `${CWD}` and `${HOME}` are always there. `{{result:N}}` stands
// for the text of the Nth tool result since the prompt (from 0), `{{result}}` for the last one.
//
// The step is found by counting the assistant's messages since the prompt, never by a cursor: a retry, a resumed
// session and two agents on one model all get the same answers.

import { readFileSync } from "node:fs";

const STEP_KEYS = new Set(["text", "calls", "delay_ms", "await_file", "hang", "status", "body", "expect", "expect_not"]);

/** Reads and checks a scenario file. Throws if it has an unknown key. */
export function readScenario(path, vars) {
  return parseScenario(JSON.parse(readFileSync(path, "utf8")), vars);
}

/** Turns the parsed text of a scenario into `{ turns, vars }`. */
export function parseScenario(value, vars = {}) {
  const turns = Array.isArray(value) ? [{ steps: value }] : (value.turns ?? [{ steps: value.steps ?? [] }]);
  for (const step of turns.flatMap((turn) => turn.steps)) {
    for (const key of Object.keys(step)) {
      if (!STEP_KEYS.has(key)) throw new Error(`unknown key \`${key}\` in a step of the scenario`);
    }
  }
  return { turns, vars: { ...vars, ...value.vars } };
}

/** Chooses and fills in the step that answers a chat-completions request body. */
export function stepFor(scenario, body) {
  const messages = body.messages ?? [];
  const asked = messages.findLastIndex((message) => message.role === "user");
  const prompt = asked < 0 ? "" : textOf(messages[asked].content);
  const since = messages.slice(asked + 1);
  const number = since.filter((message) => message.role === "assistant").length;
  const results = since.filter((message) => message.role === "tool").map((message) => textOf(message.content));
  const turn = scenario.turns.findIndex(({ match }) => match === undefined || new RegExp(match).test(prompt));
  const step = scenario.turns[turn]?.steps[number] ?? { text: "(end of the scenario)" };
  return {
    turn,
    number,
    prompt,
    callPrefix: `call_${asked}_${number}`,
    latest: latestResults(since),
    step: fillIn(step, scenario.vars, results),
  };
}

/** Returns the unmet expectations of a step about the latest tool results; empty if all are met. */
export function unmet(step, latest) {
  const text = latest.join("\n");
  const failures = [];
  if (step.expect !== undefined && !new RegExp(step.expect, "s").test(text)) {
    failures.push(`expected /${step.expect}/, got: ${text.slice(0, 800)}`);
  }
  if (step.expect_not !== undefined && new RegExp(step.expect_not, "s").test(text)) {
    failures.push(`expected not to see /${step.expect_not}/, got: ${text.slice(0, 800)}`);
  }
  return failures;
}

/** Only the results that follow the last assistant message: those the coming answer reacts to. */
function latestResults(since) {
  const spoken = since.findLastIndex((message) => message.role === "assistant");
  const tail = since.slice(spoken + 1);
  return tail.filter((message) => message.role === "tool").map((message) => textOf(message.content));
}

export function textOf(content) {
  if (typeof content === "string") return content;
  return Array.isArray(content) ? content.map((part) => part.text ?? "").join("") : "";
}

function fillIn(value, vars, results) {
  if (typeof value === "string") return fillInText(value, vars, results);
  if (Array.isArray(value)) return value.map((item) => fillIn(item, vars, results));
  if (value === null || typeof value !== "object") return value;
  return Object.fromEntries(Object.entries(value).map(([key, item]) => [key, fillIn(item, vars, results)]));
}

function fillInText(text, vars, results) {
  return text
    .replace(/\$\{(\w+)\}/g, (whole, name) => (Object.hasOwn(vars, name) ? vars[name] : whole))
    .replace(/\{\{result(?::(\d+))?\}\}/g, (_whole, index) => results[index ?? results.length - 1] ?? "");
}

// The model's side of the wire: an OpenAI-style chat-completions server on loopback that streams a scenario.

import { appendFileSync, existsSync } from "node:fs";
import { createServer } from "node:http";
import { setTimeout as delay } from "node:timers/promises";
import { stepFor, textOf, unmet } from "./scenario.mjs";

const FILE_POLL_MS = 20;
// Arguments and text arrive in several pieces from a real model; the agent has to put them together.
const PIECES = 3;

/**
 * Starts the model. Answers `{ url, failures, close }`; `failures` grows by one line for each expectation of the
 * scenario that a request did not meet. `log` names a file that gets one JSON line for each request.
 */
export async function startModel(scenario, { log } = {}) {
  const failures = [];
  const server = createServer((request, response) => {
    answer(request, response, { scenario, log, failures }).catch((error) => {
      failures.push(`the model broke: ${error.stack}`);
      response.destroy();
    });
  });
  await new Promise((resolve, reject) => {
    server.once("error", reject);
    server.listen(0, "127.0.0.1", resolve);
  });
  const close = () => {
    server.closeAllConnections();
    server.close();
  };
  return { url: `http://127.0.0.1:${server.address().port}/v1`, failures, close };
}

async function answer(request, response, model) {
  if (request.method === "GET") return sendJson(response, 200, { object: "list", data: [{ id: "scripted", object: "model" }] });
  const body = JSON.parse(await textOfRequest(request));
  const chosen = stepFor(model.scenario, body);
  const failures = unmet(chosen.step, chosen.latest).map((failure) => `turn ${chosen.turn}, step ${chosen.number}: ${failure}`);
  model.failures.push(...failures);
  if (model.log) appendFileSync(model.log, logLine(chosen, body, failures));
  await held(chosen.step, response);
  if (chosen.step.status) return sendJson(response, chosen.step.status, chosen.step.body ?? { error: { message: "scripted error" } });
  stream(response, body.model, chosen);
}

/** Waits as the step says, but not for a client that has hung up. */
async function held(step, response) {
  if (step.delay_ms) await delay(step.delay_ms);
  while (step.await_file && !existsSync(step.await_file) && !response.destroyed) await delay(FILE_POLL_MS);
}

function stream(response, model, { step, number, callPrefix }) {
  response.writeHead(200, { "content-type": "text/event-stream", "cache-control": "no-cache" });
  const event = (rest) => {
    const chunk = { id: `scripted-${number}`, object: "chat.completion.chunk", created: 1, model, ...rest };
    response.write(`data: ${JSON.stringify(chunk)}\n\n`);
  };
  const delta = (content, finish_reason = null) => event({ choices: [{ index: 0, delta: content, finish_reason }] });

  delta({ role: "assistant", content: "" });
  for (const piece of pieces(step.text ?? "")) delta({ content: piece });
  if (step.hang) return;
  const calls = step.calls ?? [];
  calls.forEach((call, index) => {
    const id = call.id ?? `${callPrefix}_${index}`;
    delta({ tool_calls: [{ index, id, type: "function", function: { name: call.name, arguments: "" } }] });
    for (const piece of pieces(call.raw ?? JSON.stringify(call.args ?? {}))) {
      delta({ tool_calls: [{ index, function: { arguments: piece } }] });
    }
  });
  delta({}, calls.length > 0 ? "tool_calls" : "stop");
  event({ choices: [], usage: { prompt_tokens: 10, completion_tokens: 5, total_tokens: 15 } });
  response.end("data: [DONE]\n\n");
}

function pieces(text) {
  const size = Math.max(1, Math.ceil(text.length / PIECES));
  const cut = [];
  for (let at = 0; at < text.length; at += size) cut.push(text.slice(at, at + size));
  return cut;
}

function logLine({ turn, number, prompt, latest }, body, failures) {
  const tools = (body.tools ?? []).map((tool) => tool.function?.name);
  const instructions = body.messages.filter(({ role }) => role === "system" || role === "developer").map(({ content }) => textOf(content)).join("\n");
  return `${JSON.stringify({ at_ms: Date.now(), turn, step: number, instructions, prompt, tools, results: latest, failures })}\n`;
}

async function textOfRequest(request) {
  const chunks = [];
  for await (const chunk of request) chunks.push(chunk);
  return Buffer.concat(chunks).toString("utf8");
}

function sendJson(response, status, value) {
  response.writeHead(status, { "content-type": "application/json" });
  response.end(JSON.stringify(value));
}

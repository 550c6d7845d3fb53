// A client for `pi --mode rpc`: JSON lines on pi's standard streams.

import { spawn } from "node:child_process";
import { createInterface } from "node:readline";

const DIALOGS = new Set(["select", "confirm", "input", "editor"]);

/**
 * Starts pi and sends one prompt. `onQuestion` gets each question and returns the option to answer with; `onResult`
 * gets each finished tool call as `{ tool, text, failed }`. Resolves with pi's exit code after the answer.
 */
export async function converse({ command, cwd, env, prompt, onQuestion, onResult, patienceMs }) {
  const pi = spawn(command[0], command.slice(1), { cwd, env, stdio: ["pipe", "pipe", "inherit"] });
  const late = setTimeout(() => pi.kill("SIGKILL"), patienceMs);
  const send = (message) => pi.stdin.write(`${JSON.stringify(message)}\n`);
  const ended = new Promise((resolve, reject) => {
    pi.on("exit", (code, signal) => resolve(code ?? signal));
    pi.on("error", reject);
  });
  createInterface({ input: pi.stdout }).on("line", (line) => {
    const message = JSON.parse(line);
    if (message.type === "extension_ui_request" && DIALOGS.has(message.method)) {
      send({ type: "extension_ui_response", id: message.id, value: onQuestion(message) });
    }
    if (message.type === "tool_execution_end") onResult(resultOf(message));
    if (message.type === "agent_end") pi.stdin.end();
  });
  send({ id: "prompt", type: "prompt", message: prompt });
  const code = await ended;
  clearTimeout(late);
  return code;
}

function resultOf({ toolName, result, isError }) {
  const text = (result?.content ?? []).map((part) => part.text ?? "").join("");
  return { tool: toolName, text, failed: isError };
}

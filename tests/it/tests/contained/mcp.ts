import { spawn } from "node:child_process";
import { createInterface } from "node:readline";

/** Adds MCP to a pi without it, as extensions do: it starts the servers, and registers their tools. */
export default async function (pi) {
  const [program, ...words] = JSON.parse(process.env.MCP_SERVER ?? "[]");
  const child = spawn(program, words, { stdio: ["pipe", "pipe", "ignore"] });
  const waiting = new Map<number, (result: any) => void>();
  let last = 0;
  const send = (message: object) => child.stdin.write(`${JSON.stringify({ jsonrpc: "2.0", ...message })}\n`);
  createInterface({ input: child.stdout }).on("line", (line) => {
    const { id, result } = JSON.parse(line);
    waiting.get(id)?.(result);
  });
  const call = (method: string, params: object): Promise<any> => new Promise((resolve) => {
    waiting.set(++last, resolve);
    send({ id: last, method, params });
  });
  await call("initialize", {
    protocolVersion: "2025-06-18", capabilities: {}, clientInfo: { name: "mcp.ts", version: "1" },
  });
  send({ method: "notifications/initialized" });
  for (const { name, description, inputSchema } of (await call("tools/list", {})).tools) {
    pi.registerTool({
      name: `mcp__files__${name}`, label: name, description, parameters: inputSchema,
      async execute(_id, given) {
        const { content, isError } = await call("tools/call", { name, arguments: given });
        if (isError) throw new Error(content[0].text);
        return { content, details: {} };
      },
    });
  }
  pi.on("session_shutdown", () => child.stdin.end());
}

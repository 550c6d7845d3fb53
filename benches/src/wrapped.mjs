// Runs one command as a program would that uses @anthropic-ai/sandbox-runtime: `wrapped.mjs INSTALLED COMMAND`, with the
// loopback of this machine as the one host that may be reached. The command has our standard streams.
import { spawn } from "node:child_process";
import { createRequire } from "node:module";
import { pathToFileURL } from "node:url";

const [installed, command] = process.argv.slice(2);
const required = createRequire(`${installed}/`).resolve("@anthropic-ai/sandbox-runtime");
const { SandboxManager } = await import(pathToFileURL(required).href);
await SandboxManager.initialize({
  network: { allowedDomains: ["localhost"], deniedDomains: [] },
  filesystem: { denyRead: [], allowWrite: ["."], denyWrite: [] },
});
const wrapped = await SandboxManager.wrapWithSandbox(command);
spawn(wrapped, { shell: true, stdio: "inherit" }).on("close", (code) => process.exit(code ?? 1));

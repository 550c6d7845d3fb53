// Stands for a program that uses @anthropic-ai/sandbox-runtime: for each line `run N` or `at-once N` it wraps and runs
// /bin/true N times, one after the other or all at once, and says `done`. The directory it works in is the project.
import { spawn } from "node:child_process";
import { createRequire } from "node:module";
import { createInterface } from "node:readline";
import { pathToFileURL } from "node:url";

const required = createRequire(`${process.argv[2]}/`).resolve("@anthropic-ai/sandbox-runtime");
const { SandboxManager } = await import(pathToFileURL(required).href);
await SandboxManager.initialize({
  network: { allowedDomains: [], deniedDomains: [] },
  filesystem: { denyRead: ["/home"], allowWrite: ["."], denyWrite: ["*.pem", ".env"] },
});
const run = async () => {
  const command = await SandboxManager.wrapWithSandbox("true");
  const code = await new Promise((resolve) => spawn(command, { shell: true, stdio: "ignore" }).on("close", resolve));
  if (code !== 0) process.exit(1);
};
for await (const line of createInterface({ input: process.stdin })) {
  const [how, count] = line.split(" ");
  if (how === "at-once") await Promise.all(Array.from({ length: Number(count) }, run));
  else for (let left = Number(count); left > 0; left -= 1) await run();
  console.log("done");
}
process.exit(0);

// A home directory and an environment in which pi sees the scripted model, and no files of the machine's user.

import { existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";

// The variables that a terminal program needs. All others of the caller are left out, in particular API keys, proxies,
// agent sockets and variables of another pi.
const KEPT = ["PATH", "TERM", "COLORTERM", "LANG", "LC_ALL", "TZ", "USER", "LOGNAME", "SHELL"];

/**
 * Writes pi's settings into `home` so that every request goes to the model at `url`. Returns pi's directory.
 * `sandbox` names settings of Portcullis in which `${MODEL}` stands for the model's host and port.
 */
export function prepareHome(home, url, sandbox) {
  const agentDir = join(home, ".pi", "agent");
  mkdirSync(agentDir, { recursive: true });
  writeFileSync(join(agentDir, "models.json"), json(models(url)));
  const settings = join(agentDir, "settings.json");
  if (!existsSync(settings)) writeFileSync(settings, json(SETTINGS));
  if (sandbox) {
    mkdirSync(join(agentDir, "sandbox"), { recursive: true });
    const text = readFileSync(sandbox, "utf8").replaceAll("${MODEL}", new URL(url).host);
    writeFileSync(join(agentDir, "sandbox", "default.json"), text);
  }
  return agentDir;
}

/** Returns the environment for pi: a few harmless variables of the caller, the given home, and those in `extra`. */
export function environmentFor(home, { binDir, extra = {} } = {}) {
  const kept = Object.fromEntries(KEPT.filter((name) => name in process.env).map((name) => [name, process.env[name]]));
  const path = binDir ? `${binDir}:${kept.PATH ?? "/usr/bin:/bin"}` : kept.PATH;
  return {
    ...kept,
    PATH: path,
    HOME: home,
    PI_CODING_AGENT_DIR: join(home, ".pi", "agent"),
    PI_OFFLINE: "1",
    PI_SKIP_VERSION_CHECK: "1",
    PI_TELEMETRY: "0",
    ...extra,
  };
}

const SETTINGS = {
  defaultProvider: "scripted",
  defaultModel: "scripted",
  defaultThinkingLevel: "off",
  quietStartup: true,
  enableInstallTelemetry: false,
  collapseChangelog: true,
  // Newer than any release, so that pi shows no list of changes.
  lastChangelogVersion: "99.0.0",
  retry: { enabled: false },
};

function models(baseUrl) {
  const cost = { input: 0, output: 0, cacheRead: 0, cacheWrite: 0 };
  const limits = { contextWindow: 128000, maxTokens: 4096 };
  const compat = {
    supportsDeveloperRole: false,
    supportsStore: false,
    supportsReasoningEffort: false,
    maxTokensField: "max_tokens",
  };
  const model = { id: "scripted", name: "Scripted", reasoning: false, input: ["text"], cost, ...limits };
  // pi requires a key; lower case with dashes is not the name of an environment variable in either pi.
  const scripted = { baseUrl, api: "openai-completions", apiKey: "not-a-secret", compat, models: [model] };
  return { providers: { scripted } };
}

const json = (value) => JSON.stringify(value, null, 2);

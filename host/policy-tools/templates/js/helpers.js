// Helpers for policies in JavaScript. `policy.d.ts` has their types.
//
// Write `x == null` and never `x === undefined`: engines differ in what they give
// for a missing value.

export { couldRun, matches, runs } from "./commands.js";

const cause = (rule, reason, options = {}) => ({
  rule,
  reason,
  setting: options.setting ?? "",
  severity: options.severity ?? "info",
});

const evaluation = (verdict, rule, reason, options) => ({
  verdict,
  cause: cause(rule, reason, options),
  trace: [],
});

export const abstain = () => evaluation({ tag: "abstain" }, "", "");

export const allow = (rule, reason, options = {}) =>
  evaluation({ tag: "allow", val: { obligations: options.obligations ?? [] } }, rule, reason, options);

export const ask = (rule, reason, title, options = {}) =>
  evaluation(
    { tag: "ask", val: { title, details: options.details, options: options.options ?? [] } },
    rule,
    reason,
    { severity: "medium", ...options },
  );

export const deny = (rule, reason, options = {}) =>
  evaluation(
    { tag: "deny", val: { hint: options.hint, overridable: options.overridable ?? false } },
    rule,
    reason,
    { severity: "high", ...options },
  );

// Obligations: duties of the host if the action is allowed.
export const notify = (text) => ({ tag: "notify", val: text });
export const advise = (text) => ({ tag: "advise", val: text });
export const rewriteScript = (script) => ({ tag: "rewrite-script", val: script });
export const rewriteInput = (value) => ({ tag: "rewrite-input", val: JSON.stringify(value) });
export const obligation = (name, value) => ({ tag: "other", val: { name, value: JSON.stringify(value) } });

const ports = (list) => (list.length === 0 ? { tag: "every" } : { tag: "these", val: list });
const flags = (names) => Object.fromEntries(names.map((name) => [name, true]));

// Offers of a question, for `options`; the scope is `once`, `session`, `project` or `user`.
export const offer = (label, scope = "once", lifetime = 0) => ({ label, scope, pattern: { tag: "exact" }, lifetime });
export const offerFile = (label, scope, pattern, rights, lifetime = 0) =>
  ({ label, scope, pattern: { tag: "path", val: { pattern, rights: flags(rights) } }, lifetime });
export const offerHost = (label, scope, host, list, lifetime = 0) =>
  ({ label, scope, pattern: { tag: "network", val: { host, ports: ports(list) } }, lifetime });

export const pass = (rule, reason) => ({ verdict: { tag: "pass" }, cause: cause(rule, reason) });
export const replace = (rule, reason, blocks) => ({
  verdict: { tag: "replace", val: blocks },
  cause: cause(rule, reason),
});
export const withhold = (rule, reason) => ({ verdict: { tag: "withhold" }, cause: cause(rule, reason) });

export const exact = (path) => ({ tag: "exact", val: path });
export const tree = (path) => ({ tag: "tree", val: path });
export const glob = (pattern) => ({ tag: "glob", val: pattern });
export const named = (below, pattern) => ({ tag: "name", val: { below, glob: pattern } });

const fileRule = (effect) => (id, pattern, rights, options = {}) => ({
  id,
  pattern,
  rights: flags(rights),
  effect,
  conceal: options.conceal ?? false,
  condition: options.condition ?? "",
  reason: options.reason ?? "",
  setting: options.setting ?? "",
});

export const allowFile = fileRule("allow");
export const askFile = fileRule("ask");
export const denyFile = fileRule("deny");

const networkRule = (effect) => (id, host, list, options = {}) => ({
  id,
  target: { host, ports: ports(list) },
  program: options.program ?? "*",
  effect,
  reason: options.reason ?? "",
  setting: options.setting ?? "",
});

export const allowHost = networkRule("allow");
export const askHost = networkRule("ask");
export const denyHost = networkRule("deny");

export const profile = (parts = {}) => ({
  files: [],
  network: [],
  budgets: [],
  sockets: [],
  ports: [],
  environment: [],
  variables: [],
  limits: {},
  tracing: "no-opinion",
  attributes: [],
  ...parts,
});

// The lines of `console`: shown with an exception, and in the trace of a decision that is explained.
let printed = [];
const MOST_LINES = 100;
const shown = (value) => (typeof value === "string" ? value : (JSON.stringify(value) ?? String(value)));
const print = (...values) => {
  if (printed.length < MOST_LINES) printed.push(values.map(shown).join(" "));
};
globalThis.console ??= { debug: print, log: print, info: print, warn: print, error: print };

const withConsole = (context, evaluate) => {
  printed = [];
  try {
    const answer = evaluate();
    if (!context.explain || printed.length === 0) return answer;
    const lines = printed.map((detail) => ({ rule: "console", matched: false, detail }));
    return { ...answer, trace: [...answer.trace, ...lines] };
  } catch (error) {
    if (printed.length > 0 && error instanceof Error) error.message += `; console: ${printed.join("; ")}`;
    throw error;
  }
};

const fault = (error) => [{ pointer: "", message: String(error && error.message ? error.message : error) }];

export function definePolicy(policy) {
  const schema = policy.configSchema == null ? "" : JSON.stringify(policy.configSchema);
  return {
    lifecycle: {
      describe: () => ({
        id: policy.id,
        version: policy.version,
        title: policy.title,
        handles: flags(policy.handles ?? []),
        rules: Object.entries(policy.rules ?? {}).map(([id, title]) => ({ id, title, help: "" })),
        configSchema: schema,
      }),
      configure(text) {
        let faults;
        try {
          const config = JSON.parse(text);
          const known = policy.configSchema?.properties ?? {};
          faults = Object.keys(config)
            .filter((key) => !(key in known))
            .map((key) => ({ pointer: `/${key}`, message: "there is no such key" }));
          if (faults.length === 0) faults = policy.configure?.(config) ?? [];
        } catch (error) {
          faults = fault(error);
        }
        if (faults.length > 0) throw faults;
      },
    },
    evaluator: {
      evaluate: (request, context) =>
        withConsole(context, () => policy.evaluate?.(request, context) ?? abstain()),
    },
    confinement: {
      standing: (context) => policy.standing?.(context) ?? profile(),
      forCommand: (request, context) => policy.forCommand?.(request, context),
    },
    outputFilter: {
      inspect: (output, context) =>
        policy.inspect?.(output, context) ?? { verdict: { tag: "abstain" }, cause: cause("", "") },
    },
    orientation: { brief: (context) => policy.brief?.(context) ?? "" },
  };
}

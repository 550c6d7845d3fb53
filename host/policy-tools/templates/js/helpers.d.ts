// Types of the helpers, and of the parts of the contract that most policies touch.
// `wit/` beside this file has all of it, with every field explained.

export type Kind =
  | "file" | "command" | "network" | "networkResolved" | "networkClientHello" | "networkHttp"
  | "socket" | "tool" | "escalation" | "other";
export type Right = "read" | "write" | "execute";
export type Severity = "info" | "low" | "medium" | "high" | "critical";

export interface Word { value: string; literal: boolean }
export interface PathRef {
  given: string; absolute: string; canonical: string; relative: string;
  zone: "workspace" | "agent" | "temp" | "home" | "system";
  kind: "missing" | "file" | "directory" | "symlink" | "other";
}
export interface SimpleCommand {
  argv: Word[];
  assignments: [string, Word][];
  redirects: { operator: string; fd?: number; target: Word; path?: PathRef }[];
  joinedBy: string;
  parent?: number;
  program?: string;
}
export interface Script {
  commands: SimpleCommand[];
  features: {
    substitution?: boolean; dynamic?: boolean; background?: boolean;
    redefinition?: boolean; heredoc?: boolean; loops?: boolean;
  };
}
export interface Command {
  script: string;
  shell?: string;
  cwd: PathRef;
  parsed: { tag: "ok"; val: Script } | { tag: "err"; val: string };
  timeoutMs?: number;
  background: boolean;
}
export interface Connection {
  transport: "tcp" | "udp" | "other";
  direction: "outbound" | "listen";
  target: { tag: "domain"; val: string } | { tag: "address"; val: string };
  port: number;
  stage: { tag: "connect" | "resolved" | "client-hello" | "http"; val?: unknown };
  process: { pid: number; program: string; argv: string[] };
}
export type Action =
  | { tag: "file"; val: { path: PathRef; operation: { tag: string; val?: unknown }; facts: object } }
  | { tag: "command"; val: Command }
  | { tag: "escalation"; val: Command }
  | { tag: "network"; val: Connection }
  | { tag: "socket"; val: { path: string; direction: "outbound" | "listen"; process: object } }
  | { tag: "tool"; val: { name: string; provider: string; input: string } }
  | { tag: "other"; val: { kind: string; input: string } };
export interface Request {
  id: string;
  parent?: string;
  origin: "agent" | "user" | "extension" | "process";
  action: Action;
  attributes: { name: string; value: string }[];
}
export interface Context {
  sessionId: string;
  agent: { name: string; version: string; model?: string; subAgent: string; directory: string; sessionFile: string };
  workspace: { roots: string[]; trusted: boolean };
  machine: { os: string; arch: string; home: string; temp: string; user: string; uid: number; path: string[]; toolchains: string[] };
  interactive: boolean;
  now: number;
  explain: boolean;
}
export type Block =
  | { tag: "text"; val: string }
  | { tag: "image"; val: [string, number] }
  | { tag: "other"; val: string };
export interface Output { request: Request; isError: boolean; truncated: boolean; content: Block[] }

export interface Evaluation { verdict: object; cause: object; trace: object[] }
export interface OutputEvaluation { verdict: object; cause: object }
export interface FilePattern { tag: "exact" | "tree" | "glob" | "name"; val: unknown }
export interface FileRule { id: string }
export interface NetworkRule { id: string }
export interface Profile { files: FileRule[]; network: NetworkRule[] }
export interface ConfigFault { pointer: string; message: string }

export function abstain(): Evaluation;
export function allow(rule: string, reason: string, options?: { setting?: string; severity?: Severity; obligations?: Obligation[] }): Evaluation;
export function ask(rule: string, reason: string, title: string, options?: { details?: string; options?: Offer[]; setting?: string; severity?: Severity }): Evaluation;
export function deny(rule: string, reason: string, options?: { hint?: string; overridable?: boolean; setting?: string; severity?: Severity }): Evaluation;
export function pass(rule: string, reason: string): OutputEvaluation;
export function replace(rule: string, reason: string, blocks: Block[]): OutputEvaluation;
export function withhold(rule: string, reason: string): OutputEvaluation;

export function exact(path: string): FilePattern;
export function tree(path: string): FilePattern;
export function glob(pattern: string): FilePattern;
export function named(below: string, pattern: string): FilePattern;

type FileOptions = { reason?: string; setting?: string; conceal?: boolean; condition?: string };
export function allowFile(id: string, pattern: FilePattern, rights: Right[], options?: FileOptions): FileRule;
export function askFile(id: string, pattern: FilePattern, rights: Right[], options?: FileOptions): FileRule;
export function denyFile(id: string, pattern: FilePattern, rights: Right[], options?: FileOptions): FileRule;

type HostOptions = { program?: string; reason?: string; setting?: string };
export function allowHost(id: string, host: string, ports: number[], options?: HostOptions): NetworkRule;
export function askHost(id: string, host: string, ports: number[], options?: HostOptions): NetworkRule;
export function denyHost(id: string, host: string, ports: number[], options?: HostOptions): NetworkRule;

export function profile(parts?: Partial<Profile> & Record<string, unknown>): Profile;

// How surely a request runs a command that a pattern describes, for example `git push --force`.
export function matches(request: Request, pattern: string): "yes" | "maybe" | "no";
// Whether it certainly does, and whether it does or may do so.
export function runs(request: Request, pattern: string): boolean;
export function couldRun(request: Request, pattern: string): boolean;

export interface Obligation { tag: string; val: unknown }
export function notify(text: string): Obligation;
export function advise(text: string): Obligation;
export function rewriteScript(script: string): Obligation;
export function rewriteInput(value: unknown): Obligation;
export function obligation(name: string, value: unknown): Obligation;

export type Scope = "once" | "session" | "project" | "user";
export interface Offer { label: string; scope: Scope; pattern: object; lifetime: number }
export function offer(label: string, scope?: Scope, lifetime?: number): Offer;
export function offerFile(label: string, scope: Scope, pattern: FilePattern, rights: Right[], lifetime?: number): Offer;
export function offerHost(label: string, scope: Scope, host: string, ports: number[], lifetime?: number): Offer;

export function definePolicy(policy: {
  id: string;
  version: string;
  title: string;
  handles?: Kind[];
  rules?: Record<string, string>;
  configSchema?: { properties: Record<string, object>; [key: string]: unknown };
  configure?(config: Record<string, unknown>): ConfigFault[];
  evaluate?(request: Request, context: Context): Evaluation;
  standing?(context: Context): Profile;
  forCommand?(request: Request, context: Context): Profile | undefined;
  inspect?(output: Output, context: Context): OutputEvaluation;
  brief?(context: Context): string;
}): { lifecycle: object; evaluator: object; confinement: object; outputFilter: object; orientation: object };

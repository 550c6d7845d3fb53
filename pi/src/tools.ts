/** pi's own tools, with their actions executed by the host. */
import type {
  BashOperations, EditOperations, ExtensionAPI, LsOperations, ReadOperations, ToolDefinition, WriteOperations,
} from "@earendil-works/pi-coding-agent";
import { withoutGuard } from "./children.ts";
import type { HostClient } from "./client.ts";
import { type Call, FileCall } from "./files.ts";
import { commandNotes, refused } from "./messages.ts";
import type { ExecOrigin } from "./protocol.ts";
import { replacedBy } from "./provider.ts";
import { find, grep, listOperations, type Search } from "./searches.ts";
import type { Session } from "./session.ts";

// The tools have different parameters, which are not inspected here.
type Definition = ToolDefinition<any, any, any>;
type Make<Operations> = (cwd: string, options?: { operations?: Operations }) => Definition;

/** A variable that `portcullis pi` sets: PATH as it was before. */
const WHOLE_PATH = "PORTCULLIS_PATH";

/** The parameters of a call that are used; pi has checked their types. */
interface Parameters extends Search {
  edits?: { oldText: string; newText: string }[];
}

/** pi's own constructors of the tools; passed in, so that tests need no pi. */
export interface Makers {
  bash: Make<BashOperations>;
  read: Make<ReadOperations>;
  write: Make<WriteOperations>;
  edit: Make<EditOperations>;
  ls: Make<LsOperations>;
  /** The execution of these two is replaced as a whole: pi's own start programs without confinement. */
  find: Make<never>;
  grep: Make<never>;
}

/**
 * Which timeouts this pi accepts for a command: pi 0.x accepts any number; pi 1.x refuses those that a timer cannot
 * have.
 */
export type Times = "any" | "real";

/** The longest timeout of a Node timer in seconds; a longer one counts as no limit. */
const LONGEST = 2_147_483_647 / 1000;

/** The names of the tools that are replaced. */
export type OwnTool = keyof Makers;

const OWN_NAMES: ReadonlySet<string> = new Set<OwnTool>(["bash", "read", "write", "edit", "ls", "find", "grep"]);

/** Whether a tool has the name of one of pi's own. */
export function isOwnName(name: string): name is OwnTool {
  return OWN_NAMES.has(name);
}

/** The registered tools. Each is recognised by its parameters, an object that no other tool has. */
export class OwnTools {
  readonly #parameters = new Map<string, object>();
  readonly #times: Times;

  /** `times` says which timeouts this pi accepts for commands. */
  constructor(times: Times = "any") {
    this.#times = times;
  }

  /** Returns whether the tool that pi would call by this name is ours. */
  isInForce(pi: Pick<ExtensionAPI, "getAllTools">, name: string): boolean {
    const ours = this.#parameters.get(name);
    return ours !== undefined && pi.getAllTools().find((tool) => tool.name === name)?.parameters === ours;
  }

  /**
   * Replaces pi's own tools. After all extensions are loaded, pi reports the providers of tools, and no longer refuses
   * to start because two extensions register the same name. So a tool that another extension has already replaced
   * stays, and its calls pass the gate like those of other tools. Returns the names of these tools with their
   * providers.
   */
  register(
    pi: Pick<ExtensionAPI, "registerTool" | "getAllTools">, session: Session, makers: Makers, cwd: string,
  ): Map<OwnTool, string> {
    const others = new Map<OwnTool, string>();
    for (const name of Object.keys(makers) as OwnTool[]) {
      const other = this.isInForce(pi, name) ? undefined : replacedBy(pi, name);
      if (other !== undefined) {
        others.set(name, other);
        continue;
      }
      const definition = makers[name](cwd);
      const parameters = copyOf(definition.parameters);
      this.#parameters.set(name, parameters);
      pi.registerTool({
        ...definition,
        parameters,
        // pi 1.x activates registered tools; the user's choice of default tools must stay in force.
        ...{ defaultActive: false },
        execute: async (callId, params: Parameters, signal, onUpdate, context) => {
          const host = session.host();
          if (host === undefined) return makers[name](context.cwd).execute(callId, params, signal, onUpdate, context);
          if (name === "find") return find(host, callId, context.cwd, params, signal);
          if (name === "grep") return grep(host, callId, context.cwd, params, signal);
          const call = { callId, given: params.path ?? ".", signal };
          const file = new FileCall(host, call);
          try {
            const confined = confinedTool(name, makers, context.cwd, host, file, call, params, this.#times);
            return await confined.execute(callId, params, signal, onUpdate, context);
          } finally {
            await file.close();
          }
        },
      });
    }
    return others;
  }
}

/** Returns operations that run each command in the host. */
export function commandOperations(host: HostClient, callId: string, origin: ExecOrigin): BashOperations {
  return {
    exec: async (script, cwd, { onData, signal, timeout, env }) => {
      // pi recognises these two texts as "aborted" and "timed out".
      if (signal?.aborted) throw new Error("aborted");
      const timeoutMs = timeout === undefined || timeout <= 0 || timeout > LONGEST ? {} : { timeoutMs: Math.ceil(timeout * 1000) };
      const command = { callId, script, cwd, env: environment(withoutGuard(env ?? process.env)), origin, ...timeoutMs };
      let ended;
      try {
        ended = await host.exec(command, onData, signal);
      } catch (error) {
        throw signal?.aborted ? new Error("aborted") : error;
      }
      if (ended.denied !== undefined) throw new Error(refused(ended.denied));
      if (ended.notes.length > 0) onData(Buffer.from(`\n${commandNotes(ended.notes)}`));
      if (signal?.aborted) throw new Error("aborted");
      // The time limit may be the sandbox's if the agent gave none.
      if (ended.timedOutAfterMs !== undefined) throw new Error(`timeout:${ended.timedOutAfterMs / 1000}`);
      return { exitCode: ended.exitCode ?? (ended.signal === undefined ? null : 128 + ended.signal) };
    },
  };
}

/** Returns the operations with a check that refuses the timeouts that pi 1.x refuses, in its words. */
function timed(operations: BashOperations, times: Times): BashOperations {
  if (times === "any") return operations;
  return {
    exec: async (script, cwd, options) => {
      const { timeout } = options;
      if (timeout !== undefined && !(Number.isFinite(timeout) && timeout > 0)) {
        throw new Error("Invalid timeout: must be a finite number of seconds");
      }
      if (timeout !== undefined && timeout > LONGEST) throw new Error(`Invalid timeout: maximum is ${LONGEST} seconds`);
      return await operations.exec(script, cwd, options);
    },
  };
}

function confinedTool(
  name: Exclude<OwnTool, "find" | "grep">, makers: Makers, cwd: string, host: HostClient, file: FileCall,
  call: Call, params: Parameters, times: Times,
): Definition {
  switch (name) {
    case "bash": return makers.bash(cwd, { operations: timed(commandOperations(host, call.callId, "agent"), times) });
    case "ls": return makers.ls(cwd, { operations: listOperations(host, call) });
    case "read": return makers.read(cwd, { operations: file.read() });
    case "write": return makers.write(cwd, { operations: file.write() });
    case "edit": return makers.edit(cwd, { operations: file.edit(params.edits ?? []) });
  }
}

/**
 * Returns the environment for commands. `portcullis pi` removed directories that commands may write from the PATH of pi
 * only, so they are added again.
 */
export function environment(env: NodeJS.ProcessEnv, pi: NodeJS.ProcessEnv = process.env): Record<string, string> {
  const usable = Object.entries(env).filter((entry): entry is [string, string] => entry[1] !== undefined);
  const { [WHOLE_PATH]: _told, ...given } = Object.fromEntries(usable);
  const [path, own, whole] = [given.PATH, pi.PATH, pi[WHOLE_PATH]];
  // pi adds a directory of its own before its PATH.
  if (path === undefined || own === undefined || whole === undefined || !path.endsWith(own)) return given;
  return { ...given, PATH: path.slice(0, path.length - own.length) + whole };
}

/** Returns a copy that differs only in its identity; some schemas store their kind in hidden properties. */
export function copyOf<T extends object>(schema: T): T {
  return Object.create(Object.getPrototypeOf(schema), Object.getOwnPropertyDescriptors(schema)) as T;
}

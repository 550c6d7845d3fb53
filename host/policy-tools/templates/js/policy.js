// Protects files by name, and keeps the agent from publishing.
//
// An example to change: rules (`standing`) hold for tools and commands, verdicts
// (`evaluate`) are for what rules cannot say.

import { abstain, ask, couldRun, definePolicy, deny, denyFile, exact, profile, runs } from "./portcullis/policy.js";

const publishing = ["npm publish", "cargo publish"];
let keep = ["LICENSE"];

export const { lifecycle, evaluator, confinement, outputFilter, orientation } = definePolicy({
  id: "__ID__",
  version: "0.1.0",
  title: "Files that stay, and no publishing",
  handles: ["command"],
  rules: {
    "files.keep": "these files stay as they are",
    "command.publish": "publishing is for people",
    "command.unread": "what may publish is asked for",
  },
  configSchema: {
    type: "object",
    additionalProperties: false,
    properties: { keep: { type: "array", items: { type: "string", minLength: 1 }, default: ["LICENSE"] } },
  },

  configure(config) {
    keep = config.keep ?? ["LICENSE"];
    return keep.flatMap((name, index) =>
      name === "" || name.startsWith("/")
        ? [{ pointer: `/keep/${index}`, message: "write a path below the working directory" }]
        : [],
    );
  },

  standing(context) {
    const [cwd] = context.workspace.roots;
    if (cwd == null) return profile();
    return profile({
      files: keep.map((name, index) =>
        denyFile("files.keep", exact(`${cwd}/${name}`), ["write"], {
          reason: "this file stays as it is",
          setting: `/keep/${index}`,
        }),
      ),
    });
  },

  evaluate(request) {
    if (request.action.tag !== "command") return abstain();
    if (publishing.some((pattern) => runs(request, pattern))) {
      return deny("command.publish", "publishing is for people", {
        hint: "prepare the release and ask the user to publish it",
      });
    }
    if (publishing.some((pattern) => couldRun(request, pattern))) {
      return ask("command.unread", "the command may publish something", "Run it all the same?");
    }
    return abstain();
  },
});

// Protects files by name, and keeps the agent from publishing.
//
// An example to change: rules (`standing`) hold for tools and commands, verdicts
// (`evaluate`) are for what rules cannot say.

import { abstain, ask, deny, definePolicy, denyFile, exact, profile, runs } from "./portcullis/policy.js";

let keep = ["LICENSE"];

export const { lifecycle, evaluator, confinement, outputFilter, orientation } = definePolicy({
  id: "__ID__",
  version: "0.1.0",
  title: "Files that stay, and no publishing",
  handles: ["command"],
  rules: {
    "files.keep": "these files stay as they are",
    "command.publish": "publishing is for people",
    "command.unread": "what cannot be read is asked for",
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
    const { parsed } = request.action.val;
    if (parsed.tag === "err") {
      return ask("command.unread", "the command cannot be read", "Run it all the same?");
    }
    if (runs(parsed.val, ["npm", "publish"]) || runs(parsed.val, ["cargo", "publish"])) {
      return deny("command.publish", "publishing is for people", {
        hint: "prepare the release and ask the user to publish it",
      });
    }
    return abstain();
  },
});

"""Protects files by name, and keeps the agent from publishing.

An example to change: rules (`standing`) hold for tools and commands, verdicts
(`evaluate`) are for what rules cannot say.
"""

from portcullis_policy import (
    Policy, abstain, ask, could_run, deny, deny_file, exact, export, profile, runs,
)


class Example(Policy):
    id = "__ID__"
    version = "0.1.0"
    title = "Files that stay, and no publishing"
    handles = ["command"]
    rules = {
        "files.keep": "these files stay as they are",
        "command.publish": "publishing is for people",
        "command.unread": "what may publish is asked for",
    }
    config_schema = {
        "type": "object",
        "additionalProperties": False,
        "properties": {
            "keep": {"type": "array", "items": {"type": "string", "minLength": 1}, "default": ["LICENSE"]},
        },
    }

    def configure(self, config):
        self.keep = config.get("keep", ["LICENSE"])
        return [
            (f"/keep/{index}", "write a path below the working directory")
            for index, name in enumerate(self.keep)
            if not name or name.startswith("/")
        ]

    def standing(self, context):
        if not context.workspace.roots:
            return profile()
        cwd = context.workspace.roots[0]
        return profile(files=[
            deny_file("files.keep", exact(f"{cwd}/{name}"), "write",
                      reason="this file stays as it is", setting=f"/keep/{index}")
            for index, name in enumerate(self.keep)
        ])

    def command(self, command, request, context):
        publishing = ["npm publish", "cargo publish"]
        if any(runs(request, pattern) for pattern in publishing):
            return deny("command.publish", "publishing is for people",
                        hint="prepare the release and ask the user to publish it")
        if any(could_run(request, pattern) for pattern in publishing):
            return ask("command.unread", "the command may publish something", "Run it all the same?")
        return abstain()


Lifecycle, Evaluator, Confinement, OutputFilter, Orientation = export(Example)

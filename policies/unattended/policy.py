"""Rules for runs without a user: nobody can be asked, so everything has its answer beforehand.

Where a user can be asked, the policy has no opinion. Elsewhere: hosts are named or not reached, nothing that other
people see is done (publishing, pushing, deploying), what cannot be read is not run, and a run that hangs ends.
"""

from portcullis_policy import (
    MAYBE, NO, YES, Policy, abstain, allow_host, deny, deny_file, deny_host, export, limits, matches, named, profile,
)

# The first words of commands that reach other people.
PUBLISHING = [
    "npm publish", "npm unpublish", "npm deprecate", "yarn publish", "yarn npm publish", "pnpm publish",
    "cargo publish", "cargo yank", "gem push", "twine upload", "poetry publish", "uv publish", "hatch publish",
    "mvn deploy", "gradle publish", "dotnet nuget push",
    "docker push", "podman push", "buildah push", "skopeo copy", "helm push",
    "git push", "git send-email", "gh pr merge", "gh pr create", "gh release create", "gh release upload",
    "gh repo delete", "gh workflow run", "glab mr merge", "glab release create",
]
DEPLOYING = [
    "kubectl apply", "kubectl create", "kubectl delete", "kubectl patch", "kubectl replace", "kubectl scale",
    "kubectl exec", "kubectl drain", "helm install", "helm upgrade", "helm uninstall", "terraform apply",
    "terraform destroy", "tofu apply", "tofu destroy", "pulumi up", "pulumi destroy", "ansible-playbook",
    "serverless deploy", "vercel deploy", "netlify deploy", "fly deploy", "heroku", "aws", "gcloud", "az", "doctl",
    "ssh", "scp", "sftp", "rsync", "mail", "sendmail",
]
# Files by which a run would decide about later ones.
AUTOMATION = [
    ".gitlab-ci.yml", ".travis.yml", "Jenkinsfile", "azure-pipelines.yml", "bitbucket-pipelines.yml",
    ".pre-commit-config.yaml",
]
DEFAULTS = {"allowedHosts": [], "tools": [], "commands": [], "wallMinutes": 30, "processes": 512, "outputMib": 16}


class Unattended(Policy):
    id = "portcullis:unattended"
    version = "0.1.0"
    title = "Rules for runs without a user"
    handles = ["command", "tool", "escalation"]
    rules = {
        "unattended.host": "hosts that are named are reached",
        "unattended.unnamed-host": "other hosts are not: nobody can be asked",
        "unattended.automation": "files that start later runs stay as they are",
        "unattended.publish": "what other people see is for people to do",
        "unattended.deploy": "other machines are for people to change",
        "unattended.forbidden": "commands that the configuration forbids",
        "unattended.unread": "what cannot be read is not run",
        "unattended.tool": "only named tools of others are called",
        "unattended.outside": "nothing is run outside the sandbox",
    }
    config_schema = {
        "type": "object",
        "additionalProperties": False,
        "properties": {
            "allowedHosts": {"type": "array", "items": {"type": "string", "minLength": 1}, "default": []},
            "tools": {"type": "array", "items": {"type": "string", "minLength": 1}, "default": []},
            "commands": {"type": "array", "items": {"type": "string", "minLength": 1}, "default": []},
            "wallMinutes": {"type": "integer", "minimum": 1, "maximum": 10080, "default": 30},
            "processes": {"type": "integer", "minimum": 1, "maximum": 100000, "default": 512},
            "outputMib": {"type": "integer", "minimum": 1, "maximum": 4096, "default": 16},
        },
    }

    def configure(self, config):
        values = {**DEFAULTS, **config}
        faults = []
        for key, most in (("wallMinutes", 10080), ("processes", 100000), ("outputMib", 4096)):
            value = values[key]
            if not isinstance(value, int) or isinstance(value, bool) or not 1 <= value <= most:
                faults.append((f"/{key}", f"write a whole number from 1 to {most}"))
        for key in ("allowedHosts", "tools", "commands"):
            if not isinstance(values[key], list):
                faults.append((f"/{key}", "write a list"))
                continue
            for index, entry in enumerate(values[key]):
                if not isinstance(entry, str) or not entry.strip():
                    faults.append((f"/{key}/{index}", "write a text that is not empty"))
                elif key == "allowedHosts" and _host(entry) is None:
                    faults.append((f"/{key}/{index}", "write a host and its ports: `example.com:443`, `*.example.com`"))
        if not faults:
            self.values = values
            self.forbidden = values["commands"]
        return faults

    def standing(self, context):
        if context.interactive:
            return profile()
        hosts = [deny_host("unattended.unnamed-host", "*", reason="this host is not in `allowedHosts`, and nobody can be asked")]
        for index, entry in enumerate(self.values["allowedHosts"]):
            name, ports = _host(entry)
            hosts.append(allow_host("unattended.host", name, *ports, reason="`allowedHosts` names it",
                                    setting=f"/allowedHosts/{index}"))
        files = [
            deny_file("unattended.automation", named(root, name), "write",
                      reason="it would start later runs, and nobody could check it")
            for root in context.workspace.roots for name in AUTOMATION
        ]
        return profile(files=files, network=hosts, limits=limits(
            wall_ms=self.values["wallMinutes"] * 60_000,
            processes=self.values["processes"],
            output_kib=self.values["outputMib"] * 1024,
        ))

    def command(self, command, request, context):
        if context.interactive:
            return abstain()
        found = NO
        for rule, patterns, reason in (
            ("unattended.publish", PUBLISHING, "other people would see it"),
            ("unattended.deploy", DEPLOYING, "it reaches another machine"),
            ("unattended.forbidden", self.forbidden, "the configuration forbids it in runs without a user"),
        ):
            for pattern in patterns:
                match = matches(request, pattern)
                if match == YES:
                    return _no(rule, f"`{pattern}`: {reason}", "leave it to the user, and say what is to be done")
                found = MAYBE if match == MAYBE else found
        if found == MAYBE:
            return _no("unattended.unread", "it may publish or deploy something", "write it in plain words")
        return abstain()

    def tool(self, call, request, context):
        names = (call.name, f"{call.provider}/{call.name}")
        if context.interactive or any(name in self.values["tools"] for name in names):
            return abstain()
        return _no("unattended.tool", "`tools` does not name it, and nobody can be asked", "do without it")

    def escalation(self, command, request, context):
        if context.interactive:
            return abstain()
        return _no("unattended.outside", "nobody could check it", "run it inside the sandbox")

    def brief(self, context):
        if context.interactive:
            return ""
        hosts = ", ".join(self.values["allowedHosts"]) or "none"
        return (
            "Nobody is there to answer questions: what would be asked is refused. Do not publish, push, deploy or "
            f"reach other machines; leave that to the user. Hosts that commands reach: {hosts}. A command ends after "
            f"{self.values['wallMinutes']} minutes."
        )


def _no(rule, reason, hint):
    return deny(rule, reason, hint=hint)


def _host(entry):
    """A host and its ports; none where it is no host."""
    name, colon, ports = entry.strip().lower().rpartition(":")
    if not colon or ":" in name and not name.startswith("["):
        name, ports = entry.strip().lower(), ""
    name = name.strip("[]")
    plain = name.removeprefix("*.")
    numbers = [int(port) if port.isdigit() else 0 for port in ports.split(",")] if ports else []
    is_name = plain and all(character.isalnum() or character in ".-_:/" for character in plain) and plain.isascii()
    if not is_name or "//" in plain or not all(1 <= number <= 65535 for number in numbers):
        return None
    return name, numbers


Lifecycle, Evaluator, Confinement, OutputFilter, Orientation = export(Unattended)

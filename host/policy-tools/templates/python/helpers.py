"""Helpers for policies in Python: a class to derive from, and short ways to write answers."""

import json

from componentize_py_types import Err, Ok
from portcullis_commands import MAYBE, NO, YES, matches_words
from wit_world import exports
from wit_world.exports import confinement as _rules
from wit_world.exports import lifecycle as _lifecycle
from wit_world.imports import types as _t

_KINDS = {
    "file": _t.ActionKinds.FILE,
    "command": _t.ActionKinds.COMMAND,
    "network": _t.ActionKinds.NETWORK,
    "socket": _t.ActionKinds.SOCKET,
    "tool": _t.ActionKinds.TOOL,
    "escalation": _t.ActionKinds.ESCALATION,
    "other": _t.ActionKinds.OTHER,
}
_RIGHTS = {"read": _t.FileRights.READ, "write": _t.FileRights.WRITE, "execute": _t.FileRights.EXECUTE}


def _all(flags, table, empty):
    result = empty
    for name in flags:
        result |= table[name]
    return result


def _cause(rule, reason, setting="", severity="info"):
    return _t.Cause(rule, reason, setting, _t.Severity[severity.upper()])


def abstain():
    return _t.Evaluation(_t.Verdict_Abstain(), _cause("", ""), [])


def allow(rule, reason, obligations=(), **more):
    return _t.Evaluation(_t.Verdict_Allow(_t.Allowance(list(obligations))), _cause(rule, reason, **more), [])


def ask(rule, reason, title, details=None, offers=(), **more):
    """A question; `offers` are the answers that the user can choose, the narrowest first."""
    more.setdefault("severity", "medium")
    question = _t.Question(title, details, list(offers), None)
    return _t.Evaluation(_t.Verdict_Ask(question), _cause(rule, reason, **more), [])


def deny(rule, reason, hint=None, overridable=False, **more):
    more.setdefault("severity", "high")
    return _t.Evaluation(_t.Verdict_Deny(_t.Denial(hint, overridable)), _cause(rule, reason, **more), [])


# Obligations: duties of the host if the action is allowed.

def notify(text):
    """Shows a text to the user."""
    return _t.Obligation_Notify(text)


def advise(text):
    """Shows a text to the model, with the result."""
    return _t.Obligation_Advise(text)


def rewrite_script(script):
    """Runs another script instead; `rewrites = true` under `[capabilities]` in `policy.toml`."""
    return _t.Obligation_RewriteScript(script)


def rewrite_input(value):
    """Calls the tool with another input instead; it needs the same."""
    return _t.Obligation_RewriteInput(json.dumps(value))


def obligation(name, value):
    """An obligation of this host, `host:reserve` for example."""
    return _t.Obligation_Other(_t.Attribute(name, json.dumps(value)))


# Offers of a question; the scope is `once`, `session`, `project` or `user`.

def offer(label, scope="once", lifetime=0):
    """A grant for exactly this request."""
    return _t.GrantOption(label, _t.GrantScope[scope.upper()], _t.GrantPattern_Exact(), lifetime)


def offer_file(label, scope, pattern, *rights, lifetime=0):
    rights = _all(rights, _RIGHTS, _t.FileRights(0))
    grant = _t.GrantPattern_Path(_t.PathPattern(pattern, rights))
    return _t.GrantOption(label, _t.GrantScope[scope.upper()], grant, lifetime)


def offer_host(label, scope, host, *ports, lifetime=0):
    grant = _t.GrantPattern_Network(_t.NetworkPattern(host, _ports(ports)))
    return _t.GrantOption(label, _t.GrantScope[scope.upper()], grant, lifetime)


# Answers about the output of a tool; `output = true` under `[capabilities]`.

def pass_(rule, reason):
    return _t.OutputEvaluation(_t.OutputVerdict_Pass(), _cause(rule, reason))


def replace(rule, reason, blocks):
    """Shows other blocks to the model, of the same number and kinds."""
    return _t.OutputEvaluation(_t.OutputVerdict_Replace(list(blocks)), _cause(rule, reason))


def withhold(rule, reason):
    """Shows only the reason to the model."""
    return _t.OutputEvaluation(_t.OutputVerdict_Withhold(), _cause(rule, reason))


def text(value):
    """A block of text for `replace`."""
    return _t.ContentBlock_Text(value)


def text_of(block):
    """The text of a block; none if it has none."""
    return block.value if isinstance(block, _t.ContentBlock_Text) else None


def exact(path):
    return _t.FilePattern_Exact(path)


def tree(path):
    return _t.FilePattern_Tree(path)


def glob(pattern):
    return _t.FilePattern_Glob(pattern)


def named(below, pattern):
    return _t.FilePattern_Name(_t.NamePattern(below, pattern))


def _file_rule(effect):
    def rule(id, pattern, *rights, conceal=False, condition="", reason="", setting=""):
        rights = _all(rights, _RIGHTS, _t.FileRights(0))
        return _rules.FileRule(id, pattern, rights, effect, conceal, condition, reason, setting)
    return rule


allow_file = _file_rule(_rules.Effect.ALLOW)
ask_file = _file_rule(_rules.Effect.ASK)
deny_file = _file_rule(_rules.Effect.DENY)


def _ports(ports):
    return _t.PortSet_These(list(ports)) if ports else _t.PortSet_Every()


def _host_rule(effect):
    def rule(id, host, *ports, program="*", reason="", setting=""):
        return _rules.NetworkRule(id, _t.NetworkPattern(host, _ports(ports)), program, effect, reason, setting)
    return rule


allow_host = _host_rule(_rules.Effect.ALLOW)
ask_host = _host_rule(_rules.Effect.ASK)
deny_host = _host_rule(_rules.Effect.DENY)


def limits(wall_ms=None, cpu_ms=None, memory_mib=None, processes=None, open_files=None, file_mib=None, output_kib=None):
    return _rules.Limits(wall_ms, cpu_ms, memory_mib, processes, open_files, file_mib, output_kib)


def profile(files=(), network=(), limits=limits()):
    return _rules.Profile(
        files=list(files), network=list(network), budgets=[], sockets=[], ports=[], environment=[],
        variables=[], limits=limits, tracing=_rules.Choice.NO_OPINION, attributes=[],
    )


def matches(request, pattern):
    """How surely a request runs a command that a pattern describes (`git push --force`): `YES`, `MAYBE` or `NO`."""
    if not isinstance(request.action, (_t.Action_Command, _t.Action_Escalation)):
        return NO
    script = Policy.script(request.action.value)
    if script is None:
        return MAYBE
    found = {matches_words(pattern, command.argv) for command in script.commands}
    if script.features & (_t.ScriptFeatures.DYNAMIC | _t.ScriptFeatures.REDEFINITION):
        found.add(MAYBE)
    return next((match for match in (YES, MAYBE) if match in found), NO)


def runs(request, pattern):
    """Whether a request certainly runs a command that a pattern describes."""
    return matches(request, pattern) == YES


def could_run(request, pattern):
    """Whether a request runs, or may run, a command that a pattern describes."""
    return matches(request, pattern) != NO


class Policy:
    """Derive from this, fill in what describes the policy, and override what it has an opinion on."""

    id = ""
    version = ""
    title = ""
    handles = []
    rules = {}
    config_schema = None

    def configure(self, config):
        """Returns a list of `(JSON pointer, message)` for every value that cannot be used."""
        return []

    def standing(self, context):
        return profile()

    def for_command(self, request, context):
        return None

    def inspect(self, output, context):
        return None

    def brief(self, context):
        return ""

    def evaluate(self, request, context):
        """Goes to the method for the kind of action; none of them has an opinion by itself."""
        action = request.action
        if isinstance(action, _t.Action_File):
            return self.file(action.value, request, context)
        if isinstance(action, _t.Action_Command):
            return self.command(action.value, request, context)
        if isinstance(action, _t.Action_Network):
            return self.network(action.value, request, context)
        if isinstance(action, _t.Action_Tool):
            return self.tool(action.value, request, context)
        if isinstance(action, _t.Action_Escalation):
            return self.escalation(action.value, request, context)
        return abstain()

    def file(self, access, request, context):
        return abstain()

    def command(self, command, request, context):
        return abstain()

    def network(self, access, request, context):
        return abstain()

    def tool(self, call, request, context):
        return abstain()

    def escalation(self, command, request, context):
        return abstain()

    @staticmethod
    def script(command):
        """The host's reading of a command; none where it has no certain one."""
        return command.parsed.value if isinstance(command.parsed, Ok) else None


def export(kind):
    """Makes the five classes that the component exports of a policy."""
    policy = kind()

    class Lifecycle(exports.Lifecycle):
        def describe(self):
            rules = [_lifecycle.RuleInfo(id, title, "") for id, title in kind.rules.items()]
            schema = "" if kind.config_schema is None else json.dumps(kind.config_schema)
            handles = _all(kind.handles, _KINDS, _t.ActionKinds(0))
            return _lifecycle.Descriptor(kind.id, kind.version, kind.title, handles, rules, schema)

        def configure(self, config):
            try:
                config = json.loads(config)
                known = (kind.config_schema or {}).get("properties", {})
                faults = [(f"/{key}", "there is no such key") for key in config if key not in known]
                faults = faults or policy.configure(config)
            except (ValueError, TypeError, AttributeError, KeyError) as error:
                faults = [("", str(error))]
            if faults:
                raise Err([_t.ConfigError(pointer, message) for pointer, message in faults])

    class Evaluator(exports.Evaluator):
        def evaluate(self, request, context):
            return policy.evaluate(request, context)

    class Confinement(exports.Confinement):
        def standing(self, context):
            return policy.standing(context)

        def for_command(self, request, context):
            return policy.for_command(request, context)

    class OutputFilter(exports.OutputFilter):
        def inspect(self, output, context):
            answer = policy.inspect(output, context)
            return answer or _t.OutputEvaluation(_t.OutputVerdict_Abstain(), _cause("", ""))

    class Orientation(exports.Orientation):
        def brief(self, context):
            return policy.brief(context)

    return Lifecycle, Evaluator, Confinement, OutputFilter, Orientation

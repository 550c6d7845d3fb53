//! A request that must be asked, put into the host's words, with what may be granted.

use std::path::Path;

use portcullis_decision::grant::{CommandPattern, PathPattern, ToolPattern};
use portcullis_decision::pattern::{FilePattern, HostPattern, NetworkPattern, PortSet};
use portcullis_decision::profile::{FileRight, FileRights};
use portcullis_decision::request::{Action, Endpoint, FileAccess, NetworkAccess, Origin, PathKind, ToolCall};
use portcullis_decision::{Decision, GrantPattern, GrantScope, Request, path_text};

use crate::ask::{Choice, Question};
use crate::executed;
use crate::visible::visible;

/// Keys of the grants for the session, in the order in which they are offered.
const SESSION_KEYS: &str = "sdfghjkl";

/// Longest description of a grant, in characters; clients show labels of up to 200.
const GRANT_TEXT_MAX: usize = 160;

/// Makes the question for `request`, about which `decision` says ask.
pub(crate) fn question(id: u64, call: Option<&str>, request: &Request, decision: &Decision) -> Question {
    let asked = decision.question();
    let quote = asked.map(|question| match &question.details {
        Some(details) => format!("{}\n{}", question.title, details),
        None => question.title.clone(),
    });
    Question {
        id,
        call: call.map(str::to_owned),
        title: title(&request.action),
        subject: visible(&subject(&request.action)),
        asker: asker(request),
        reason: visible(&decision.cause().reason),
        policy: visible(decision.policy()),
        rule: visible(&decision.cause().rule),
        quote: quote.filter(|text| !text.trim().is_empty()).map(|text| visible(&text)),
        choices: choices(request, decision),
        timeout_ms: asked.and_then(|question| question.timeout_ms),
    }
}

fn title(action: &Action) -> String {
    match action {
        Action::File(access) => format!("Allow to {} this path?", access.operation.verb()),
        Action::Command(_) => "Allow to run this command?".to_owned(),
        Action::Escalation(_) => "Run this command once OUTSIDE the sandbox?".to_owned(),
        Action::Network(_) => "Allow this connection?".to_owned(),
        Action::Socket(_) => "Allow to use this socket?".to_owned(),
        Action::Tool(call) => format!("Allow the tool `{}`?", visible(&call.name)),
        Action::Other(other) => format!("Allow this ({})?", visible(&other.kind)),
    }
}

/// What is asked for, as it is used: the canonical path, not the spelling.
fn subject(action: &Action) -> String {
    match action {
        Action::File(access) => access.path.canonical.clone(),
        Action::Command(command) | Action::Escalation(command) => command.script.clone(),
        Action::Network(access) => format!("{}:{}", access.target, access.port),
        Action::Socket(access) => access.path.clone(),
        Action::Tool(call) => format!("{} {}", call.name, call.input),
        Action::Other(other) => other.input.clone(),
    }
}

fn asker(request: &Request) -> String {
    match (&request.action, request.origin) {
        (Action::Network(access), _) if access.process.pid != 0 => {
            format!("{} (pid {})", visible(&access.process.program), access.process.pid)
        }
        (Action::Tool(call), _) => format!("{} ({})", visible(&call.name), visible(&call.provider)),
        (_, Origin::Agent) => "the agent".to_owned(),
        (_, Origin::User) => "you".to_owned(),
        (_, Origin::Extension) => "an extension".to_owned(),
        (_, Origin::Process) => "a command".to_owned(),
    }
}

/// "Once", then what may be granted for the session, narrowest first.
fn choices(request: &Request, decision: &Decision) -> Vec<Choice> {
    let mut choices = vec![Choice {
        key: 'o',
        label: match request.action {
            // A program opens as many connections to a place as it likes; that is one thing to the user.
            Action::Network(_) => "Allow for this command".to_owned(),
            Action::File(_)
            | Action::Command(_)
            | Action::Socket(_)
            | Action::Tool(_)
            | Action::Escalation(_)
            | Action::Other(_) => "Allow once".to_owned(),
        },
        scope: GrantScope::Once,
        pattern: GrantPattern::Exact(Box::new(request.action.clone())),
        lifetime: 0,
    }];
    let of_policy = decision.question().map(|question| question.options.as_slice()).unwrap_or_default();
    let offered = of_policy
        .iter()
        .filter(|option| option.scope == GrantScope::Session && option.pattern.covers(&request.action))
        .map(|option| (option.pattern.clone(), option.lifetime));
    let own = own_patterns(&request.action).into_iter();
    let own = own.filter(|pattern| executed::is_offered(decision, pattern)).map(|pattern| (pattern, 0));
    for (pattern, lifetime) in own.chain(offered) {
        let Some(what) = described(&pattern) else { continue };
        if choices.iter().any(|choice| choice.scope == GrantScope::Session && choice.pattern == pattern) {
            continue;
        }
        // A grant that cannot be read whole before it is given, or has no key of its own, is not offered.
        let Some(key) = SESSION_KEYS.chars().nth(choices.len() - 1) else { break };
        if what.chars().count() > GRANT_TEXT_MAX {
            continue;
        }
        let until = if lifetime == 0 { "this session".to_owned() } else { format!("{lifetime} seconds") };
        choices.push(Choice {
            key,
            label: format!("Allow {what} for {until}"),
            scope: GrantScope::Session,
            pattern,
            lifetime,
        });
    }
    choices
}

/// What the host itself offers to grant for the session.
fn own_patterns(action: &Action) -> Vec<GrantPattern> {
    match action {
        Action::File(access) => path_patterns(access),
        Action::Network(access) => vec![GrantPattern::Network(endpoint_pattern(access))],
        Action::Tool(call) => vec![GrantPattern::Tool(tool_pattern(call))],
        Action::Command(_) | Action::Escalation(_) | Action::Socket(_) | Action::Other(_) => Vec::new(),
    }
}

fn path_patterns(access: &FileAccess) -> Vec<GrantPattern> {
    let Some(path) = path_text::decode(&access.path.canonical) else { return Vec::new() };
    let rights = match access.operation.right() {
        FileRight::Write => FileRights::READ_WRITE,
        FileRight::Read | FileRight::Execute => FileRights::READ,
    };
    let grant = |pattern| GrantPattern::Path(PathPattern { pattern, rights });
    if access.path.kind == PathKind::Directory {
        return vec![grant(FilePattern::Tree(path))];
    }
    let parent = path.parent().filter(|parent| *parent != Path::new("/")).map(Path::to_owned);
    let tree = parent.map(|parent| grant(FilePattern::Tree(parent)));
    [Some(grant(FilePattern::Exact(path))), tree].into_iter().flatten().collect()
}

pub(crate) fn endpoint_pattern(access: &NetworkAccess) -> NetworkPattern {
    let host = match &access.target {
        Endpoint::Domain(name) => HostPattern::Name(name.clone()),
        Endpoint::Address(address) => HostPattern::Block((*address).into()),
    };
    NetworkPattern { host, ports: PortSet::These(vec![access.port]) }
}

fn tool_pattern(call: &ToolCall) -> ToolPattern {
    ToolPattern { name: call.name.clone(), provider: call.provider.clone(), input_equals: Vec::new() }
}

fn runs_others(command: &CommandPattern) -> bool {
    let program = command.argv_prefix.first().map_or("", String::as_str);
    portcullis_shell::is_wrapper(program.rsplit('/').next().unwrap_or_default())
}

/// Spells out what a pattern grants; none for patterns that the host does not offer.
fn described(pattern: &GrantPattern) -> Option<String> {
    match pattern {
        GrantPattern::Path(path) => {
            let verb = if path.rights.write { "reading and writing" } else { "reading" };
            Some(match &path.pattern {
                FilePattern::Exact(exact) => format!("{verb} {}", visible(&path_text::encode(exact))),
                FilePattern::Tree(top) => {
                    format!("{verb} everything below {}", visible(&path_text::encode(top)))
                }
                FilePattern::Glob(_) | FilePattern::Name { .. } => {
                    format!("{verb} {}", visible(&path.pattern.to_string()))
                }
            })
        }
        GrantPattern::Network(network) => Some(format!("connections to {}", visible(&network.to_string()))),
        GrantPattern::Tool(tool) if tool.input_equals.is_empty() => {
            Some(format!("every call of {} ({})", visible(&tool.name), visible(&tool.provider)))
        }
        GrantPattern::Tool(tool) => {
            let inputs: Vec<String> =
                tool.input_equals.iter().map(|(at, value)| format!("{at} = {value}")).collect();
            Some(format!("calls of {} with {}", visible(&tool.name), visible(&inputs.join(", "))))
        }
        // What an interpreter or a wrapper runs next is not what was agreed to.
        GrantPattern::Command(commands) if commands.iter().any(runs_others) => None,
        GrantPattern::Command(commands) => {
            let all: Vec<String> = commands.iter().map(|command| command.argv_prefix.join(" ")).collect();
            Some(format!("the commands {}", visible(&all.join("; "))))
        }
        GrantPattern::Exact(_) => None,
    }
}

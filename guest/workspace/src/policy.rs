//! The answers of the policy.

use portcullis_sdk::{
    Action, ActionKinds, ConfigError, Context, Descriptor, Direction, Effect, Endpoint, Evaluation,
    FileAccess, FileOperation, FilePattern, FileRights, FileRule, GrantOption, GrantScope, NetworkAccess,
    NetworkPattern, Origin, OutputEvaluation, PathKind, Policy, PortSet, Profile, Request, Right, Severity,
    Stage, ToolCall, ToolOutput,
};

use crate::config::{Config, Settings};
use crate::{files, network, rule};

/// The default policy, configured.
#[derive(Debug, Clone, PartialEq)]
pub struct WorkspacePolicy {
    settings: Settings,
    /// The rules on connections, which are independent of the context.
    network: Profile,
}

impl Policy for WorkspacePolicy {
    type Config = Config;

    fn describe() -> Descriptor {
        let descriptor = Descriptor::new(
            "portcullis:workspace",
            env!("CARGO_PKG_VERSION"),
            "The project is free, everything else asks",
        );
        rule::describe(descriptor)
            .handles(ActionKinds::FILE | ActionKinds::COMMAND | ActionKinds::NETWORK)
            .handles(ActionKinds::TOOL | ActionKinds::ESCALATION)
            .config_schema(include_str!("../config.schema.json"))
    }

    fn configure(config: Config) -> Result<Self, Vec<ConfigError>> {
        let settings = Settings::read(config)?;
        let network = Profile { network: network::rules(&settings), ..Profile::new() };
        Ok(Self { settings, network })
    }

    fn evaluate(&self, request: &Request, context: &Context) -> Evaluation {
        match &request.action {
            Action::File(access) => self.file(access, context),
            Action::Command(_) => command(request.origin),
            Action::Network(access) => self.network(access),
            Action::Tool(call) => tool(call),
            Action::Escalation(_) => escalation(),
            Action::Socket(_) | Action::Other(_) => Evaluation::abstain(),
        }
    }

    fn standing(&self, context: &Context) -> Profile {
        Profile { files: files::rules(&self.settings, context), ..self.network.clone() }
    }

    fn inspect(&self, _output: &ToolOutput, _context: &Context) -> OutputEvaluation {
        OutputEvaluation::pass(rule::OUTPUT_PASS, "this policy lets every output through")
    }

    fn brief(&self, context: &Context) -> String {
        let hosts: Vec<String> =
            self.settings.allowed_domains.iter().map(|entry| entry.value.to_string()).collect();
        let hosts = if hosts.is_empty() { "none".to_owned() } else { hosts.join(", ") };
        let rest = if self.settings.strict_allowlist { "is refused" } else { "leads to a question" };
        format!(
            "You work in `{}`; files there can be read and changed. `{}` is a private temporary directory. \
             Elsewhere reading may need the user's consent and changing always does; personal files are hidden \
             from commands. Hosts that can be reached without asking: {hosts}; every other host {rest}.",
            context.cwd(),
            context.machine.temp,
        )
    }
}

impl WorkspacePolicy {
    /// Follows the standing rules. Of the paths and rights of one operation the strictest answer counts; without an
    /// opinion on one of them there is none on the operation.
    fn file(&self, access: &FileAccess, context: &Context) -> Evaluation {
        let profile = Profile { files: files::rules(&self.settings, context), ..Profile::new() };
        let mut answer: Option<&FileRule> = None;
        let mut silent = false;
        for (path, right) in needs(access) {
            match profile.file_rule(path, right) {
                Ok(Some(rule))
                    if answer.is_none_or(|other| strictness(rule.effect) > strictness(other.effect)) =>
                {
                    answer = Some(rule);
                }
                Ok(Some(_)) => {}
                Ok(None) => silent = true,
                Err(error) => return Evaluation::deny(rule::PATTERN_BROKEN, error.to_string()),
            }
        }
        match answer {
            Some(rule) if rule.effect == Effect::Deny => Evaluation::deny(&rule.id, &rule.reason),
            Some(rule) if rule.effect == Effect::Ask => ask_for_file(access, rule),
            // Allowing one path of the operation says nothing about the others.
            Some(rule) if !silent => Evaluation::allow(&rule.id, &rule.reason).setting(&rule.setting),
            Some(_) | None => Evaluation::abstain(),
        }
    }

    fn network(&self, access: &NetworkAccess) -> Evaluation {
        if access.direction == Direction::Listen || access.stage != Stage::Connect {
            return Evaluation::abstain();
        }
        let Some(rule) = self.network.network_rule(&access.target, access.port, &access.process.program)
        else {
            return Evaluation::abstain();
        };
        match rule.effect {
            Effect::Allow => Evaluation::allow(&rule.id, &rule.reason).setting(&rule.setting),
            Effect::Ask => ask_for_host(access, &rule.reason),
            Effect::Deny => Evaluation::deny(&rule.id, &rule.reason)
                .setting(&rule.setting)
                .hint("work without this host, or ask the user to add it to `allowedDomains`"),
        }
    }
}

/// Returns the paths and rights that an operation needs.
fn needs(access: &FileAccess) -> Vec<(&str, Right)> {
    let path = access.path.canonical.as_str();
    match &access.operation {
        FileOperation::Read | FileOperation::List | FileOperation::Search(_) => vec![(path, Right::Read)],
        FileOperation::Edit(_) => vec![(path, Right::Read), (path, Right::Write)],
        FileOperation::Move(other) | FileOperation::Link(other) => {
            let other = other.canonical.as_str();
            vec![(path, Right::Read), (path, Right::Write), (other, Right::Write)]
        }
        FileOperation::Write(_)
        | FileOperation::CreateDirectory
        | FileOperation::Delete
        | FileOperation::Symlink(_)
        | FileOperation::ChangeMetadata => vec![(path, Right::Write)],
        // Its needs are unknown, so it needs everything.
        FileOperation::Other(_) => vec![(path, Right::Read), (path, Right::Write)],
    }
}

fn strictness(effect: Effect) -> u8 {
    match effect {
        Effect::Allow => 0,
        Effect::Ask => 1,
        Effect::Deny => 2,
    }
}

fn ask_for_file(access: &FileAccess, rule: &FileRule) -> Evaluation {
    let path = access.path.canonical.as_str();
    let reads = needs(access).iter().all(|(_, right)| *right == Right::Read);
    let (verb, rights) = if reads { ("read", FileRights::READ) } else { ("change", FileRights::READ_WRITE) };
    let pattern = match access.path.kind {
        PathKind::Directory => FilePattern::tree(path),
        PathKind::Missing | PathKind::File | PathKind::Symlink | PathKind::Other => FilePattern::exact(path),
    };
    let ask = Evaluation::ask(&rule.id, &rule.reason, format!("Let the agent {verb} `{path}`?"))
        .setting(&rule.setting)
        .offer(GrantOption::exact("This once", GrantScope::Once));
    // A grant covers one path; an operation on two asks each time.
    if matches!(access.operation, FileOperation::Move(_) | FileOperation::Link(_)) {
        return ask;
    }
    ask.offer(GrantOption::path(
        format!("{verb} it, this session"),
        GrantScope::Session,
        pattern.clone(),
        rights,
    ))
    .offer(GrantOption::path(
        format!("{verb} it, in this project"),
        GrantScope::Project,
        pattern,
        rights,
    ))
}

fn ask_for_host(access: &NetworkAccess, reason: &str) -> Evaluation {
    let host = match &access.target {
        Endpoint::Domain(name) | Endpoint::Address(name) => name.clone(),
    };
    let target = NetworkPattern { host, ports: PortSet::These(vec![access.port]) };
    let offer =
        |scope, label: &str| GrantOption::network(format!("{target}, {label}"), scope, target.clone());
    Evaluation::ask(rule::NETWORK_UNLISTED, reason, format!("Let commands connect to `{target}`?"))
        .offer(GrantOption::exact("This once", GrantScope::Once))
        .offer(offer(GrantScope::Session, "this session"))
        .offer(offer(GrantScope::Project, "in this project"))
        .offer(offer(GrantScope::User, "in every project"))
}

fn command(origin: Origin) -> Evaluation {
    match origin {
        Origin::User => Evaluation::allow(rule::COMMAND_USER, "you typed it, and it runs in the sandbox"),
        Origin::Agent | Origin::Extension | Origin::Process => Evaluation::allow(
            rule::COMMAND_BOXED,
            "it runs in the sandbox, under the rules on files and hosts",
        ),
    }
}

fn tool(call: &ToolCall) -> Evaluation {
    let (name, provider) = (call.name.as_str(), call.provider.as_str());
    let offer = |scope, label: &str| GrantOption::tool(format!("`{name}`, {label}"), scope, name, provider);
    Evaluation::ask(
        rule::TOOL_UNKNOWN,
        "Portcullis cannot confine a tool of an extension or server",
        format!("Let the agent use the tool `{name}` of `{provider}`?"),
    )
    .offer(GrantOption::exact("This once", GrantScope::Once))
    .offer(offer(GrantScope::Session, "this session"))
    .offer(offer(GrantScope::Project, "in this project"))
}

/// Offers nothing wider than this one run: outside the sandbox no other rule applies.
fn escalation() -> Evaluation {
    Evaluation::ask(
        rule::ESCALATION,
        "it runs with your full rights, unprotected",
        "Run this outside the sandbox?",
    )
    .severity(Severity::High)
    .offer(GrantOption::exact("This once", GrantScope::Once))
}

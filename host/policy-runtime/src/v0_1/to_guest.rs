//! Converts requests and contexts to the types of the contract.

use portcullis_decision::grant::{Grant, GrantPattern, GrantScope};
use portcullis_decision::path_text;
use portcullis_decision::pattern::{FilePattern, NetworkPattern, PortSet};
use portcullis_decision::profile::FileRights;
use portcullis_decision::request::{
    Action, Attribute, Direction, Endpoint, NetworkAccess, Origin, ProcessInfo, Request, Stage, Transport,
};
use portcullis_decision::verdict::{ContentBlock, ToolOutput};
use portcullis_decision::{Context, context};

use super::bindings::portcullis::policy::types as guest;
use super::command;
use super::file::file_access;

pub(super) fn context(context: &Context) -> guest::Context {
    guest::Context {
        session_id: context.session_id.clone(),
        agent: agent(&context.agent),
        workspace: guest::Workspace {
            roots: context.workspace.roots.clone(),
            trusted: context.workspace.trusted,
            vcs: context.workspace.vcs.as_ref().map(vcs),
        },
        machine: machine(&context.machine),
        interactive: context.interactive,
        now: context.now,
        grants: context.grants.iter().map(grant).collect(),
        explain: context.explain,
        attributes: attributes(&context.attributes),
    }
}

fn agent(agent: &context::AgentInfo) -> guest::AgentInfo {
    guest::AgentInfo {
        name: agent.name.clone(),
        version: agent.version.clone(),
        model: agent.model.clone(),
        sub_agent: agent.sub_agent.clone(),
        directory: agent.directory.clone(),
        session_file: agent.session_file.clone(),
    }
}

fn vcs(vcs: &context::Vcs) -> guest::Vcs {
    guest::Vcs {
        kind: vcs.kind.clone(),
        root: vcs.root.clone(),
        branch: vcs.branch.clone(),
        dirty: vcs.dirty,
    }
}

fn machine(machine: &context::Machine) -> guest::Machine {
    guest::Machine {
        os: machine.os.clone(),
        arch: machine.arch.clone(),
        home: machine.home.clone(),
        temp: machine.temp.clone(),
        user: machine.user.clone(),
        uid: machine.uid,
        path: machine.path.clone(),
        toolchains: machine.toolchains.clone(),
    }
}

fn attributes(attributes: &[Attribute]) -> Vec<guest::Attribute> {
    attributes.iter().cloned().map(attribute).collect()
}

fn attribute(Attribute { name, value }: Attribute) -> guest::Attribute {
    guest::Attribute { name, value }
}

pub(super) fn request(request: &Request) -> guest::Request {
    guest::Request {
        id: request.id.clone(),
        parent: request.parent.clone(),
        origin: match request.origin {
            Origin::Agent => guest::Origin::Agent,
            Origin::User => guest::Origin::User,
            Origin::Extension => guest::Origin::Extension,
            Origin::Process => guest::Origin::Process,
        },
        action: action(&request.action),
        attributes: request.facts.iter().map(|fact| attribute(fact.attribute())).collect(),
    }
}

fn action(action: &Action) -> guest::Action {
    match action {
        Action::File(access) => guest::Action::File(file_access(access)),
        Action::Command(execution) => guest::Action::Command(command::execution(execution)),
        Action::Network(access) => guest::Action::Network(network_access(access)),
        Action::Socket(access) => guest::Action::Socket(guest::SocketAccess {
            path: access.path.clone(),
            direction: direction(access.direction),
            process: process(&access.process),
        }),
        Action::Tool(call) => guest::Action::Tool(guest::ToolCall {
            name: call.name.clone(),
            provider: call.provider.clone(),
            input: call.input.clone(),
        }),
        Action::Escalation(execution) => guest::Action::Escalation(command::execution(execution)),
        Action::Other(other) => {
            guest::Action::Other(guest::OtherAction { kind: other.kind.clone(), input: other.input.clone() })
        }
    }
}

fn network_access(access: &NetworkAccess) -> guest::NetworkAccess {
    guest::NetworkAccess {
        transport: match access.transport {
            Transport::Tcp => guest::Transport::Tcp,
            Transport::Udp => guest::Transport::Udp,
            Transport::Other => guest::Transport::Other,
        },
        direction: direction(access.direction),
        target: match &access.target {
            Endpoint::Domain(name) => guest::Endpoint::Domain(name.clone()),
            Endpoint::Address(address) => guest::Endpoint::Address(address.to_string()),
        },
        port: access.port,
        stage: match &access.stage {
            Stage::Connect => guest::Stage::Connect,
            Stage::Resolved(addresses) => guest::Stage::Resolved(addresses.clone()),
            Stage::ClientHello(name) => guest::Stage::ClientHello(name.clone()),
            Stage::Http(head) => guest::Stage::Http(guest::HttpHead {
                method: head.method.clone(),
                url: head.url.clone(),
                header_names: head.header_names.clone(),
            }),
        },
        process: process(&access.process),
    }
}

fn direction(direction: Direction) -> guest::Direction {
    match direction {
        Direction::Outbound => guest::Direction::Outbound,
        Direction::Listen => guest::Direction::Listen,
    }
}

fn process(process: &ProcessInfo) -> guest::ProcessInfo {
    guest::ProcessInfo { pid: process.pid, program: process.program.clone(), argv: process.argv.clone() }
}

fn grant(grant: &Grant) -> guest::Grant {
    guest::Grant {
        scope: match grant.scope {
            GrantScope::Once => guest::GrantScope::Once,
            GrantScope::Session => guest::GrantScope::Session,
            GrantScope::Project => guest::GrantScope::Project,
            GrantScope::User => guest::GrantScope::User,
        },
        pattern: grant_pattern(&grant.pattern),
        granted_at: grant.granted_at,
        expires_at: grant.expires_at,
    }
}

fn grant_pattern(pattern: &GrantPattern) -> guest::GrantPattern {
    match pattern {
        GrantPattern::Exact(_) => guest::GrantPattern::Exact,
        GrantPattern::Path(path) => guest::GrantPattern::Path(guest::PathPattern {
            pattern: file_pattern(&path.pattern),
            rights: file_rights(path.rights),
        }),
        GrantPattern::Command(patterns) => guest::GrantPattern::Command(
            patterns
                .iter()
                .map(|command| guest::CommandPattern {
                    argv_prefix: command.argv_prefix.clone(),
                    open_ended: command.open_ended,
                })
                .collect(),
        ),
        GrantPattern::Network(network) => guest::GrantPattern::Network(network_pattern(network)),
        GrantPattern::Tool(tool) => guest::GrantPattern::Tool(guest::ToolPattern {
            name: tool.name.clone(),
            provider: tool.provider.clone(),
            input_equals: tool.input_equals.clone(),
        }),
    }
}

fn file_pattern(pattern: &FilePattern) -> guest::FilePattern {
    match pattern {
        FilePattern::Exact(path) => guest::FilePattern::Exact(path_text::encode(path)),
        FilePattern::Tree(path) => guest::FilePattern::Tree(path_text::encode(path)),
        FilePattern::Glob(glob) => guest::FilePattern::Glob(glob.as_str().to_owned()),
        FilePattern::Name { below, glob } => guest::FilePattern::Name(guest::NamePattern {
            below: path_text::encode(below),
            glob: glob.as_str().to_owned(),
        }),
    }
}

fn file_rights(rights: FileRights) -> guest::FileRights {
    [
        (rights.read, guest::FileRights::READ),
        (rights.write, guest::FileRights::WRITE),
        (rights.execute, guest::FileRights::EXECUTE),
    ]
    .into_iter()
    .filter(|(is_given, _)| *is_given)
    .fold(guest::FileRights::empty(), |all, (_, right)| all | right)
}

fn network_pattern(pattern: &NetworkPattern) -> guest::NetworkPattern {
    guest::NetworkPattern {
        host: pattern.host.to_string(),
        ports: match &pattern.ports {
            PortSet::Every => guest::PortSet::Every,
            PortSet::These(ports) => guest::PortSet::These(ports.clone()),
        },
    }
}

pub(super) fn tool_output(output: &ToolOutput) -> guest::ToolOutput {
    let block = |block: &ContentBlock| match block {
        ContentBlock::Text(text) => guest::ContentBlock::Text(text.clone()),
        ContentBlock::Image(media_type, size) => guest::ContentBlock::Image((media_type.clone(), *size)),
        ContentBlock::Other(json) => guest::ContentBlock::Other(json.clone()),
    };
    guest::ToolOutput {
        request: request(&output.request),
        is_error: output.is_error,
        truncated: output.truncated,
        content: output.content.iter().map(block).collect(),
    }
}

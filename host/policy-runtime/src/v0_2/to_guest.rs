//! Converts requests and contexts to the types of the contract.

use portcullis_decision::request::{
    Action, Direction, Endpoint, NetworkAccess, Origin, ProcessInfo, Request, Stage, Transport,
};
use portcullis_decision::verdict::{ContentBlock, ToolOutput};
use portcullis_decision::{Context, context};

use super::bindings::portcullis::policy::{facts, network, requests as guest, tools};
use super::command;
use super::fact::{attribute, fact};
use super::file::file_access;
use super::grant::{grant, provider};

pub(super) fn context(context: &Context) -> facts::Context {
    facts::Context {
        session_id: context.session_id.clone(),
        agent: agent(&context.agent),
        workspace: facts::Workspace {
            roots: context.workspace.roots.clone(),
            trusted: context.workspace.trusted,
            vcs: context.workspace.vcs.as_ref().map(vcs),
        },
        machine: machine(&context.machine),
        interactive: context.interactive,
        now: context.now,
        grants: context.grants.iter().map(grant).collect(),
        explain: context.explain,
        attributes: context.attributes.iter().cloned().map(attribute).collect(),
    }
}

fn agent(agent: &context::AgentInfo) -> facts::AgentInfo {
    facts::AgentInfo {
        name: agent.name.clone(),
        version: agent.version.clone(),
        model: agent.model.clone(),
        sub_agent: some(&agent.sub_agent),
        directory: agent.directory.clone(),
        session_file: some(&agent.session_file),
    }
}

fn vcs(vcs: &context::Vcs) -> facts::Vcs {
    facts::Vcs {
        kind: vcs.kind.clone(),
        root: vcs.root.clone(),
        branch: vcs.branch.clone(),
        head: vcs.head.clone(),
        dirty: vcs.dirty,
        remotes: vcs
            .remotes
            .iter()
            .map(|remote| facts::Remote { name: remote.name.clone(), url: remote.url.clone() })
            .collect(),
    }
}

fn machine(machine: &context::Machine) -> facts::Machine {
    facts::Machine {
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

/// Returns the text, unless it is empty.
fn some(text: &str) -> Option<String> {
    (!text.is_empty()).then(|| text.to_owned())
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
        facts: request.facts.iter().map(fact).collect(),
    }
}

fn action(action: &Action) -> guest::Action {
    match action {
        Action::File(access) => guest::Action::File(file_access(access)),
        Action::Command(execution) => guest::Action::Command(command::execution(execution)),
        Action::Network(access) => guest::Action::Network(network_access(access)),
        Action::Tool(call) => guest::Action::Tool(tools::ToolCall {
            name: call.name.clone(),
            provider: provider(&call.provider),
            input: call.input.clone(),
        }),
        Action::Escalation(execution) => guest::Action::Escalation(command::execution(execution)),
        Action::Other(other) => {
            guest::Action::Other(guest::OtherAction { kind: other.kind.clone(), input: other.input.clone() })
        }
        // This host makes no such requests; a log of another one could have them.
        Action::Socket(access) => guest::Action::Other(guest::OtherAction {
            kind: "host:socket".to_owned(),
            input: serde_json::json!({ "path": access.path }).to_string(),
        }),
    }
}

fn network_access(access: &NetworkAccess) -> network::NetworkAccess {
    network::NetworkAccess {
        transport: match access.transport {
            Transport::Tcp => network::Transport::Tcp,
            Transport::Udp => network::Transport::Udp,
            Transport::Other => network::Transport::Other,
        },
        direction: direction(access.direction),
        target: match &access.target {
            Endpoint::Domain(name) => network::Endpoint::Domain(name.clone()),
            Endpoint::Address(address) => network::Endpoint::Address(address.to_string()),
        },
        port: access.port,
        stage: match &access.stage {
            Stage::Connect => network::Stage::Connect,
            Stage::Resolved(addresses) => network::Stage::Resolved(addresses.clone()),
            Stage::ClientHello(name) => network::Stage::ClientHello(some(name)),
            Stage::Http(head) => network::Stage::Http(network::HttpHead {
                method: head.method.clone(),
                url: head.url.clone(),
                header_names: head.header_names.clone(),
            }),
        },
        process: process(&access.process),
    }
}

fn direction(direction: Direction) -> network::Direction {
    match direction {
        Direction::Outbound => network::Direction::Outbound,
        Direction::Listen => network::Direction::Listen,
    }
}

fn process(process: &ProcessInfo) -> network::ProcessInfo {
    network::ProcessInfo {
        pid: Some(process.pid).filter(|pid| *pid != 0),
        program: process.program.clone(),
        argv: process.argv.clone(),
    }
}

pub(super) fn tool_output(output: &ToolOutput) -> guest::ToolOutput {
    let block = |block: &ContentBlock| match block {
        ContentBlock::Text(text) => tools::ContentBlock::Text(text.clone()),
        ContentBlock::Image(media_type, size) => {
            tools::ContentBlock::Image(tools::Image { media_type: media_type.clone(), size: *size })
        }
        ContentBlock::Other(json) => tools::ContentBlock::Other(json.clone()),
    };
    guest::ToolOutput {
        request: request(&output.request),
        is_error: output.is_error,
        truncated: output.truncated,
        content: output.content.iter().map(block).collect(),
    }
}

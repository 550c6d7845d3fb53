//! Trying a policy natively: contexts and requests that are short to write.
//!
//! ```
//! use portcullis_sdk::{Origin, Zone, testing};
//!
//! let context = testing::context("/srv/app");
//! let request = testing::read(&context, "/srv/app/src/main.rs");
//! let portcullis_sdk::Action::File(access) = &request.action else { unreachable!() };
//! assert_eq!((access.path.zone, access.path.relative.as_str()), (Zone::Workspace, "src/main.rs"));
//! ```

use crate::pattern::is_within;
use crate::{
    Action, AgentInfo, CommandExecution, Content, Context, Direction, Endpoint, FileAccess, FileFacts,
    FileOperation, Machine, NetworkAccess, Origin, ParsedScript, PathKind, PathRef, ProcessInfo, Request,
    ScriptFeatures, SimpleCommand, Stage, Text, ToolCall, Transport, Word, Workspace, Zone,
};

/// Returns a context: pi in the given directory, on Linux, for the user `u` with the home directory `/home/u`, with a
/// user present to answer.
pub fn context(cwd: &str) -> Context {
    Context {
        session_id: "test".into(),
        agent: AgentInfo {
            name: "pi".into(),
            version: "0".into(),
            model: None,
            sub_agent: String::new(),
            directory: "/home/u/.pi/agent".into(),
            session_file: String::new(),
        },
        workspace: Workspace { roots: vec![cwd.into()], trusted: true, vcs: None },
        machine: Machine {
            os: "linux".into(),
            arch: "x86-64".into(),
            home: "/home/u".into(),
            temp: "/tmp".into(),
            user: "u".into(),
            uid: 1000,
            path: vec!["/usr/bin".into(), "/bin".into()],
            toolchains: Vec::new(),
        },
        interactive: true,
        now: 0,
        grants: Vec::new(),
        explain: false,
        attributes: Vec::new(),
    }
}

/// Returns a request of the model.
pub fn request(action: Action) -> Request {
    Request { id: "1".into(), parent: None, origin: Origin::Agent, action, attributes: Vec::new() }
}

/// Returns a request to read a file.
pub fn read(context: &Context, path: &str) -> Request {
    file(context, path, FileOperation::Read)
}

/// Returns a request to write a file.
pub fn write(context: &Context, path: &str) -> Request {
    file(context, path, FileOperation::Write(Content::Text(text("x"))))
}

/// Returns a request for any file operation.
pub fn file(context: &Context, path: &str, operation: FileOperation) -> Request {
    let facts = FileFacts { size: 1, links: 1, owner: context.machine.uid, mode: 0o644 };
    request(Action::File(FileAccess { path: path_ref(context, path), operation, facts }))
}

/// Returns a request to run a script. A script of plain words gets the host's analysis; to test the host's analysis of
/// other scripts, use `portcullis policy test`.
pub fn command(context: &Context, script: &str) -> Request {
    request(Action::Command(execution(context, script)))
}

/// Returns a request to run a script outside the sandbox.
pub fn escalation(context: &Context, script: &str) -> Request {
    request(Action::Escalation(execution(context, script)))
}

/// Returns a request of a process in a command to connect; `host` is a name or an address.
pub fn connect(host: &str, port: u16) -> Request {
    let process = ProcessInfo { pid: 2, program: "/usr/bin/curl".into(), argv: vec!["curl".into()] };
    let access = NetworkAccess {
        transport: Transport::Tcp,
        direction: Direction::Outbound,
        target: endpoint(host),
        port,
        stage: Stage::Connect,
        process,
    };
    Request { origin: Origin::Process, parent: Some("0".into()), ..request(Action::Network(access)) }
}

/// Returns a call of a tool; the provider is, for example, `mcp:github`.
pub fn tool(name: &str, provider: &str) -> Request {
    request(Action::Tool(ToolCall { name: name.into(), provider: provider.into(), input: "{}".into() }))
}

/// Returns a path as the host would describe an existing file that is not reached through a link.
pub fn path_ref(context: &Context, path: &str) -> PathRef {
    let (zone, relative) = zone(context, path);
    PathRef {
        given: path.into(),
        absolute: path.into(),
        canonical: path.into(),
        zone,
        relative,
        kind: PathKind::File,
    }
}

/// Returns a host in the form of the contract.
pub fn endpoint(host: &str) -> Endpoint {
    match host.parse::<std::net::IpAddr>() {
        Ok(address) => Endpoint::Address(address.to_canonical().to_string()),
        Err(_) => Endpoint::Domain(host.trim_end_matches('.').to_ascii_lowercase()),
    }
}

/// Returns the innermost zone that contains a path, and the path below its top.
fn zone(context: &Context, path: &str) -> (Zone, String) {
    let agent = std::iter::once((Zone::Agent, context.agent.directory.as_str()));
    let roots = context.workspace.roots.iter().map(|root| (Zone::Workspace, root.as_str()));
    let rest = [(Zone::Temp, context.machine.temp.as_str()), (Zone::Home, context.machine.home.as_str())];
    let innermost = agent
        .chain(roots)
        .chain(rest)
        .filter(|(_, top)| is_within(path, top))
        .max_by_key(|(_, top)| top.split('/').count());
    match innermost {
        Some((zone, top)) => {
            let relative = path.strip_prefix(top).unwrap_or(path).trim_start_matches('/');
            (zone, relative.to_owned())
        }
        None => (Zone::System, path.to_owned()),
    }
}

fn execution(context: &Context, script: &str) -> CommandExecution {
    CommandExecution {
        script: script.into(),
        shell: Some("bash".into()),
        cwd: path_ref(context, context.cwd()),
        parsed: plain_words(script).ok_or_else(|| "only plain words are read natively".into()),
        timeout_ms: None,
        background: false,
    }
}

/// Returns text that was not truncated.
pub fn text(value: &str) -> Text {
    Text { value: value.into(), length: u32::try_from(value.len()).unwrap_or(u32::MAX), truncated: false }
}

/// Returns the analysis of one command without quotes, expansions and operators.
fn plain_words(script: &str) -> Option<ParsedScript> {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b" -_./:,@%+".contains(&byte);
    if script.trim().is_empty() || !script.bytes().all(plain) {
        return None;
    }
    let argv = script.split_whitespace().map(|word| Word { value: word.into(), literal: true }).collect();
    let command = SimpleCommand {
        argv,
        assignments: Vec::new(),
        redirects: Vec::new(),
        joined_by: String::new(),
        parent: None,
        program: None,
    };
    Some(ParsedScript { commands: vec![command], features: ScriptFeatures::empty() })
}

//! Odd but valid questions: every case of every variant, empty and very long values, text that is not ASCII.

use portcullis_decision::Context;
use portcullis_decision::context::{AgentInfo, Machine, Workspace};
use portcullis_decision::request::{
    Action, Attribute, Content, Direction, Endpoint, FileAccess, FileFacts, FileOperation, HttpHead,
    NetworkAccess, Origin, OtherAction, ParsedScript, PathKind, PathRef, ProcessInfo, Request, SearchQuery,
    SocketAccess, Stage, Text, TextEdit, ToolCall, Transport, Zone,
};
use portcullis_decision::verdict::{ContentBlock, ToolOutput};

use crate::question;

/// A question.
pub(super) struct Probe {
    pub(super) name: String,
    pub(super) request: Request,
    /// True if a policy cannot know enough to allow it.
    pub(super) no_allow: bool,
}

/// Returns a context in which every optional list and text is empty.
pub(super) fn empty(context: &Context) -> Context {
    Context {
        agent: AgentInfo::default(),
        workspace: Workspace::default(),
        machine: Machine::default(),
        interactive: false,
        now: u32::MAX,
        explain: true,
        ..context.clone()
    }
}

/// Returns all questions.
pub(super) fn all(context: &Context) -> Vec<Probe> {
    let mut probes = Vec::new();
    let mut add = |name: String, action: Action, no_allow: bool| {
        let odd = Attribute { name: "probe:odd".into(), value: "[null]".into() };
        for origin in [Origin::Agent, Origin::User, Origin::Extension, Origin::Process] {
            let request = Request {
                id: "1".into(),
                parent: Some(String::new()),
                origin,
                action: action.clone(),
                facts: vec![odd.clone().into()],
            };
            probes.push(Probe { name: format!("{name} ({origin:?})"), request, no_allow });
        }
    };
    let long = "x".repeat(60_000);
    let texts = ["", "/", "a", "/tmp/é\u{202e}ß漢", "\\xff\\\\", long.as_str()];
    for text in texts {
        for operation in operations(context, text) {
            let name = format!("{} of `{}`", operation.verb(), shown(text));
            add(name, file(context, text, operation), false);
        }
        let mut command = question::execution(text, context);
        add(format!("the command `{}`", shown(text)), Action::Command(command.clone()), false);
        command.parsed = Err(text.to_owned());
        command.shell = None;
        add("a command without a reading".to_owned(), Action::Command(command.clone()), false);
        command.parsed = Ok(ParsedScript::default());
        add("an escalation".to_owned(), Action::Escalation(command), false);
        let socket = SocketAccess {
            path: text.to_owned(),
            direction: Direction::Outbound,
            process: ProcessInfo::default(),
        };
        add(format!("the socket `{}`", shown(text)), Action::Socket(socket), false);
        let other = OtherAction { kind: format!("probe:{}", shown(text)), input: "[]".into() };
        add("an action of an unknown kind".to_owned(), Action::Other(other), true);
    }
    let label = "x".repeat(63);
    let name = format!("{label}.{label}.{label}.test");
    for host in ["a", "a.test", "xn--bcher-kva.test", name.as_str()] {
        for connection in connections(host) {
            add(format!("a connection to `{}`", shown(host)), Action::Network(connection), false);
        }
    }
    for name in ["a", "mcp__é__\u{202e}", label.as_str()] {
        let tool = ToolCall { name: name.to_owned(), provider: format!("mcp:{name}"), input: "{}".into() };
        add(format!("the tool `{}`", shown(name)), Action::Tool(tool), false);
    }
    probes
}

fn shown(text: &str) -> String {
    text.chars().take(20).collect()
}

fn file(context: &Context, path: &str, operation: FileOperation) -> Action {
    let mut place = question::path_ref(context, path);
    place.kind = PathKind::Missing;
    Action::File(FileAccess { path: place, operation, facts: FileFacts::default() })
}

fn operations(context: &Context, text: &str) -> Vec<FileOperation> {
    let other: PathRef = question::path_ref(context, text);
    let cut = Text { value: text.to_owned(), length: u32::MAX, truncated: true };
    vec![
        FileOperation::Read,
        FileOperation::Write(Content::Text(cut.clone())),
        FileOperation::Write(Content::Binary(u32::MAX)),
        FileOperation::Write(Content::Unknown),
        FileOperation::Edit(vec![TextEdit { old: cut.clone(), new: cut }]),
        FileOperation::Edit(Vec::new()),
        FileOperation::List,
        FileOperation::Search(SearchQuery { pattern: text.to_owned(), glob: None }),
        FileOperation::CreateDirectory,
        FileOperation::Delete,
        FileOperation::Move(other.clone()),
        FileOperation::Link(PathRef { zone: Zone::System, ..other }),
        FileOperation::Symlink(text.to_owned()),
        FileOperation::ChangeMetadata,
        FileOperation::Other("probe".into()),
    ]
}

fn connections(text: &str) -> Vec<NetworkAccess> {
    let access = |transport, direction, target, stage| NetworkAccess {
        transport,
        direction,
        target,
        port: u16::MAX,
        stage,
        process: ProcessInfo { pid: 0, program: text.to_owned(), argv: Vec::new() },
    };
    let name = Endpoint::Domain(text.to_owned());
    let address = Endpoint::Address(std::net::Ipv6Addr::UNSPECIFIED.into());
    let head = HttpHead { method: text.to_owned(), url: text.to_owned(), header_names: Vec::new() };
    vec![
        access(Transport::Tcp, Direction::Outbound, name.clone(), Stage::Connect),
        access(Transport::Udp, Direction::Listen, address.clone(), Stage::Resolved(Vec::new())),
        access(Transport::Other, Direction::Outbound, address, Stage::ClientHello(text.to_owned())),
        access(Transport::Tcp, Direction::Outbound, name, Stage::Http(head)),
    ]
}

/// Returns outputs of tools.
pub(super) fn outputs(context: &Context) -> Vec<ToolOutput> {
    let long = "password=hunter2 ".repeat(4_000);
    let blocks = [
        Vec::new(),
        vec![ContentBlock::Text(String::new()), ContentBlock::Image(String::new(), u32::MAX)],
        vec![ContentBlock::Text(long), ContentBlock::Other("null".into())],
    ];
    let requests = all(context).into_iter().step_by(40).map(|probe| probe.request);
    requests
        .flat_map(|request| {
            blocks.clone().map(|content| ToolOutput {
                request: request.clone(),
                is_error: true,
                truncated: true,
                content,
            })
        })
        .collect()
}

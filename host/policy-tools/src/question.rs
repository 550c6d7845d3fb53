//! Converts questions of cases into requests, as the host would put them.

use std::path::Path;

use portcullis_decision::pattern::HostName;
use portcullis_decision::request::{
    Action, Attribute, CommandExecution, Content, Direction, FileAccess, FileFacts, FileOperation,
    NetworkAccess, Origin, PathKind, PathRef, ProcessInfo, Request, SearchQuery, Stage, Text, TextEdit,
    ToolCall, Transport, Zone,
};
use portcullis_decision::{Context, Fact, context};
use portcullis_sdk::Right;
use portcullis_sdk::cases::{Case, Connection, Given, Operation, Question};

/// Returns the context of a case.
pub(crate) fn context(given: &Given) -> Context {
    Context {
        session_id: "test".into(),
        agent: context::AgentInfo {
            name: "pi".into(),
            version: "0".into(),
            sub_agent: given.sub_agent.clone(),
            directory: given.agent_directory.clone(),
            ..context::AgentInfo::default()
        },
        workspace: context::Workspace { roots: vec![given.cwd.clone()], trusted: true, vcs: vcs(given) },
        machine: context::Machine {
            os: "linux".into(),
            arch: "x86-64".into(),
            home: given.home.clone(),
            temp: given.temp.clone(),
            user: "u".into(),
            uid: 1000,
            path: given.path.clone(),
            toolchains: given.toolchains.clone(),
        },
        interactive: given.interactive,
        now: 0,
        grants: Vec::new(),
        explain: false,
        attributes: Vec::new(),
    }
}

/// Returns the repository of a case, of which only the branch is given.
fn vcs(given: &Given) -> Option<context::Vcs> {
    given.branch.clone().map(|branch| context::Vcs {
        kind: "git".into(),
        root: given.cwd.clone(),
        branch: Some(branch),
        head: None,
        dirty: None,
        remotes: Vec::new(),
    })
}

/// Returns the request of a question.
///
/// # Errors
/// If it is no question about a request, or the host of a connection is invalid.
pub fn request_of(question: Question, context: &Context) -> Result<Request, String> {
    let expected = portcullis_sdk::cases::Expected::Refused(Vec::new());
    let case = Case { name: String::new(), given: Given::plain(), question, expected };
    request(&case, context)?.ok_or_else(|| "this is no question about one request".to_owned())
}

/// Returns the request of a case for `evaluate`; `None` for other cases.
///
/// # Errors
/// If the host of a connection is invalid.
pub(crate) fn request(case: &Case, context: &Context) -> Result<Option<Request>, String> {
    let Some(action) = action(&case.question, context)? else { return Ok(None) };
    let (origin, parent) = match &case.question {
        Question::Command { origin: portcullis_sdk::Origin::User, .. } => (Origin::User, None),
        Question::Connect(_) => (Origin::Process, Some("0".to_owned())),
        Question::File { .. }
        | Question::Command { .. }
        | Question::Escalation { .. }
        | Question::Tool { .. }
        | Question::Output { .. }
        | Question::StandingFile { .. }
        | Question::StandingConnect(_)
        | Question::Configure => (Origin::Agent, None),
    };
    Ok(Some(Request { parent, origin, ..plain(action, &case.given) }))
}

/// Returns the request that a case is about: for a case on the session's standing rules, that of a tool or of a
/// connection.
pub(crate) fn concerned(case: &Case, context: &Context) -> Result<Option<Request>, String> {
    if case.given.during.is_some() {
        return request(case, context);
    }
    let action = match &case.question {
        Question::StandingFile { path, right: Right::Read } => file(context, path, FileOperation::Read),
        Question::StandingFile { path, right: Right::Write } => {
            file(context, path, FileOperation::Write(Content::Text(Text::cut("x"))))
        }
        Question::StandingConnect(connection) => Action::Network(network(connection)?),
        // No tool executes files.
        Question::StandingFile { right: Right::Execute, .. }
        | Question::File { .. }
        | Question::Command { .. }
        | Question::Escalation { .. }
        | Question::Connect(_)
        | Question::Tool { .. }
        | Question::Output { .. }
        | Question::Configure => return request(case, context),
    };
    Ok(Some(plain(action, &case.given)))
}

fn file(context: &Context, path: &str, operation: FileOperation) -> Action {
    let facts = FileFacts { size: 1, links: 1, owner: 1000, mode: 0o644 };
    Action::File(FileAccess { path: path_ref(context, path), operation, facts })
}

/// Returns the request of the command for which rules are requested; `None` if they are for the session.
pub(crate) fn during(given: &Given, context: &Context) -> Option<Request> {
    let script = given.during.as_deref()?;
    Some(plain(Action::Command(execution(script, context)), given))
}

/// Returns the request of a tool whose output is inspected.
pub(crate) fn tool(name: &str, given: &Given) -> Request {
    let call = ToolCall { name: name.to_owned(), provider: "builtin".into(), input: "{}".into() };
    plain(Action::Tool(call), given)
}

fn plain(action: Action, given: &Given) -> Request {
    let fact = |known: &portcullis_sdk::Attribute| {
        Fact::from(Attribute { name: known.name.clone(), value: known.value.clone() })
    };
    let facts = given.attributes.iter().map(fact).collect();
    Request { id: "1".into(), parent: None, origin: Origin::Agent, action, facts }
}

fn action(question: &Question, context: &Context) -> Result<Option<Action>, String> {
    Ok(Some(match question {
        Question::File { operation, path, canonical, directory, content } => {
            let mut place = path_ref(context, canonical);
            place.given.clone_from(path);
            place.absolute.clone_from(path);
            place.kind = if *directory { PathKind::Directory } else { PathKind::File };
            let facts = FileFacts { size: 1, links: 1, owner: 1000, mode: 0o644 };
            Action::File(FileAccess { path: place, operation: file_operation(*operation, content), facts })
        }
        Question::Command { script, .. } => Action::Command(execution(script, context)),
        Question::Escalation { script } => Action::Escalation(execution(script, context)),
        Question::Connect(connection) => Action::Network(network(connection)?),
        Question::Tool { name, provider, input } => {
            Action::Tool(ToolCall { name: name.clone(), provider: provider.clone(), input: input.clone() })
        }
        Question::StandingFile { .. }
        | Question::StandingConnect(_)
        | Question::Output { .. }
        | Question::Configure => {
            return Ok(None);
        }
    }))
}

/// Returns a command as the host parses it, but without lookups on the disk.
pub(crate) fn execution(script: &str, context: &Context) -> CommandExecution {
    let cwd = context.workspace.roots.first().map(String::as_str).unwrap_or_default();
    CommandExecution {
        script: script.to_owned(),
        shell: Some("bash".into()),
        cwd: path_ref(context, cwd),
        parsed: portcullis_shell::read(script).map_err(|error| error.to_string()),
        timeout_ms: None,
        background: false,
    }
}

pub(crate) fn network(connection: &Connection) -> Result<NetworkAccess, String> {
    let Connection { host, port, program } = connection;
    Ok(NetworkAccess {
        transport: Transport::Tcp,
        direction: Direction::Outbound,
        target: HostName::parse(host).map_err(|error| error.to_string())?,
        port: *port,
        stage: Stage::Connect,
        process: ProcessInfo { pid: 2, program: program.clone(), argv: vec![program.clone()] },
    })
}

fn file_operation(operation: Operation, content: &str) -> FileOperation {
    match operation {
        Operation::Read => FileOperation::Read,
        Operation::Write => FileOperation::Write(Content::Text(Text::cut(content))),
        Operation::Edit => {
            FileOperation::Edit(vec![TextEdit { old: Text::cut(""), new: Text::cut(content) }])
        }
        Operation::List => FileOperation::List,
        Operation::Search => FileOperation::Search(SearchQuery { pattern: "x".into(), glob: None }),
        Operation::Delete => FileOperation::Delete,
        Operation::CreateDirectory => FileOperation::CreateDirectory,
    }
}

/// Returns an existing file as the host describes it, with the innermost zone that contains it.
pub(crate) fn path_ref(context: &Context, path: &str) -> PathRef {
    let root = context.workspace.roots.first().map(String::as_str).unwrap_or_default();
    let innermost = [
        (Zone::Agent, context.agent.directory.as_str()),
        (Zone::Workspace, root),
        (Zone::Temp, &context.machine.temp),
        (Zone::Home, &context.machine.home),
    ]
    .into_iter()
    .filter_map(|(zone, top)| Some((zone, top, Path::new(path).strip_prefix(top).ok()?)))
    .max_by_key(|(_, top, _)| Path::new(top).components().count());
    let (zone, relative) = match innermost {
        Some((zone, _, rest)) => (zone, rest.to_string_lossy().into_owned()),
        None => (Zone::System, path.to_owned()),
    };
    PathRef {
        given: path.into(),
        absolute: path.into(),
        canonical: path.into(),
        zone,
        relative,
        kind: PathKind::File,
    }
}

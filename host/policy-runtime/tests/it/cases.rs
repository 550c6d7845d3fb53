//! The cases of the default policy, put to its component. The policy's own tests
//! run the same files natively, so both agree.

use std::collections::BTreeMap;
use std::path::Path;

use portcullis_decision::pattern::HostName;
use portcullis_decision::profile::{FileRight, Profile};
use portcullis_decision::request::{
    Action, CommandExecution, Content, Direction, FileAccess, FileFacts, FileOperation, NetworkAccess,
    Origin, PathKind, PathRef, ProcessInfo, Request, SearchQuery, Stage, Text, ToolCall, Transport, Zone,
};
use portcullis_decision::verdict::{Effect, Verdict};
use portcullis_decision::{Context, Policy, context};
use portcullis_policy_runtime::{CachePlace, ComponentPolicy, Limits, LoadError, Runtime};
use portcullis_sdk::cases::{self, Answer, Case, Connection, Given, Operation, Question};

use crate::guests::workspace_policy;

#[test]
fn the_component_answers_its_cases() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../policies/workspace/tests");
    let runtime = Runtime::new(Limits::default(), &CachePlace::None).unwrap();
    let component = workspace_policy();
    let mut loaded: BTreeMap<String, Result<ComponentPolicy, LoadError>> = BTreeMap::new();
    let (mut run, mut failures) = (0, Vec::new());
    for entry in std::fs::read_dir(folder).unwrap() {
        for case in cases::read(&std::fs::read_to_string(entry.unwrap().path()).unwrap()).unwrap() {
            let configuration = case.given.config.clone();
            let policy = loaded
                .entry(configuration)
                .or_insert_with_key(|configuration| runtime.load("workspace", &component, configuration));
            failures.extend(case.check(&answer(policy, &case)).err());
            run += 1;
        }
    }
    assert!(run > 50, "only {run} cases");
    assert_eq!(failures, Vec::<String>::new());
}

fn answer(policy: &Result<ComponentPolicy, LoadError>, case: &Case) -> Answer {
    let policy = match (policy, &case.question) {
        (Ok(_), Question::Configure) => return Answer::Configured(Vec::new()),
        (Err(LoadError::Configuration { errors }), Question::Configure) => {
            return Answer::Configured(errors.iter().map(|error| error.pointer.clone()).collect());
        }
        (Ok(policy), _) => policy,
        (Err(error), _) => panic!("`{}`: {error}", case.name),
    };
    let context = context_of(&case.given);
    if let Some(action) = action(&case.question, &context) {
        let (origin, parent) = match &case.question {
            Question::Command { origin: portcullis_sdk::Origin::User, .. } => (Origin::User, None),
            Question::Connect(_) => (Origin::Process, Some("0".to_owned())),
            _ => (Origin::Agent, None),
        };
        let request = Request { id: "1".into(), parent, origin, action, attributes: Vec::new() };
        let evaluation = policy.evaluate(&request, &context).unwrap();
        let effect = match evaluation.verdict {
            Verdict::Abstain => "abstain",
            Verdict::Allow(_) => "allow",
            Verdict::Ask(_) => "ask",
            Verdict::Deny(_) => "deny",
        };
        return Answer::Effect { effect, rule: evaluation.cause.rule };
    }
    standing(&policy.standing(&context).unwrap().unwrap(), &case.question)
}

/// The last rule that matches answers.
fn standing(profile: &Profile, question: &Question) -> Answer {
    let found = match question {
        Question::StandingFile { path, right } => {
            let right = match right {
                portcullis_sdk::Right::Read => FileRight::Read,
                portcullis_sdk::Right::Write => FileRight::Write,
                portcullis_sdk::Right::Execute => FileRight::Execute,
            };
            let holds = |rule: &&portcullis_decision::profile::FileRule| {
                rule.rights.contains(right) && rule.pattern.matcher().matches(Path::new(path))
            };
            profile.files.iter().rfind(holds).map(|rule| (rule.effect, rule.id.clone()))
        }
        Question::StandingConnect(Connection { host, port, program }) => {
            let host = HostName::parse(host).unwrap();
            let last = program.rsplit('/').next().unwrap();
            let holds = |rule: &&portcullis_decision::profile::NetworkRule| {
                ["*", program, last].contains(&rule.program.as_str()) && rule.target.matches(&host, *port)
            };
            profile.network.iter().rfind(holds).map(|rule| (rule.effect, rule.id.clone()))
        }
        other => panic!("{other:?}"),
    };
    match found {
        Some((Effect::Allow, rule)) => Answer::Effect { effect: "allow", rule },
        Some((Effect::Ask, rule)) => Answer::Effect { effect: "ask", rule },
        Some((Effect::Deny, rule)) => Answer::Effect { effect: "deny", rule },
        None => Answer::Effect { effect: "none", rule: String::new() },
    }
}

fn context_of(given: &Given) -> Context {
    Context {
        session_id: "test".into(),
        agent: context::AgentInfo {
            name: "pi".into(),
            version: "0".into(),
            directory: given.agent_directory.clone(),
            ..context::AgentInfo::default()
        },
        workspace: context::Workspace { roots: vec![given.cwd.clone()], trusted: true, vcs: None },
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

/// What is asked of `evaluate`; none: it is a question to the standing rules.
fn action(question: &Question, context: &Context) -> Option<Action> {
    let cwd = context.workspace.roots.first().map(String::as_str).unwrap_or_default();
    let execution = |script: &String| CommandExecution {
        script: script.clone(),
        shell: Some("bash".into()),
        cwd: path_ref(context, cwd),
        parsed: Err("not parsed in this test".into()),
        timeout_ms: None,
        background: false,
    };
    Some(match question {
        Question::File { operation, path, canonical, directory } => {
            let mut place = path_ref(context, canonical);
            place.given.clone_from(path);
            place.absolute.clone_from(path);
            place.kind = if *directory { PathKind::Directory } else { PathKind::File };
            let facts = FileFacts { size: 1, links: 1, owner: 1000, mode: 0o644 };
            Action::File(FileAccess { path: place, operation: file_operation(*operation), facts })
        }
        Question::Command { script, .. } => Action::Command(execution(script)),
        Question::Escalation { script } => Action::Escalation(execution(script)),
        Question::Connect(Connection { host, port, program }) => Action::Network(NetworkAccess {
            transport: Transport::Tcp,
            direction: Direction::Outbound,
            target: HostName::parse(host).unwrap(),
            port: *port,
            stage: Stage::Connect,
            process: ProcessInfo { pid: 2, program: program.clone(), argv: vec!["curl".into()] },
        }),
        Question::Tool { name, provider } => {
            Action::Tool(ToolCall { name: name.clone(), provider: provider.clone(), input: "{}".into() })
        }
        Question::StandingFile { .. } | Question::StandingConnect(_) | Question::Configure => return None,
    })
}

fn file_operation(operation: Operation) -> FileOperation {
    match operation {
        Operation::Read => FileOperation::Read,
        Operation::Write => FileOperation::Write(Content::Text(Text::cut("x"))),
        Operation::Edit => FileOperation::Edit(Vec::new()),
        Operation::List => FileOperation::List,
        Operation::Search => FileOperation::Search(SearchQuery { pattern: "x".into(), glob: None }),
        Operation::Delete => FileOperation::Delete,
        Operation::CreateDirectory => FileOperation::CreateDirectory,
    }
}

/// As the host would describe an existing file: the innermost zone that holds it.
fn path_ref(context: &Context, path: &str) -> PathRef {
    let root = context.workspace.roots.first().map(String::as_str).unwrap_or_default();
    let innermost = [
        (Zone::Agent, context.agent.directory.as_str()),
        (Zone::Workspace, root),
        (Zone::Temp, &context.machine.temp),
        (Zone::Home, &context.machine.home),
    ]
    .into_iter()
    .filter(|(_, top)| Path::new(path).starts_with(top))
    .max_by_key(|(_, top)| Path::new(top).components().count());
    let (zone, relative) = match innermost {
        Some((zone, top)) => {
            let rest = Path::new(path).strip_prefix(top).unwrap();
            (zone, rest.to_str().unwrap().to_owned())
        }
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

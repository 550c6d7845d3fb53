//! The default policy in native code, and as the shipped component.

use portcullis_decision::context::{AgentInfo, Machine, Workspace};
use portcullis_decision::pattern::HostName;
use portcullis_decision::request::{
    Action, Content, Direction, FileAccess, FileFacts, FileOperation, NetworkAccess, Origin, PathKind,
    PathRef, ProcessInfo, Request, Stage, Text, Transport, Zone,
};
use portcullis_decision::verdict::{Evaluation, Verdict};
use portcullis_decision::{Context, Policy as _};
use portcullis_policy_runtime::{CachePlace, Compiler, ComponentPolicy, Limits, PolicyCopy, Runtime, read_component};
use portcullis_sdk::{Policy as _, testing};
use portcullis_workspace::{Config, WorkspacePolicy};

use crate::rules::{Ask, PROJECT, Rules, TEMP};

const COMPONENT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../policies/workspace/policy.wasm");

/// Both forms of the policy, with the same configuration.
pub struct Policy {
    native: WorkspacePolicy,
    native_context: portcullis_sdk::Context,
    component: ComponentPolicy,
    context: Context,
}

impl Policy {
    pub fn load(rules: &Rules) -> Self {
        let configuration = rules.configuration();
        let config: Config = serde_json::from_value(configuration.clone()).expect("a configuration");
        let runtime = Runtime::new(Limits::default(), &CachePlace::None, Compiler::InProcess).expect("an engine");
        let component = read_component(COMPONENT.as_ref()).expect("the default policy");
        Self {
            native: WorkspacePolicy::configure(config).expect("a configuration that is taken"),
            native_context: testing::context(PROJECT),
            component: runtime.load("workspace", &component, &configuration.to_string()).expect("a policy"),
            context: context(),
        }
    }

    pub fn native_request(&self, ask: &Ask) -> portcullis_sdk::Request {
        match ask {
            Ask::Read(path) => testing::read(&self.native_context, path),
            Ask::Change(path) => testing::write(&self.native_context, path),
            Ask::Connect(host, port) => testing::connect(host, *port),
        }
    }

    pub fn native(&self, request: &portcullis_sdk::Request) -> bool {
        let evaluation = self.native.evaluate(request, &self.native_context);
        matches!(evaluation.verdict, portcullis_sdk::Verdict::Allow(_))
    }

    pub fn request(&self, ask: &Ask) -> Request {
        let (origin, action) = match ask {
            Ask::Read(path) => (Origin::Agent, file(path, FileOperation::Read)),
            Ask::Change(path) => {
                (Origin::Agent, file(path, FileOperation::Write(Content::Text(Text::cut("x")))))
            }
            Ask::Connect(host, port) => (Origin::Process, connection(host, *port)),
        };
        Request { id: "1".into(), parent: None, origin, action, facts: Vec::new() }
    }

    /// Answers in a fresh copy of the configured instance, as the host does.
    pub fn answer(&self, request: &Request) -> Evaluation {
        self.component.evaluate(request, &self.context).expect("an answer")
    }

    pub fn again(&self) -> PolicyCopy<'_> {
        self.component.copy().expect("a copy")
    }

    /// Answers in a reused copy.
    pub fn answer_again(&self, copy: &mut PolicyCopy<'_>, request: &Request) -> Evaluation {
        copy.evaluate(request, &self.context).expect("an answer")
    }
}

pub fn allows(evaluation: &Evaluation) -> bool {
    matches!(evaluation.verdict, Verdict::Allow(_))
}

fn file(path: &str, operation: FileOperation) -> Action {
    let path = PathRef {
        given: path.into(),
        absolute: path.into(),
        canonical: path.into(),
        zone: Zone::System,
        relative: path.into(),
        kind: PathKind::File,
    };
    let facts = FileFacts { size: 1, links: 1, owner: 1000, mode: 0o644 };
    Action::File(FileAccess { path, operation, facts })
}

fn connection(host: &str, port: u16) -> Action {
    Action::Network(NetworkAccess {
        transport: Transport::Tcp,
        direction: Direction::Outbound,
        target: HostName::parse(host).expect("a host"),
        port,
        stage: Stage::Connect,
        process: ProcessInfo { pid: 2, program: "/usr/bin/curl".into(), argv: vec!["curl".into()] },
    })
}

/// The same context that `testing::context` gives the native policy.
fn context() -> Context {
    Context {
        session_id: "test".into(),
        agent: AgentInfo {
            name: "pi".into(),
            version: "0".into(),
            directory: "/home/u/.pi/agent".into(),
            ..AgentInfo::default()
        },
        workspace: Workspace { roots: vec![PROJECT.into()], trusted: true, vcs: None },
        machine: Machine {
            os: "linux".into(),
            arch: "x86-64".into(),
            home: "/home/u".into(),
            temp: TEMP.into(),
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

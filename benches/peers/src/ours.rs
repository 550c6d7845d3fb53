//! The default policy: natively, in an instance that is used again, and in a fresh copy for every decision.

use portcullis_decision::request::{
    Action, Content, FileAccess, FileFacts, FileOperation, Origin, PathKind, PathRef, Request, Zone,
};
use portcullis_decision::{Context, Policy as _, Verdict, context};
use portcullis_policy_runtime::{
    CachePlace, ComponentPolicy, Limits, PolicyCopy, Runtime, read_component,
};
use portcullis_sdk::{Policy as _, testing};
use portcullis_workspace::WorkspacePolicy;
use serde_json::{Value, json};

use crate::{Engine, Question, Rules};

const POLICY: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../policies/workspace/policy.wasm");

fn configuration(rules: &Rules) -> Value {
    let trees = |list: &[String]| list.iter().map(|place| json!({ "tree": place })).collect::<Vec<_>>();
    json!({ "allowRead": trees(&rules.read), "allowWrite": trees(&rules.write), "allowedDomains": [] })
}

pub(crate) fn load(rules: &Rules) -> ComponentPolicy {
    let runtime = Runtime::new(Limits::default(), &CachePlace::None).expect("an engine");
    let component = read_component(POLICY.as_ref()).expect("the default policy");
    runtime.load("workspace", &component, &configuration(rules).to_string()).expect("a policy")
}

pub(crate) struct Native {
    policy: WorkspacePolicy,
    context: portcullis_sdk::Context,
}

impl Native {
    pub(crate) fn new(rules: &Rules) -> Self {
        let config = serde_json::from_value(configuration(rules)).expect("a configuration");
        let policy = WorkspacePolicy::configure(config).expect("a configuration that is taken");
        Self { policy, context: testing::context("/nowhere") }
    }
}

impl Engine for Native {
    fn allows(&mut self, question: Question<'_>) -> bool {
        let make = if question.write { testing::write } else { testing::read };
        let request = make(&self.context, question.path);
        let answer = self.policy.evaluate(&request, &self.context);
        matches!(answer.verdict, portcullis_sdk::Verdict::Allow(_))
    }
}

pub(crate) struct Copy<'a> {
    copy: PolicyCopy<'a>,
    context: Context,
}

impl<'a> Copy<'a> {
    pub(crate) fn new(policy: &'a ComponentPolicy) -> Self {
        Self { copy: policy.copy().expect("a copy"), context: context_of_host() }
    }
}

impl Engine for Copy<'_> {
    fn allows(&mut self, question: Question<'_>) -> bool {
        let answer = self.copy.evaluate(&request(question), &self.context).expect("an answer");
        matches!(answer.verdict, Verdict::Allow(_))
    }
}

pub(crate) struct Fresh<'a> {
    policy: &'a ComponentPolicy,
    context: Context,
}

impl<'a> Fresh<'a> {
    pub(crate) fn new(policy: &'a ComponentPolicy) -> Self {
        Self { policy, context: context_of_host() }
    }
}

impl Engine for Fresh<'_> {
    fn allows(&mut self, question: Question<'_>) -> bool {
        let answer = self.policy.evaluate(&request(question), &self.context).expect("an answer");
        matches!(answer.verdict, Verdict::Allow(_))
    }
}

fn request(question: Question<'_>) -> Request {
    let path = PathRef {
        given: question.path.into(),
        absolute: question.path.into(),
        canonical: question.path.into(),
        zone: Zone::System,
        relative: question.path.into(),
        kind: PathKind::File,
    };
    let operation =
        if question.write { FileOperation::Write(Content::Unknown) } else { FileOperation::Read };
    let facts = FileFacts { size: 1, links: 1, owner: 1000, mode: 0o644 };
    Request {
        id: "1".into(),
        parent: None,
        origin: Origin::Agent,
        action: Action::File(FileAccess { path, operation, facts }),
        attributes: Vec::new(),
    }
}

fn context_of_host() -> Context {
    Context {
        session_id: "session".into(),
        agent: context::AgentInfo::default(),
        workspace: context::Workspace { roots: vec!["/nowhere".into()], trusted: true, vcs: None },
        machine: context::Machine::default(),
        interactive: true,
        now: 0,
        grants: Vec::new(),
        explain: false,
        attributes: Vec::new(),
    }
}

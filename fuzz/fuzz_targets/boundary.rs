//! Component in, verdict out. `cargo +nightly fuzz run boundary`, with the components of `tests/golden/0.1.0` as corpus.

#![no_main]

use std::sync::{Arc, LazyLock};

use libfuzzer_sys::fuzz_target;
use portcullis_decision::request::{
    Action, FileAccess, FileFacts, FileOperation, Origin, PathKind, PathRef, Request, Zone,
};
use portcullis_decision::{Base, Chain, Context, Effect, Member, Mode, Policy as _, RuleSet, Verdict, context};
use portcullis_policy_runtime::{CachePlace, Limits, Runtime};

static RUNTIME: LazyLock<Runtime> =
    LazyLock::new(|| Runtime::new(Limits::default(), &CachePlace::None).expect("an engine"));

fuzz_target!(|component: &[u8]| {
    let _described = RUNTIME.describe(component);
    let Ok(policy) = RUNTIME.load("guest", component, "{}") else { return };
    let policy = Arc::new(policy);
    let (request, context) = (request(), context());
    let answer = policy.evaluate(&request, &context);
    let chain = Chain { members: vec![Member { policy, mode: Mode::Enforce }], ..Chain::default() };
    let free = Base { workspace: vec!["/srv/app".into()], temp: "/tmp".into(), closed: Vec::new() };
    let decision = chain.decide(&request, &context, &RuleSet::compile(Vec::new(), free, &[]), &[]);
    let may_allow = answer.is_ok_and(|answer| matches!(answer.verdict, Verdict::Allow(_) | Verdict::Abstain));
    assert!(decision.effect() != Effect::Allow || may_allow, "a failure let something through");
});

fn request() -> Request {
    let path = PathRef {
        given: "/srv/app/a".into(),
        absolute: "/srv/app/a".into(),
        canonical: "/srv/app/a".into(),
        zone: Zone::Workspace,
        relative: "a".into(),
        kind: PathKind::File,
    };
    Request {
        id: "1".into(),
        parent: None,
        origin: Origin::Agent,
        action: Action::File(FileAccess { path, operation: FileOperation::Read, facts: FileFacts::default() }),
        attributes: Vec::new(),
    }
}

fn context() -> Context {
    Context {
        session_id: "fuzz".into(),
        agent: context::AgentInfo::default(),
        workspace: context::Workspace { roots: vec!["/srv/app".into()], trusted: true, vcs: None },
        machine: context::Machine::default(),
        interactive: true,
        now: 0,
        grants: Vec::new(),
        explain: false,
        attributes: Vec::new(),
    }
}

//! The cost of one decision of the default policy: in native code, in a reused instance, and in a fresh copy
//! of the configured instance, as in the host. `cargo bench -p portcullis-benches --bench decision`

#![expect(clippy::expect_used, clippy::print_stdout, reason = "a benchmark ends where it cannot measure")]

use std::hint::black_box;

use portcullis_benches::{Contestant, Race};
use portcullis_decision::request::{
    Action, FileAccess, FileFacts, FileOperation, Origin, PathKind, PathRef, Request, Zone,
};
use portcullis_decision::{Context, Policy as _, context};
use portcullis_policy_runtime::{CachePlace, Compiler, Limits, Runtime, read_component};
use portcullis_sdk::{Policy as _, testing};
use portcullis_workspace::{Config, WorkspacePolicy};
use serde_json::{Value, json};

const POLICY: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../policies/workspace/policy.wasm");
const PATH: &str = "/srv/app/src/main.rs";

fn main() {
    for (title, configuration) in [
        ("decision, 20 rules", configuration(10, 0)),
        ("decision, 50 paths and 200 domains", configuration(25, 200)),
    ] {
        race(title, &configuration);
    }
}

/// A configuration with as many paths to read as to write. The last ones match the request.
fn configuration(pairs: usize, domains: usize) -> Value {
    let places = |kind: &str| -> Vec<Value> {
        let others = (1..pairs).map(|number| json!({ "tree": format!("/srv/{kind}/{number}") }));
        others.chain([json!({ "tree": "/srv/app" })]).collect()
    };
    let domains: Vec<String> = (0..domains).map(|number| format!("*.example-{number}.com:443")).collect();
    json!({ "allowRead": places("read"), "allowWrite": places("write"), "allowedDomains": domains })
}

fn race(title: &str, configuration: &Value) {
    let config: Config = serde_json::from_value(configuration.clone()).expect("a configuration");
    let native = WorkspacePolicy::configure(config).expect("a configuration that is taken");
    let native_context = testing::context("/srv/app");
    let native_request = testing::read(&native_context, PATH);

    let runtime = Runtime::new(Limits::default(), &CachePlace::None, Compiler::InProcess).expect("an engine");
    let component = read_component(POLICY.as_ref()).expect("the default policy");
    let policy = runtime.load("workspace", &component, &configuration.to_string()).expect("a policy");
    let mut copy = policy.copy().expect("a copy");
    let (request, context) = (request(), context_of_host());
    let answer = policy.evaluate(&request, &context).expect("an answer");
    let native_answer = native.evaluate(&native_request, &native_context);
    assert_eq!(answer.cause.rule, native_answer.cause.rule, "the contestants do not do the same");

    let outcome = Race::new(title).run(vec![
        Contestant::new("native", 2_000, || {
            black_box(native.evaluate(black_box(&native_request), &native_context));
        }),
        Contestant::new("instance used again", 1_000, || {
            black_box(copy.evaluate(black_box(&request), &context).expect("an answer"));
        }),
        Contestant::new("fresh copy (the default)", 500, || {
            black_box(policy.evaluate(black_box(&request), &context).expect("an answer"));
        }),
    ]);
    println!("{outcome}");
}

fn request() -> Request {
    let path =
        PathRef { relative: "src/main.rs".into(), ..PathRef::plain(PATH, Zone::Workspace, PathKind::File) };
    let facts = FileFacts { size: 1, links: 1, owner: 1000, mode: 0o644 };
    Request {
        id: "1".into(),
        parent: None,
        origin: Origin::Agent,
        action: Action::File(FileAccess { path, operation: FileOperation::Read, facts }),
        facts: Vec::new(),
    }
}

fn context_of_host() -> Context {
    Context {
        session_id: "session".into(),
        agent: context::AgentInfo {
            name: "pi".into(),
            directory: "/home/u/.pi/agent".into(),
            ..Default::default()
        },
        workspace: context::Workspace { roots: vec!["/srv/app".into()], trusted: true, vcs: None },
        machine: context::Machine {
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

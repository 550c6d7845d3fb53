//! The cost of one decision of the default policy: in native code, in a reused instance, and in a fresh copy
//! of the configured instance, as in the host; and of the same rules as texts in Cedar and Rego.
//! `cargo bench -p portcullis-benches --bench decision`

#![expect(clippy::expect_used, clippy::print_stdout, reason = "a benchmark ends where it cannot measure")]

use std::hint::black_box;

use portcullis_benches::{Contestant, Race};
use portcullis_decision::request::{
    Action, FileAccess, FileFacts, FileOperation, Origin, PathKind, PathRef, Request, Zone,
};
use portcullis_decision::verdict::Verdict;
use portcullis_decision::{Context, Policy as _, context};
use portcullis_policy_runtime::{
    CachePlace, Compiler, ComponentPolicy, Limits, Runtime, Start, read_component,
};
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

    let texts = [("cedar", cedar(configuration)), ("rego", rego(configuration))]
        .map(|(language, configuration)| text_policy(&runtime, language, &configuration));
    let [cedar, rego] = &texts;
    for policy in &texts {
        let answer = policy.evaluate(&request, &context).expect("an answer");
        assert!(matches!(answer.verdict, Verdict::Allow(_)), "{}: {answer:?}", policy.name());
    }

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
        Contestant::new("text in Cedar, fresh copy", 50, || {
            black_box(cedar.evaluate(black_box(&request), &context).expect("an answer"));
        }),
        Contestant::new("text in Rego, fresh copy", 50, || {
            black_box(rego.evaluate(black_box(&request), &context).expect("an answer"));
        }),
    ]);
    println!("{outcome}");
}

/// Loads a policy that runs texts. It starts from a snapshot, as in all sessions but the first with this text.
fn text_policy(runtime: &Runtime, language: &str, configuration: &Value) -> ComponentPolicy {
    let file = format!("{}/../policies/{language}/policy.wasm", env!("CARGO_MANIFEST_DIR"));
    let component = read_component(file.as_ref()).expect("the policy");
    let policy = runtime.load(language, &component, &configuration.to_string()).expect("a policy");
    policy.snapshot_job().expect("a job").run().expect("a snapshot");
    assert_eq!(policy.start(), Start::Snapshot);
    policy
}

/// The rules as Cedar policies, one for each rule.
fn cedar(configuration: &Value) -> Value {
    let path = |entry: &Value| entry["tree"].as_str().expect("a path").to_owned();
    let permit = |action: &str, resource: String| {
        format!("permit (principal, action {action}, resource in {resource});\n")
    };
    let reads = items(configuration, "allowRead")
        .map(|entry| permit("in Action::\"view\"", format!("Directory::\"{}\"", path(entry))));
    let writes = items(configuration, "allowWrite")
        .map(|entry| permit("in Action::\"change\"", format!("Directory::\"{}\"", path(entry))));
    let hosts = items(configuration, "allowedDomains").map(|entry| {
        let domain = entry.as_str().expect("a host").trim_start_matches("*.").trim_end_matches(":443");
        permit("== Action::\"connect\"", format!("Domain::\"{domain}\""))
    });
    json!({ "policyText": reads.chain(writes).chain(hosts).collect::<String>() })
}

/// The rules as data of a Rego package.
fn rego(configuration: &Value) -> Value {
    let trees =
        |key: &str| -> Vec<Value> { items(configuration, key).map(|entry| entry["tree"].clone()).collect() };
    let domains: Vec<String> = items(configuration, "allowedDomains")
        .map(|entry| {
            entry.as_str().expect("a host").trim_start_matches("*.").trim_end_matches(":443").to_owned()
        })
        .collect();
    let data = json!({ "view": trees("allowRead"), "change": trees("allowWrite"), "domains": domains });
    json!({ "policyText": REGO, "data": data })
}

const REGO: &str = "package portcullis

allow if {
    some place in data[input.group]
    place in input.resource.parents
}

allow if {
    input.action == \"connect\"
    some domain in data.domains
    domain in input.resource.parents
}
";

fn items<'a>(configuration: &'a Value, key: &str) -> impl Iterator<Item = &'a Value> {
    configuration[key].as_array().into_iter().flatten()
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

//! Components built against released contracts keep working, on this host and on one that offers more.

use std::path::{Path, PathBuf};

use portcullis_decision::Policy as _;
use portcullis_decision::profile::FileRight;
use portcullis_decision::request::ToolCall;
use portcullis_decision::request::{Action, Origin};
use portcullis_decision::verdict::{ContentBlock, Effect, OutputVerdict, ToolOutput, Verdict};
use portcullis_policy_runtime::{CachePlace, Compiler, ComponentPolicy, Limits, Runtime, read_component};
use sha2::{Digest as _, Sha256};

use crate::request::{context, read};

mod additions;
mod track_0_2;

fn folder(version: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../tests/golden").join(version)
}

pub(crate) fn component(name: &str) -> Vec<u8> {
    component_in("0.1.0", name)
}

fn component_in(version: &str, name: &str) -> Vec<u8> {
    read_component(&folder(version).join(name).with_extension("wasm")).unwrap()
}

fn load(name: &str, configuration: &str) -> ComponentPolicy {
    let runtime = Runtime::new(Limits::default(), &CachePlace::None, Compiler::InProcess).unwrap();
    runtime.load(name, &component(name), configuration).unwrap()
}

#[test]
fn released_components_are_as_they_were() {
    for version in ["0.1.0", "0.2.0"] {
        let folder = folder(version);
        let sums = std::fs::read_to_string(folder.join("SHA256SUMS")).unwrap();
        let listed: Vec<(&str, &str)> = sums.lines().filter_map(|line| line.split_once("  ")).collect();
        for (sum, name) in &listed {
            let bytes = std::fs::read(folder.join(name)).unwrap();
            let found: String = Sha256::digest(&bytes).iter().map(|byte| format!("{byte:02x}")).collect();
            assert_eq!(found, *sum, "{name} is not what was released");
        }
        let is_component = |path: &Path| path.extension().is_some_and(|ending| ending == "wasm");
        let there =
            std::fs::read_dir(&folder).unwrap().filter(|entry| is_component(&entry.as_ref().unwrap().path()));
        assert_eq!(there.count(), listed.len(), "a component that is not listed");
    }
}

#[test]
fn verdicts() {
    let policy = load("verdicts", "{}");
    assert!(matches!(policy.evaluate(&read("/srv/app/a"), &context()).unwrap().verdict, Verdict::Allow(_)));
    assert_eq!(policy.evaluate(&read("/etc/passwd"), &context()).unwrap().verdict, Verdict::Abstain);
}

#[test]
fn rules() {
    let policy = load("rules", r#"{"path": "/srv/app/secret.txt"}"#);
    let profile = policy.standing(&context()).unwrap().unwrap();
    let denied = |path: &str| {
        profile.files.iter().any(|rule| {
            rule.effect == Effect::Deny
                && rule.rights.contains(FileRight::Read)
                && rule.pattern.matcher().matches(Path::new(path))
        })
    };
    assert!(denied("/srv/app/secret.txt") && !denied("/srv/app/other.txt"));
}

#[test]
fn outputs() {
    let policy = load("filter", "{}");
    let tool = ToolCall { name: "repeat".into(), provider: "extension:x".into(), input: "{}".into() };
    let mut request = read("/srv/app/a");
    (request.action, request.origin) = (Action::Tool(tool), Origin::Agent);
    let inspect = |text: &str| {
        let content = vec![ContentBlock::Text(text.into())];
        let output = ToolOutput { request: request.clone(), is_error: false, truncated: false, content };
        policy.inspect(&output, &context()).unwrap().map(|answer| answer.verdict)
    };
    assert!(matches!(inspect("the word is hunter2"), Some(OutputVerdict::Replace(_))));
    assert_eq!(inspect("withhold-me please"), Some(OutputVerdict::Withhold));
}

#[test]
fn imports() {
    let answer = load("imports", "{}").evaluate(&read("/srv/app/a"), &context()).unwrap();
    assert!(matches!(answer.verdict, Verdict::Allow(_)), "{}", answer.cause.reason);
    let outside = load("imports", "{}").evaluate(&read("/etc/a"), &context()).unwrap();
    assert_eq!(outside.cause.reason, "is-within");
}

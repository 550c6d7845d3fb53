//! Tests of the policies that ship with Portcullis.
//!
//! Their cases pass, every rule is covered, and they survive the probes.

#![expect(clippy::unwrap_used, reason = "a test that cannot set itself up must fail")]

mod spellings;

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use portcullis_decision::Effect;
use portcullis_packs::Capabilities;
use portcullis_policy_runtime::{CachePlace, Compiler, Limits, Runtime, read_component};
use portcullis_policy_tools::{
    Beside, Report, Severity, Simulator, Source, changes, lint, measure, of_cases, run,
};

/// Rules that no case covers, with the reason.
const UNSEEN: [(&str, &str); 2] = [
    ("pattern.broken", "no configuration that is accepted leads to it"),
    ("output.pass", "says nothing but that it looked"),
];

fn folders() -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../policies");
    let mut folders: Vec<PathBuf> =
        std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    folders.sort();
    folders
}

/// Returns the policies whose components are in the tree. The others are scripts; tests/it builds and tests them.
fn policies() -> Vec<PathBuf> {
    let is_script = |folder: &Path| ["policy.js", "policy.py"].iter().any(|name| folder.join(name).exists());
    folders().into_iter().filter(|folder| !is_script(folder)).collect()
}

#[test]
fn every_policy_says_what_it_is() {
    for folder in folders() {
        for file in ["README.md", "policy.toml"] {
            assert!(folder.join(file).exists(), "{} has no {file}", folder.display());
        }
    }
    assert!(folders().len() >= policies().len() + 2, "one is in JavaScript and one in Python");
}

fn cases(policy: &Path) -> BTreeMap<String, String> {
    let files = std::fs::read_dir(policy.join("tests")).unwrap().map(|entry| entry.unwrap().path());
    files
        .map(|file| {
            (file.file_name().unwrap().to_str().unwrap().to_owned(), std::fs::read_to_string(file).unwrap())
        })
        .collect()
}

fn runtime() -> Runtime {
    Runtime::new(Limits::default(), &CachePlace::None, Compiler::InProcess).unwrap()
}

/// One runtime for each policy, since compiling it takes most of the time.
#[test]
fn every_case_holds_every_rule_is_seen_and_they_survive_the_probes() {
    let policies = policies();
    assert!(policies.len() >= 4, "{policies:?}");
    for policy in policies {
        let runtime = runtime();
        let (component, cases) = (read_component(&policy.join("policy.wasm")).unwrap(), cases(&policy));
        let source = Source { component: &component, cases: &cases, capabilities: None, text: None };
        cases_hold(&policy, &run(&runtime, source, |_| {}).unwrap());
        let loaded = runtime.load("policy", &component, &config(&policy)).unwrap();
        let bad: Vec<_> =
            lint(&loaded).into_iter().filter(|finding| finding.gravity == Severity::Error).collect();
        assert!(bad.is_empty(), "{}: {bad:#?}", policy.display());
    }
}

fn cases_hold(policy: &Path, report: &Report) {
    let failures: Vec<_> = report.failures.iter().map(|failure| (&failure.case, &failure.message)).collect();
    assert!(failures.is_empty(), "{}: {failures:#?}", policy.display());
    assert!(report.run > 10, "{} has only {} cases", policy.display(), report.run);
    let unseen: BTreeSet<_> = report
        .rules
        .iter()
        .filter(|(rule, seen)| !**seen && !UNSEEN.iter().any(|(known, _)| known == rule))
        .map(|(rule, _)| rule)
        .collect();
    assert!(unseen.is_empty(), "{}: no case sees {unseen:?}", policy.display());
}

/// Returns a configuration that a policy accepts.
fn config(policy: &Path) -> String {
    let text = match policy.file_name().and_then(|name| name.to_str()) {
        Some("cedar") => "permit (principal, action, resource) unless { context.origin == \"process\" };",
        Some("rego") => "package portcullis\nallow if input.context.origin != \"process\"\n",
        _ => return "{}".to_owned(),
    };
    serde_json::json!({ "policyText": text }).to_string()
}

#[test]
fn a_wrong_expectation_fails_with_the_trace_of_the_case() {
    let policy = policies().into_iter().find(|policy| policy.ends_with("git-guard")).unwrap();
    let component = read_component(&policy.join("policy.wasm")).unwrap();
    let text = "[[case]]\nname = 'x'\ncommand = 'git push -f'\nexpect = 'allow'".to_owned();
    let cases = BTreeMap::from([("a.toml".to_owned(), text)]);
    let source = |cases| Source { component: &component, cases, capabilities: None, text: None };
    let report = run(&runtime(), source(&cases), |_| {}).unwrap();
    assert_eq!((report.run, report.failures.len()), (1, 1));
    assert!(report.failures[0].message.contains("git.force-push"), "{:?}", report.failures);
    let broken = BTreeMap::from([("a.toml".to_owned(), "[[case]]".to_owned())]);
    assert!(run(&runtime(), source(&broken), |_| {}).is_err());
}

#[test]
fn a_policy_against_itself_in_another_configuration() {
    let policy = policies().into_iter().find(|policy| policy.ends_with("git-guard")).unwrap();
    let component = read_component(&policy.join("policy.wasm")).unwrap();
    let runtime = runtime();
    let with = |configuration| {
        let loaded = runtime.load("git-guard", &component, configuration).unwrap();
        Simulator::new(Arc::new(loaded))
    };
    let (asks, allows) = (with("{}"), with(r#"{"push": "allow"}"#));
    let corpus: Vec<_> =
        cases(&policy).iter().flat_map(|(file, text)| of_cases(file, text).unwrap()).collect();
    assert_eq!(changes(&asks, &asks, &corpus).count(), 0);
    // A question that is gone loosens the decision beside a policy that allows.
    let different: Vec<_> = changes(&asks, &allows, &corpus).collect();
    assert!(!different.is_empty() && different.iter().all(|change| change.loosens), "{different:#?}");
    assert!(different.iter().any(|change| change.beside == Some(Beside::Allowing)), "{different:#?}");
    let denies = with(r#"{"push": "deny", "rewrite": "deny"}"#);
    assert!(changes(&denies, &asks, &corpus).any(|change| change.loosens));
    assert!(changes(&asks, &denies, &corpus).all(|change| !change.loosens));

    let figures = measure(&[asks, allows], &corpus, 60, |_| {}).unwrap();
    assert!(
        figures.len() == 2 && figures.iter().all(|figures| figures.calls == 60 && figures.p50 > 0.0),
        "{figures:?}"
    );
}

#[test]
fn cases_on_standing_rules_are_requests_and_are_measured() {
    let policy = policies().into_iter().find(|policy| policy.ends_with("workspace")).unwrap();
    let component = read_component(&policy.join("policy.wasm")).unwrap();
    let text = "[[standing]]\nname = 'write'\nwrite = '/srv/app/a'\nexpect = 'allow'";
    let corpus = of_cases("a.toml", text).unwrap();
    let simulator = Simulator::new(Arc::new(runtime().load("workspace", &component, "{}").unwrap()));
    let judged = simulator.judge(&corpus[0]);
    // Without settings nothing in the workspace is listed.
    let rule = judged.rule.as_ref().map(|ruling| (ruling.effect, ruling.rule.as_str()));
    assert_eq!(rule, Some((Effect::Ask, "workspace.unlisted")), "{judged:#?}");
    assert_eq!(judged.answer().verdict, "ask");
    assert!(simulator.decides(&corpus[0]));
    assert_eq!(measure(&[simulator], &corpus, 10, |_| {}).unwrap()[0].calls, 10);
}

#[test]
fn a_case_that_needs_a_capability_fails_if_the_manifest_does_not_ask_for_it() {
    let policy = policies().into_iter().find(|policy| policy.ends_with("secrets")).unwrap();
    let component = read_component(&policy.join("policy.wasm")).unwrap();
    let cases = cases(&policy);
    let failures = |output| {
        let capabilities = Capabilities { output, ..Capabilities::default() };
        let source =
            Source { component: &component, cases: &cases, capabilities: Some(&capabilities), text: None };
        run(&runtime(), source, |_| {}).unwrap().failures
    };
    assert_eq!(failures(true).len(), 0);
    let without = failures(false);
    assert!(!without.is_empty() && without.iter().all(|failure| failure.message.contains("output = true")));
}

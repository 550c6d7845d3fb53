//! The component of contract 0.2: all exports, all functions of the host, and the facts that it depends on.

use portcullis_decision::context::{Remote, Vcs, VcsParts};
use portcullis_decision::profile::FileRight;
use portcullis_decision::request::{Action, CommandExecution, Origin, ToolCall};
use portcullis_decision::reservation::{Reservation, Until};
use portcullis_decision::verdict::{ContentBlock, Denial, OutputVerdict, ToolOutput, Verdict};
use portcullis_decision::{Context, Fact, Policy as _, Request};
use portcullis_policy_runtime::{
    CachePlace, Capabilities, Compiler, ComponentPolicy, Limits, LoadError, Runtime,
};

use super::component_in;
use crate::request::{context, read};

fn policy() -> ComponentPolicy {
    let runtime = Runtime::new(Limits::default(), &CachePlace::None, Compiler::InProcess).unwrap();
    runtime.load("on-branch", &component_in("0.2.0", "on-branch"), "{}").unwrap()
}

fn on(branch: &str) -> Context {
    let mut context = context();
    context.workspace.vcs = Some(Vcs {
        kind: "git".into(),
        root: "/srv/app".into(),
        branch: Some(branch.into()),
        head: Some("0".repeat(40)),
        dirty: Some(true),
        remotes: vec![Remote { name: "origin".into(), url: "https://a.test/b".into() }],
    });
    context
}

fn command(script: &str) -> Request {
    let Action::File(access) = read("/srv/app").action else { panic!("a read is about a file") };
    let execution = CommandExecution {
        script: script.into(),
        shell: Some("bash".into()),
        cwd: access.path,
        parsed: Err("the test parses nothing".into()),
        timeout_ms: None,
        background: false,
    };
    Request { action: Action::Command(execution), ..read("/srv/app") }
}

fn tool() -> Request {
    let call = ToolCall { name: "repeat".into(), provider: "extension:x".into(), input: "{}".into() };
    Request { action: Action::Tool(call), origin: Origin::Agent, ..read("/srv/app") }
}

#[test]
fn the_description_has_capabilities_and_dependencies() {
    let policy = policy();
    let description = policy.description();
    assert_eq!(description.capabilities, Some(Capabilities { output: true, rewrites: false }));
    assert_eq!((description.depends_on, policy.vcs_parts()), (VcsParts::BRANCH, VcsParts::BRANCH));
    assert_eq!(description.config_schema, "");
    // What the policy does not ask for, it does not get, whatever its manifest says.
    assert!(!policy.rewriting().rewrites());
}

#[test]
fn verdicts_depend_on_the_branch() {
    let policy = policy();
    let denied = policy.evaluate(&command("git push"), &on("main")).unwrap();
    let hint = Some("push another branch".to_owned());
    assert_eq!(denied.verdict, Verdict::Deny(Denial { hint, overridable: false }));
    assert_eq!((denied.cause.rule.as_str(), denied.cause.setting.as_str()), ("branch.main", ""));
    for elsewhere in [on("topic"), context()] {
        let answer = policy.evaluate(&read("/srv/app/a"), &elsewhere).unwrap();
        assert_eq!((answer.verdict, answer.cause.rule.as_str()), (Verdict::Abstain, ""));
    }
    let explained = policy.evaluate(&command("ls"), &Context { explain: true, ..on("topic") }).unwrap();
    assert_eq!(explained.trace.len(), 1);
    assert!(policy.take_log().iter().any(|line| line.message == "asked"));
}

#[test]
fn rules_depend_on_the_branch() {
    let policy = policy();
    let denies = |context: &Context| {
        let profile = policy.standing(context).unwrap().unwrap();
        profile.files.iter().any(|rule| rule.rights.contains(FileRight::Write) && rule.condition.is_empty())
    };
    assert!(denies(&on("main")) && !denies(&on("topic")) && !denies(&context()));
    assert_eq!(policy.for_command(&command("ls"), &on("main")).unwrap(), None);
}

#[test]
fn a_policy_gets_only_the_facts_that_it_depends_on() {
    let brief = policy().brief(&on("main")).unwrap();
    assert_eq!(brief, r#"Some("main") None None 0"#);
    assert_eq!(policy().brief(&context()).unwrap(), "");
    assert_eq!(policy().without_vcs().brief(&on("main")).unwrap(), "");
}

#[test]
fn functions_facts_and_claims_have_types() {
    let request = Request { facts: vec![Fact::SentBytes(1500)], ..tool() };
    let answer = policy().evaluate(&request, &context()).unwrap();
    assert_eq!(answer.cause.reason, " Some(2)", "a function of the host is wrong");
    let Verdict::Allow(duties) = answer.verdict else { panic!("{:?}", answer.verdict) };
    let claims: Vec<_> = Reservation::among(&duties).collect();
    assert_eq!(claims, [Reservation::Reserve(vec!["/srv/a".into()], Until::Call)]);
}

#[test]
fn outputs_use_the_same_words() {
    let policy = policy();
    let inspect = |text: &str| {
        let content = vec![ContentBlock::Text(text.into())];
        let output = ToolOutput { request: tool(), is_error: false, truncated: false, content };
        policy.inspect(&output, &context()).unwrap().unwrap().verdict
    };
    assert_eq!(inspect("x"), OutputVerdict::Abstain);
    assert_eq!(inspect("allow-me"), OutputVerdict::Pass);
    assert_eq!(inspect("replace-me"), OutputVerdict::Replace(vec![ContentBlock::Text("replaced".into())]));
    assert_eq!(inspect("deny-me"), OutputVerdict::Withhold);
    let blind = policy.without_output();
    let output = ToolOutput { request: tool(), is_error: false, truncated: false, content: Vec::new() };
    assert_eq!(blind.inspect(&output, &context()).unwrap(), None);
}

#[test]
fn a_configuration_is_refused_in_words() {
    let runtime = Runtime::new(Limits::default(), &CachePlace::None, Compiler::InProcess).unwrap();
    let refused = runtime.load("on-branch", &component_in("0.2.0", "on-branch"), r#"{"a": 1}"#).unwrap_err();
    assert!(matches!(refused, LoadError::Configuration { errors } if errors.len() == 1));
}

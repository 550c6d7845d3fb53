//! Guests that a toolchain built: `tests/guests`, and the default policy.

use std::path::PathBuf;
use std::sync::LazyLock;
use std::time::Instant;

use portcullis_decision::profile::Profile;
use portcullis_decision::request::Request;
use portcullis_decision::verdict::{ContentBlock, ToolOutput, Verdict};
use portcullis_decision::{Policy, PolicyError};
use portcullis_policy_runtime::{
    CachePlace, Compiler, ComponentPolicy, Limits, LoadError, Runtime, Start, limits, read_component,
};

use crate::request::{context, read};

/// Returns a guest by name, from the directory where `cargo xtask guests` puts it.
pub(crate) fn guest(name: &str) -> Vec<u8> {
    let root = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../..");
    let chosen = std::env::var_os("CARGO_TARGET_DIR").map(PathBuf::from);
    let places = chosen.into_iter().chain([root.join("target")]);
    let path =
        places.map(|place| place.join("guests").join(name).with_extension("wasm")).find(|path| path.exists());
    let Some(path) = path else { panic!("the guest `{name}` is not built; run `cargo xtask guests`") };
    read_component(&path).unwrap()
}

/// Returns the default policy's component from the source tree.
pub(crate) fn workspace_policy() -> Vec<u8> {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../policies/workspace/policy.wasm");
    read_component(path.as_ref()).unwrap()
}

/// Loads a policy with one shared runtime, so that each guest is compiled once for all tests.
fn load_bytes(component: &[u8], configuration: &str) -> Result<ComponentPolicy, LoadError> {
    static RUNTIME: LazyLock<Runtime> =
        LazyLock::new(|| Runtime::new(Limits::default(), &CachePlace::None, Compiler::InProcess).unwrap());
    RUNTIME.load("guest", component, configuration)
}

fn load(name: &str, configuration: &str) -> Result<ComponentPolicy, LoadError> {
    load_bytes(&guest(name), configuration)
}

fn ask(policy: &ComponentPolicy, path: &str) -> Result<(Verdict, String), PolicyError> {
    policy.evaluate(&read(path), &context()).map(|answer| (answer.verdict, answer.cause.rule))
}

fn output() -> ToolOutput {
    let request: Request = read("/srv/app/a");
    ToolOutput {
        request,
        is_error: false,
        truncated: false,
        content: vec![ContentBlock::Text("text".into())],
    }
}

#[test]
fn the_default_policy_answers_the_same_before_and_after_its_snapshot() {
    let configuration = r#"{"allowRead": [{"tree": "/srv/app"}], "allowWrite": [{"tree": "/srv/app"}]}"#;
    let policy = load_bytes(&workspace_policy(), configuration).unwrap();
    let answers = || {
        assert!(matches!(ask(&policy, "/srv/app/a").unwrap().0, Verdict::Allow(_)));
        assert!(matches!(ask(&policy, "/etc/hosts").unwrap().0, Verdict::Abstain | Verdict::Ask(_)));
        let standing = policy.standing(&context()).unwrap().unwrap_or_default();
        assert!(!standing.files.is_empty());
        standing
    };
    assert_eq!(policy.start(), Start::Configure);
    let before = answers();
    policy.snapshot_job().unwrap().run().unwrap();
    assert_eq!(policy.start(), Start::Snapshot);
    assert_eq!(answers(), before);
    assert!(policy.snapshot_job().is_none(), "one is enough");
}

#[test]
fn copies_cannot_count() {
    let policy = load("counter", "{}").unwrap();
    for _ in 0..3 {
        assert_eq!(ask(&policy, "/srv/app/a").unwrap().1, "counter.first");
        let profile = policy.standing(&context()).unwrap().unwrap();
        assert_eq!(profile.files[0].id, "counter.first");
    }
}

#[test]
fn a_policy_without_imports_and_one_without_rules() {
    let policy = load("no-wasi", "{}").unwrap();
    assert_eq!(ask(&policy, "/srv/app/a").unwrap().1, "workspace");
    assert_eq!(ask(&policy, "/etc/hosts").unwrap(), (Verdict::Abstain, String::new()));
    // A missing export means no opinion.
    assert_eq!(policy.standing(&context()).unwrap(), None);
    assert_eq!(policy.for_command(&read("/srv/app/a"), &context()).unwrap(), None);
    assert_eq!(policy.inspect(&output(), &context()).unwrap(), None);
    assert_eq!(policy.brief(&context()).unwrap(), "");
}

#[test]
fn nothing_is_within_reach() {
    assert_eq!(ask(&load("wants-files", "{}").unwrap(), "/srv/app/a").unwrap().1, "wasi.nothing");
    match load("wants-sockets", "{}") {
        Ok(policy) => match ask(&policy, "/srv/app/a") {
            Ok((verdict, _)) => assert!(matches!(verdict, Verdict::Allow(_)), "it got a socket"),
            Err(error) => assert!(error.to_string().contains("wasi:sockets/"), "{error}"),
        },
        Err(error) => assert!(error.to_string().contains("wasi:sockets/"), "{error}"),
    }
}

#[test]
fn no_policies_for_this_host() {
    let error = load("wrong-track", "{}").unwrap_err().to_string();
    assert!(error.contains("contract 9; this host speaks 0.1 to 0.2"), "{error}");
    let error = load("no-lifecycle", "{}").unwrap_err();
    assert!(matches!(error, LoadError::MissingExports { .. }), "{error}");
}

#[test]
fn garbage() {
    for kind in ["discriminant", "severity", "utf8", "text-outside", "length", "pointer", "unaligned"] {
        let policy = load("garbage", &format!("{{\"kind\": \"{kind}\"}}")).unwrap();
        for _ in 0..2 {
            let error = ask(&policy, "/srv/app/a").unwrap_err();
            assert!(
                matches!(error, PolicyError::BadAnswer { .. } | PolicyError::AnswerSize { .. }),
                "{kind}: {error}"
            );
        }
    }
}

/// Calls one function of a hostile policy.
fn call(policy: &ComponentPolicy, place: &str) -> Result<(), PolicyError> {
    let rules = |profile: Option<Profile>| drop(profile);
    match place {
        "evaluate" => ask(policy, "/srv/app/a").map(drop),
        "standing" => policy.standing(&context()).map(rules),
        "for-command" => policy.for_command(&read("/srv/app/a"), &context()).map(rules),
        "inspect" => policy.inspect(&output(), &context()).map(drop),
        "brief" => policy.brief(&context()).map(drop),
        _ => panic!("{place}"),
    }
}

const PLACES: [&str; 5] = ["evaluate", "standing", "for-command", "inspect", "brief"];

#[test]
fn hostile_calls_fail_with_their_reason_and_alone() {
    for (fault, is_right) in [
        ("loop", (|error| matches!(error, PolicyError::TimeLimit { .. })) as fn(&PolicyError) -> bool),
        ("memory", |error| matches!(error, PolicyError::MemoryLimit { limit_mib: 64 })),
        ("recursion", |error| matches!(error, PolicyError::Trap { .. })),
        ("trap", |error| matches!(error, PolicyError::Trap { .. })),
        ("long-answer", |error| matches!(error, PolicyError::AnswerSize { .. })),
        ("many-answers", |error| matches!(error, PolicyError::AnswerSize { .. })),
    ] {
        for place in PLACES {
            // Only these functions return lists.
            if fault == "many-answers" && !["evaluate", "standing", "for-command"].contains(&place) {
                continue;
            }
            let policy =
                load("hostile", &format!("{{\"fault\": \"{fault}\", \"in\": \"{place}\"}}")).unwrap();
            let start = Instant::now();
            let Err(error) = call(&policy, place) else { panic!("{fault} in {place} passed") };
            assert!(is_right(&error), "{fault} in {place}: {error}");
            assert!(start.elapsed() < limits::SETUP_TIME * 12, "{fault} in {place}: {:?}", start.elapsed());
            // The other functions and the next decision are not affected.
            let other = PLACES.into_iter().find(|other| *other != place).unwrap();
            call(&policy, other).unwrap();
        }
    }
}

#[test]
fn hostile_configurations() {
    for (fault, said) in [
        ("loop", "took longer than its 2000 ms"),
        ("memory", "64 MiB of memory"),
        ("recursion", "trapped"),
        ("trap", "trapped"),
        ("long-answer", "too large"),
        ("many-answers", "too large"),
    ] {
        let error =
            load("hostile", &format!("{{\"fault\": \"{fault}\", \"in\": \"configure\"}}")).unwrap_err();
        let LoadError::Call { call: "configure", source } = &error else { panic!("{fault}: {error}") };
        assert!(source.to_string().contains(said), "{fault}: {source}");
    }
    let error = load("hostile", r#"{"fault": "refuse", "in": "configure"}"#).unwrap_err();
    assert!(error.to_string().ends_with("`/fault`: refused, as asked for"), "{error}");
    let error = load("hostile", r#"{"fault": "refuse"}"#).unwrap_err();
    assert!(matches!(error, LoadError::Configuration { .. }), "{error}");
}

#[test]
fn odd_texts_do_not_reach_anybody() {
    for place in PLACES {
        let policy = load("hostile", &format!("{{\"fault\": \"odd-texts\", \"in\": \"{place}\"}}")).unwrap();
        // Either the answer is rejected, or its text is harmless.
        match place {
            "brief" => assert!(!policy.brief(&context()).unwrap().contains('\u{1b}')),
            _ => assert!(matches!(call(&policy, place), Err(PolicyError::BadAnswer { .. })), "{place}"),
        }
    }
}

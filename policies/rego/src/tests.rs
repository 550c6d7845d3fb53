use portcullis_sdk::{Policy as _, Verdict, testing};
use portcullis_text_policy::TextConfig;

use crate::Rego;

fn config(text: &str) -> TextConfig {
    TextConfig {
        policy_file: Some("/p/team.rego".into()),
        policy_text: text.into(),
        data: serde_json::Map::new(),
    }
}

/// Checks the beginning of the message about a text.
#[track_caller]
fn refused(text: &str, expected: &str) {
    let errors = Rego::configure(config(text)).unwrap_err();
    assert!(errors[0].message.starts_with(expected), "{}", errors[0].message);
}

#[test]
fn errors_have_a_place() {
    refused("package portcullis\n\ndeny contains \"x\" fi true\n", "team.rego:3:19: ");
    refused(
        "package portcullis\ndeny if time.now_ns() > 0\n",
        "team.rego:2:20: could not find function time.now_ns",
    );
    refused("package portcullis\ndeny if {\n  nothing\n}\n", "team.rego:3:3: ");
    refused("package team\ndeny if true\n", "team.rego: the package is `team`; write `package portcullis`");
    refused("package portcullis\nallowed if true\n", "team.rego: it has none of the rules");
}

#[test]
fn an_error_while_it_runs_denies() {
    let text = "package portcullis\nallow if to_number(input.resource.name) > 0\n";
    let policy = Rego::configure(config(text)).unwrap();
    let context = testing::context("/srv/app");
    let evaluation = policy.evaluate(&testing::read(&context, "/srv/app/a"), &context);
    assert!(matches!(evaluation.verdict, Verdict::Deny(_)), "{evaluation:?}");
    assert!(evaluation.cause.reason.contains("line 2"), "{}", evaluation.cause.reason);
}

#[test]
fn one_engine_answers_many_requests() {
    let text = "package portcullis\ndeny contains input.resource.path if input.resource.name == \"b\"\n";
    let policy = Rego::configure(config(text)).unwrap();
    let context = testing::context("/srv/app");
    let denied = |path| {
        let evaluation = policy.evaluate(&testing::read(&context, path), &context);
        matches!(evaluation.verdict, Verdict::Deny(_))
    };
    assert_eq!([denied("/a"), denied("/b"), denied("/a")], [false, true, false]);
}

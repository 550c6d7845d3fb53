use portcullis_sdk::reservation::{Until, release, reserve};
use portcullis_sdk::{
    Action, Attribute, Context, Evaluation, Obligation, Policy as _, Request, Right, Verdict, testing,
};
use serde_json::json;

use super::*;

fn bosun(reservations: &str) -> Bosun {
    let config = serde_json::from_value(json!({ "reservations": reservations })).unwrap();
    Bosun::configure(config).unwrap()
}

fn context() -> Context {
    testing::context("/srv/app")
}

/// Adds the claims that the host would list to a request: path, agent, own.
fn told(mut request: Request, claims: &[(&str, &str, bool)]) -> Request {
    let claims: Vec<_> =
        claims.iter().map(|(path, agent, own)| json!({ "path": path, "agent": agent, "own": own })).collect();
    request.attributes.push(Attribute { name: "host:reservations".into(), value: json!(claims).to_string() });
    request
}

fn tool(input: serde_json::Value) -> Request {
    let mut request = testing::tool("reserve", "portcullis");
    if let Action::Tool(call) = &mut request.action {
        call.input = input.to_string();
    }
    request
}

fn obligations(evaluation: &Evaluation) -> Vec<Obligation> {
    let Verdict::Allow(allowance) = &evaluation.verdict else { panic!("{evaluation:?}") };
    allowance.obligations.clone()
}

#[test]
fn what_is_written_is_claimed() {
    let file = "/srv/app/workspace/a.rs";
    let write = told(testing::write(&context(), file), &[]);
    for (mode, until, rule) in [("claimed", Until::Call, FREE), ("automatic", Until::Session, OWN)] {
        let evaluation = bosun(mode).evaluate(&write, &context());
        assert_eq!(evaluation.cause.rule, rule);
        assert_eq!(obligations(&evaluation), [reserve(&[file], until)]);
    }
    assert_eq!(bosun("off").evaluate(&write, &context()).verdict, Verdict::Abstain);
    let read = told(testing::read(&context(), file), &[("/srv/app/workspace", "ann", false)]);
    assert_eq!(bosun("claimed").evaluate(&read, &context()).verdict, Verdict::Abstain);
}

#[test]
fn the_tool_reserves_and_gives_back() {
    let ask = |input, claims: &[(&str, &str, bool)]| {
        bosun("required").evaluate(&told(tool(input), claims), &context())
    };
    let path = "/srv/app/workspace/src";
    let wish = || json!({ "paths": ["workspace/src", "./workspace/../workspace/src"] });
    assert_eq!(obligations(&ask(wish(), &[])), [reserve(&[path, path], Until::Session)]);
    assert_eq!(ask(wish(), &[("/srv/app/workspace", "ann", false)]).cause.rule, RESERVED);
    assert_eq!(ask(json!({ "paths": ["src"] }), &[]).cause.rule, CLAIM);
    assert!(matches!(ask(json!({ "paths": ["/"] }), &[]).verdict, Verdict::Deny(_)));
    assert!(matches!(ask(json!({ "path": "a" }), &[]).verdict, Verdict::Deny(_)));
    let back = ask(json!({ "paths": ["/"], "release": true }), &[]);
    assert_eq!(obligations(&back), [release(&["/"])]);
    assert_eq!(obligations(&ask(json!({}), &[])), []);
}

#[test]
fn commands_leave_alone_what_others_have() {
    let command = told(
        testing::command(&context(), "make"),
        &[("/srv/app/workspace/a", "ann", false), ("/srv/app/workspace/b", "me", true)],
    );
    let profile = bosun("claimed").for_command(&command, &context()).unwrap();
    let rule = |path| profile.file_rule(path, Right::Write).unwrap().map(|rule| rule.id.as_str());
    assert_eq!(rule("/srv/app/workspace/a/x"), Some(RESERVED));
    assert_eq!(rule("/srv/app/workspace/b"), None);
    let nothing = told(testing::command(&context(), "make"), &[]);
    assert_eq!(bosun("claimed").for_command(&nothing, &context()), None);
    // A host that lists no claims.
    let blind = bosun("claimed").for_command(&testing::command(&context(), "make"), &context()).unwrap();
    let rule = blind.file_rule("/srv/app/workspace/b", Right::Write).unwrap();
    assert_eq!(rule.map(|rule| rule.id.as_str()), Some(READ_ONLY));
}

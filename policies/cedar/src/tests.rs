use cedar_policy::{Entities, Request, Schema};
use portcullis_sdk::{Action, Content, Context, FileOperation, Origin, Policy as _, testing};
use portcullis_text_policy::{TextConfig, questions};

use crate::{Cedar, entities};

fn config(text: &str) -> TextConfig {
    TextConfig {
        policy_file: Some("/p/team.cedar".into()),
        policy_text: text.into(),
        data: serde_json::Map::new(),
    }
}

/// Checks the messages of the errors in a text.
#[track_caller]
fn refused(text: &str, expected: &[&str]) {
    let errors = Cedar::configure(config(text)).unwrap_err();
    let messages: Vec<&str> = errors.iter().map(|error| error.message.as_str()).collect();
    assert_eq!(messages, expected);
}

#[test]
fn errors_have_a_place_and_a_hint() {
    refused(
        "forbid (principal, action, resource)\nwehn { true };",
        &["team.cedar:2:1: invalid policy condition: wehn; condition must be either `when` or `unless`"],
    );
    let open = "team.cedar:1:36: unexpected end of input: expected `!=`, `)`, `,`, `:`, `<`, `<=`, `==`, `>`, `>=`, \
                `in`, or `is`";
    refused("forbid (principal, action, resource", &[open]);
    refused(
        "// ü\n@reasn(\"x\")\nforbid (principal, action, resource);",
        &["team.cedar:2:1: unknown annotation `@reasn`; write one of `@id`, `@effect`, `@reason`, `@hint`"],
    );
    refused(
        "@effect(\"ask\") permit (principal, action, resource);",
        &["team.cedar:1:1: a `permit` cannot ask; write `@effect(\"ask\") forbid (...)`"],
    );
}

#[test]
fn the_validator_knows_the_schema() {
    let exec = |condition: &str| {
        format!("forbid (principal, action == Action::\"exec\", resource)\nwhen {{ {condition} }};")
    };
    refused(
        &exec("resource.progam == \"rm\""),
        &["team.cedar:2:8: attribute `progam` on entity type `Command` not found; did you mean `program`?"],
    );
    let text = exec("resource.program == 1");
    let errors = Cedar::configure(config(&text)).unwrap_err();
    assert!(errors[0].message.starts_with("team.cedar:2:8: "), "{errors:?}");
    let errors =
        Cedar::configure(config("forbid (principal, action == Action::\"exce\", resource);")).unwrap_err();
    assert!(
        errors[0].message.contains("team.cedar:1:") && errors[0].message.contains("did you mean"),
        "{errors:?}"
    );
}

/// Every question of every kind of request has the types of the schema, or policies that are valid could fail.
#[test]
fn questions_have_the_types_of_the_schema() {
    let schema: Schema = include_str!("../portcullis.cedarschema").parse().unwrap();
    let actions = schema.action_entities().unwrap();
    let mut context = testing::context("/srv/app");
    context.agent.model = Some("m".into());
    context.workspace.vcs = Some(portcullis_sdk::Vcs {
        kind: "git".into(),
        root: "/srv/app".into(),
        branch: Some("main".into()),
        dirty: Some(true),
    });
    let mut seen = std::collections::BTreeSet::new();
    for request in requests(&context) {
        for question in questions(&request, &context) {
            let (asked, entities) = entities::request(&question, &actions).unwrap();
            let context = cedar_policy::Context::from_pairs(entities::attributes(&question.context)).unwrap();
            let [principal, action, resource] = [asked.principal(), asked.action(), asked.resource()];
            let [principal, action, resource] = [principal, action, resource].map(|uid| uid.unwrap().clone());
            Request::new(principal, action, resource, context, Some(&schema)).unwrap();
            Entities::from_entities(
                entities
                    .iter()
                    .filter(|entity| !actions.iter().any(|action| action.uid() == entity.uid()))
                    .cloned(),
                Some(&schema),
            )
            .unwrap();
            seen.insert(question.action);
        }
    }
    let groups = ["view", "change"];
    for action in schema.actions().map(|uid| uid.id().unescaped().to_owned()) {
        assert!(
            groups.contains(&action.as_str()) || seen.contains(action.as_str()),
            "no request asks `{action}`"
        );
    }
}

fn requests(context: &Context) -> Vec<portcullis_sdk::Request> {
    let file = |operation| testing::file(context, "/srv/app/a", operation);
    let there = testing::path_ref(context, "/srv/b");
    let mut all = vec![
        testing::read(context, "/srv/app/a"),
        testing::write(context, "/etc/passwd"),
        file(FileOperation::Write(Content::Unknown)),
        file(FileOperation::Edit(Vec::new())),
        file(FileOperation::List),
        file(FileOperation::Search(portcullis_sdk::SearchQuery { pattern: "x".into(), glob: None })),
        file(FileOperation::CreateDirectory),
        file(FileOperation::Delete),
        file(FileOperation::Move(there.clone())),
        file(FileOperation::Link(there)),
        file(FileOperation::Symlink("x".into())),
        file(FileOperation::ChangeMetadata),
        file(FileOperation::Other("x".into())),
        testing::command(context, "git push --force"),
        testing::escalation(context, "echo \"$X\""),
        testing::connect("example.com", 443),
        testing::connect("::1", 80),
        testing::tool("deploy", "mcp:cloud"),
    ];
    let mut listen = testing::connect("127.0.0.1", 80);
    if let Action::Network(access) = &mut listen.action {
        access.direction = portcullis_sdk::Direction::Listen;
    }
    let mut arguments = testing::tool("deploy", "mcp:cloud");
    if let Action::Tool(call) = &mut arguments.action {
        call.input = r#"{"stage":"production","count":2}"#.into();
    }
    let mut typed = testing::command(context, "ls");
    typed.origin = Origin::User;
    all.extend([listen, arguments, typed]);
    all
}

use serde_json::json;

use super::*;

fn operations(texts: &[&str]) -> Operations {
    let patterns = texts.iter().map(|text| OperationPattern::parse(text).unwrap()).collect();
    Operations { permitted: vec![(OperationsRule::Requests, patterns)] }
}

/// Judges a document; returns the reason why it is refused.
fn judged(permitted: &[&str], document: &str) -> Result<(), String> {
    let body = json!({ "query": document }).to_string();
    operations(permitted).judge(body.as_bytes()).map_err(|refusal| refusal.reason)
}

const WRITES: [&str; 2] = ["query:*", "mutation:createIssue,add*"];

#[test]
fn permitted_operations_pass() {
    for document in [
        "{ viewer { login } }",
        "query { viewer { login } }",
        "query Name($a: [Int!]! = [1, 2], $b: In = {x: \"}\"}) @cached(for: 5) { a: viewer(first: $a) @skip(if: $b) { login } repository { id } }",
        "mutation ($id: ID!) { createIssue(input: {id: $id, body: \"\"\"mutation { deleteRepository }\"\"\"}) { issue { id } } }",
        "mutation A { addComment { id } } query B { viewer { login } }",
        "query { ...Parts ... on Query { b { c } } ... @include(if: true) { d } } fragment Parts on Query { a { ...Deep } } fragment Deep on A { e }",
        "mutation { create: createIssue { deleteRepository } }",
        "# mutation { deleteRepository }\nquery { a }",
        "fragment F on Query { a ...G } fragment G on Query { b ...F } { ...F }",
        "{ query mutation fragment on }",
    ] {
        assert_eq!(judged(&WRITES, document), Ok(()), "{document}");
    }
}

/// Looking at the fragment once for each of these operations would take half an hour.
#[test]
fn a_long_fragment_is_looked_at_once() {
    let operations = "{...F}".repeat(80_000);
    let document = format!("{operations}fragment F on Query{{{}}}", "a ".repeat(250_000));
    assert_eq!(judged(&WRITES, &document), Ok(()));
}

#[test]
fn others_are_refused() {
    for (document, told) in [
        ("mutation { deleteRepository(id: 1) { id } }", "mutation:deleteRepository"),
        ("mutation createIssue { deleteRepository { id } }", "mutation:deleteRepository"),
        ("mutation { createIssue: deleteRepository { id } }", "mutation:deleteRepository"),
        ("mutation { createIssue { id } deleteRepository { id } }", "mutation:deleteRepository"),
        ("query A { viewer { id } } mutation B { deleteRepository { id } }", "mutation:deleteRepository"),
        ("mutation { ...F } fragment F on Mutation { deleteRepository { id } }", "mutation:deleteRepository"),
        (
            "mutation { ...F } fragment F on Mutation { ...G } fragment G on Mutation { x: gone { id } }",
            "mutation:gone",
        ),
        ("mutation { ... on Mutation { ... { deleteRepository { id } } } }", "mutation:deleteRepository"),
        (
            "mutation { createIssue(a: \"\"\"\n } \"\"\") { id }, deleteRepository { id } }",
            "mutation:deleteRepository",
        ),
        ("mutation { createIssue { id } # }\n deleteRepository { id } }", "mutation:deleteRepository"),
        ("subscription { issues { id } }", "subscription:issues"),
    ] {
        let refused = judged(&WRITES, document).unwrap_err();
        assert!(refused.ends_with(told), "{document}: {refused}");
    }
}

#[test]
fn what_cannot_be_read_is_refused() {
    let deep = format!("{}a{}", "{...".repeat(40), "}".repeat(40));
    for document in [
        "",
        "{}",
        "{ a",
        "{ a }}",
        "{ a ) }",
        "{ a { b ) } }",
        "query A",
        "extend type Query { a: Int }",
        "type Query { a: Int }",
        "{ ...Missing }",
        "{ a } fragment F on Query { a } fragment F on Query { b }",
        "fragment F on Query { a }",
        "fragment on on Query { a } { a }",
        "query { a } ; mutation { b }",
        "mutation { \"a\": b }",
        "{ a } \u{feff}mutation { b }",
        "{ $a }",
        deep.as_str(),
    ] {
        let refused = judged(&["query:*", "mutation:*", "subscription:*"], document).unwrap_err();
        assert!(refused.starts_with("its GraphQL cannot be judged: "), "{document}: {refused}");
    }
}

#[test]
fn a_body_is_one_object_with_a_document() {
    let permitted = operations(&["query:*"]);
    let is_ok = |body: &str| permitted.judge(body.as_bytes()).is_ok();
    assert!(is_ok(r#"{"query": "{ a }"}"#), "the control");
    assert!(is_ok(
        r#"{"query": "query A { a }", "operationName": "A", "variables": {"b": 1}, "extensions": null}"#
    ));
    for body in [
        "",
        "{ a }",
        r#"[{"query": "{ a }"}]"#,
        r#"["{a}", {"query": "mutation { b }"}, {"query": "mutation { b }"}, null]"#,
        r#" ["{a}"]"#,
        r#"{"query": "{ a }", "query": "mutation { b }"}"#,
        r#"{"query": "{ a }", "qu\u0065ry": "mutation { b }"}"#,
        r#"{"query": "{ a }"} {"query": "mutation { b }"}"#,
        r#"{"query": ["{ a }"]}"#,
        r#"{"query": null, "extensions": {"persistedQuery": {"version": 1, "sha256Hash": "0"}}}"#,
        r#"{"query": "{ a }", "extensions": {"persistedQuery": {"version": 1, "sha256Hash": "0"}}}"#,
        r#"{"query": "{ a }", "documentId": "1"}"#,
        r#"{"query": "{ a }", "Query": "mutation { b }"}"#,
        r#"{"id": "1"}"#,
        "query=%7B+a+%7D",
    ] {
        assert!(!is_ok(body), "{body}");
    }
}

#[test]
fn each_rule_must_permit_all_operations() {
    let purpose = vec![OperationPattern::parse("query:*").unwrap()];
    let mut both = operations(&["query:*", "mutation:*"]);
    both.permitted.push((OperationsRule::Purpose("forge".to_owned()), purpose));
    both.judge(br#"{"query": "{ a }"}"#).unwrap();
    let refused = both.judge(br#"{"query": "mutation { a }"}"#).unwrap_err();
    assert_eq!(refused.rule, "host.credential-purpose");
    assert!(
        refused.reason.contains("`forge` is not for the GraphQL operation mutation:a"),
        "{}",
        refused.reason
    );
}

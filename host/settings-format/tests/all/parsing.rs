//! The exact error texts of mistakes.

use std::path::Path;

use portcullis_settings_format::{BUILT_IN, Settings};
use proptest::prelude::*;

fn parse(text: &str) -> Result<Settings, String> {
    Settings::parse(text, Path::new("default.json")).map_err(|error| error.to_string())
}

/// Checks the error for settings with `value` in place of one list.
fn says(list: &str, value: &str, expected: &str) {
    let list_of = |name: &str| if name == list { value } else { "[]" };
    let text = format!(
        "{{\"network\":{{\"allowedDomains\":{},\"deniedDomains\":{}}},\n\"filesystem\":{{\"denyRead\":{},\"allowWrite\":{},\"denyWrite\":{}}}}}",
        list_of("allowedDomains"),
        list_of("deniedDomains"),
        list_of("denyRead"),
        list_of("allowWrite"),
        list_of("denyWrite"),
    );
    let said = parse(&text).err().unwrap_or_default();
    assert!(said.ends_with(expected) && said.is_empty() == expected.is_empty(), "{value}: {said:?}");
}

#[test]
fn the_built_in_settings_have_these_lists() {
    let expected = serde_json::json!({
        "enabled": true,
        "network": { "allowedDomains": [], "deniedDomains": [] },
        "filesystem": {
            "denyRead": ["/Users", "/home"],
            "allowRead": [".", "~/.pi"],
            "allowWrite": ["."],
            "denyWrite": []
        }
    });
    assert_eq!(serde_json::from_str::<serde_json::Value>(BUILT_IN).unwrap(), expected);
    let settings = Settings::built_in().unwrap();
    assert!(settings.enabled && settings.kept.is_empty());
}

#[test]
fn whole_messages() {
    let cases = [
        ("", "line 1, column 1: the file is empty, write `{}` at least or remove it"),
        ("[]", "line 1, column 1: `the whole file` has to be an object, found a list"),
        (
            "{\n  \"network\": {\n    \"allowedDomain\": []\n  }\n}",
            "line 3, column 5: unknown key `allowedDomain`, did you mean `allowedDomains`?",
        ),
        ("{\n  \"enabled\": 1\n}", "line 2, column 14: `enabled` has to be true or false, found a number"),
        ("{\"colour\":\"strict\"}", "line 1, column 2: unknown key `colour`"),
        ("{\"layout\":\"layers\"}", "line 1, column 11: `layout`: `layers` is not `projects` or `layered`"),
        ("{\"\\u001b[31m\":1}", "line 1, column 2: unknown key `\\u{1b}[31m`"),
        (
            "{\"ask\":{\"hold\":\"later\"}}",
            "line 1, column 16: `ask.hold`: `later` is not `connect` or `accept`",
        ),
        (
            "{\"ask\":{\"timeoutMs\":5}}",
            "line 1, column 21: `ask.timeoutMs` has to be a whole number from 1000 to 86400000, found a number",
        ),
    ];
    for (text, expected) in cases {
        assert_eq!(parse(text).unwrap_err(), format!("reading settings `default.json`: {expected}"));
    }
}

#[test]
fn domains() {
    for good in [
        r#"["example.com"]"#,
        r#"["*.example.com:443"]"#,
        r#"["localhost:8080"]"#,
        r#"["[::1]:80"]"#,
        r#"["10.1.2.3"]"#,
    ] {
        says("allowedDomains", good, "");
        says("deniedDomains", good, "");
    }
    says("deniedDomains", r#"["*", "*:22", "*.onion"]"#, "");
    says("allowedDomains", r#"["*"]"#, "`*` would allow every host, name the hosts one by one");
    says("allowedDomains", r#"["*:22"]"#, "`*` would allow every host, name the hosts one by one");
    says("allowedDomains", r#"["*.com"]"#, "`*.com` would allow a whole top-level domain, name more of it");
    for bad in
        ["https://example.com", "example.com/a", "example.com:0", "example.com:70000", "a b", "", "a*.com"]
    {
        says(
            "allowedDomains",
            &format!("[\"{bad}\"]"),
            "write `host`, `*.host` or `host:port` without scheme or path",
        );
    }
    says("allowedDomains", "[1]", "`network.allowedDomains[0]` has to be a domain, found a number");
}

#[test]
fn paths() {
    says("denyRead", r#"["a", "~/b", "/c/**", { "path": "[x]*", "literal": true }]"#, "");
    says(
        "denyRead",
        r#"[""]"#,
        "`filesystem.denyRead[0]`: an empty path, write `.` for the working directory",
    );
    says("denyRead", r#"["a\u0000b"]"#, "`filesystem.denyRead[0]`: a zero byte cannot be part of it");
    says(
        "denyRead",
        r#"["~root/x"]"#,
        "`filesystem.denyRead[0]`: `~root/x` is not understood, write the home directory in full",
    );
    says(
        "denyWrite",
        r#"[{ "path": "a" }]"#,
        "`filesystem.denyWrite[0]`: write `{ \"path\": …, \"literal\": true }`, or the path as plain text",
    );
    says(
        "denyWrite",
        r#"[{ "path": "a", "literal": false }]"#,
        "`filesystem.denyWrite[0].literal`: it has to be true, or left out",
    );
    says("denyWrite", r#"[{ "path": "a", "literal": true, "x": 1 }]"#, "unknown key `x`");
    says("allowWrite", r#""a""#, "`filesystem.allowWrite` has to be a list, each item a path, found text");
}

#[test]
fn a_reason_needs_its_entry() {
    let text = BUILT_IN
        .replace("\"deniedDomains\": []", "\"deniedDomains\": [], \"deniedDomainReasons\": {\"a.b\": \"x\"}");
    assert!(parse(&text).unwrap_err().ends_with("no entry of `deniedDomains` is written like this"));
}

#[test]
fn entries_know_where_they_stand() {
    let text = "{\"network\":{\"allowedDomains\":[],\"deniedDomains\":[\n  \"a.example\"]},\n\"filesystem\":{\"denyRead\":[],\"allowWrite\":[],\"denyWrite\":[]}}";
    let settings = parse(text).unwrap();
    let entry = settings.network.denied_domains.first().unwrap();
    assert_eq!(entry.origin.to_string(), "default.json:2:3 (network.deniedDomains[0])");
}

proptest! {
    #[test]
    fn no_text_makes_it_panic(text in any::<String>()) {
        let _outcome = parse(&text).is_ok();
    }

    #[test]
    fn no_value_in_a_list_makes_it_panic(text in "\\PC{0,40}", list in 0..5_usize) {
        let value = serde_json::json!([text]);
        let mut document: serde_json::Value = serde_json::from_str(BUILT_IN).unwrap();
        let pointer = ["/network/allowedDomains", "/network/deniedDomains", "/filesystem/denyRead",
            "/filesystem/allowWrite", "/filesystem/denyWrite"][list];
        *document.pointer_mut(pointer).unwrap() = value;
        let _outcome = parse(&document.to_string()).is_ok();
    }
}

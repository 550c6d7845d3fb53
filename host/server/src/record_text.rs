//! Descriptions of records for users.

use std::path::Path;

use portcullis_audit::{Placed, VerdictLine};
use portcullis_decision::{RefusalOrigin, RefusalText, allow_path, path_text};
use portcullis_text::tilde;
use serde_json::{Value, json};

/// Returns the id of a record, shortened for typing.
pub fn id(log: &str, sequence: u64) -> String {
    /// Number of digits of a random name, enough to distinguish sessions; an ambiguous id is reported.
    const SHORT: usize = 8;
    let is_random = log.len() == 16 && log.chars().all(|character| character.is_ascii_hexdigit());
    let short: String = log.chars().take(if is_random { SHORT } else { usize::MAX }).collect();
    format!("{short}:{sequence}")
}

/// Returns a record as JSON, with its id and log.
pub fn record(placed: &Placed) -> serde_json::Result<Value> {
    let mut value = serde_json::to_value(&placed.line)?;
    if let Value::Object(members) = &mut value {
        members.insert("id".to_owned(), json!(id(&placed.log, placed.line.sequence)));
        members.insert("log".to_owned(), json!(placed.log));
    }
    Ok(value)
}

/// Describes a refusal in one line: what, why, and the rule.
pub fn refusal(line: &VerdictLine, home: &Path) -> String {
    let asked = asked(&line.request);
    let home = home.to_string_lossy();
    let asked = match home.as_ref() {
        "/" | "" => asked,
        home => asked.replace(&format!("{home}/"), "~/"),
    };
    format!("{asked}: {} [{} of {}]", line.reason.trim_end_matches('.'), line.rule, line.policy)
}

/// Returns how the user can allow a refused request; `None` for an allowed one.
pub fn remedy(line: &VerdictLine) -> Option<String> {
    if line.effect == "allow" {
        return None;
    }
    // A rule asks, but a running command could not wait for the answer.
    let has = |verdict: &str| line.policies.iter().any(|vote| vote.verdict == verdict);
    let is_unasked = line.answered_by.is_empty() && has("ask") && !has("deny");
    let refusal = RefusalText {
        origin: match line.answered_by.as_str() {
            "user" => RefusalOrigin::User,
            "" | "grant" if !is_unasked => RefusalOrigin::Rule,
            _ => RefusalOrigin::Unanswered,
        },
        ..RefusalText::by_rule(&line.policy, &line.rule, &line.reason)
    };
    let remedy = refusal.remedy(allowed_as(&line.request).as_deref());
    // `portcullis allow` takes existing paths only.
    let is_missing = line.request.pointer("/action/file/path/kind") == Some(&json!("missing"));
    Some(if is_unasked && is_missing { format!("create it yourself, then {remedy}") } else { remedy })
}

/// Returns the words that `portcullis allow` takes for a request, if it takes any.
fn allowed_as(request: &Value) -> Option<String> {
    let (kind, action) = request.get("action")?.as_object()?.iter().next()?;
    match kind.as_str() {
        "file" => {
            let path = path_text::decode(action.pointer("/path/canonical")?.as_str()?)?;
            let is_read = ["read", "list", "search"].contains(&operation(action.get("operation")).as_str());
            Some(allow_path(&path, !is_read))
        }
        "network" => asked(request).strip_prefix("connect ").map(str::to_owned),
        _ => None,
    }
}

/// Describes the action of a request; paths of files in the directory `home` begin with `~`.
pub fn shown(request: &Value, home: &Path) -> String {
    match request.pointer("/action/file") {
        Some(file) => file_access(file, |path| tilde(path, &home.to_string_lossy())),
        None => asked(request),
    }
}

/// Describes a file operation.
fn file_access(action: &Value, shown: impl Fn(&str) -> String) -> String {
    let path = action.pointer("/path/canonical").map(plain).unwrap_or_default();
    let operation = operation(action.get("operation"));
    let verb = match operation.as_str() {
        "create-directory" => "create the directory",
        "change-metadata" => "change the metadata of",
        verb => verb,
    };
    format!("{verb} {}", shown(&path))
}

/// Describes the action of a request.
///
/// Recorded requests can be masked, shortened, or of an earlier version; unknown parts are left out.
pub fn asked(request: &Value) -> String {
    let Some((kind, action)) =
        request.get("action").and_then(Value::as_object).and_then(|action| action.iter().next())
    else {
        return "a request that was too long to be kept".to_owned();
    };
    let text = |pointer: &str| action.pointer(pointer).map(plain).unwrap_or_default();
    match kind.as_str() {
        "file" => file_access(action, str::to_owned),
        "command" => format!("run {}", text("/script")),
        "escalation" => format!("run outside {}", text("/script")),
        "network" => {
            // A name or an address, each under the key of its kind.
            let host = action.get("target").map(|target| {
                target
                    .as_object()
                    .and_then(|kinds| kinds.values().next())
                    .map_or_else(|| plain(target), plain)
            });
            let (host, port) = (host.unwrap_or_default(), text("/port"));
            let is_v6 = host.parse::<std::net::Ipv6Addr>().is_ok();
            let place = if is_v6 { format!("[{host}]:{port}") } else { format!("{host}:{port}") };
            let stage = action.get("stage").and_then(Value::as_object).and_then(|kinds| kinds.keys().next());
            match stage.map(String::as_str) {
                Some("http") => format!("request {} {}", text("/stage/http/method"), text("/stage/http/url")),
                Some("client-hello") => format!("connect with TLS to {place}"),
                Some("resolved") => format!("connect to {place}, whose name is resolved"),
                Some(stage) => format!("{stage} {place}"),
                None => format!("connect {place}"),
            }
        }
        "tool" => format!("tool {}", text("/name")),
        _ => kind.clone(),
    }
}

/// Returns the origin of a request, in words.
pub fn asked_by(recorded: &str) -> &str {
    match recorded {
        "process" => "a command",
        "agent" => "the agent",
        "user" => "you",
        "extension" => "an extension",
        known => known,
    }
}

/// Returns the author of an answer, in words.
pub fn answered_by(recorded: &str) -> &str {
    match recorded {
        "user" => "you",
        "grant" => "an earlier answer of yours",
        "nobody" => "nobody: there was no user interface",
        "timeout" => "nobody: no answer came in time",
        "withdrawal" => "nobody: the question was withdrawn",
        known => known,
    }
}

/// Returns the name of an operation: a string if it has no details, else the key of an object.
fn operation(value: Option<&Value>) -> String {
    let name = value.and_then(|value| match value.as_object() {
        Some(members) => members.keys().next().map(String::as_str),
        None => value.as_str(),
    });
    name.unwrap_or("file").to_owned()
}

fn plain(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests() {
        for (action, expected) in [
            (json!({ "file": { "path": { "canonical": "/a" }, "operation": "read" } }), "read /a"),
            (json!({ "file": { "path": { "canonical": "/a" }, "operation": { "write": 1 } } }), "write /a"),
            (
                json!({ "file": { "path": { "canonical": "/a" }, "operation": "create-directory" } }),
                "create the directory /a",
            ),
            (json!({ "command": { "script": "make test" } }), "run make test"),
            (json!({ "network": { "target": "a.test", "port": 443 } }), "connect a.test:443"),
            (json!({ "network": { "target": { "address": "::1" }, "port": 443 } }), "connect [::1]:443"),
            (json!({ "tool": { "name": "t" } }), "tool t"),
            (json!({ "socket": { "x": 1 } }), "socket"),
            (json!({ "file": {} }), "file "),
            (json!({ "command": { "script": { "length": 9 } } }), "run {\"length\":9}"),
            (json!(null), "a request that was too long to be kept"),
        ] {
            assert_eq!(asked(&json!({ "action": action })), expected);
        }
    }

    #[test]
    fn a_denial_by_a_rule_is_not_allowed_by_an_answer() {
        let action = json!({ "file": { "path": { "canonical": "/h/.bashrc", "kind": "missing" },
            "operation": { "write": 1 } } });
        let line = |policies: &[(&str, &str)], policy: &str, rule: &str| VerdictLine {
            request: json!({ "action": action }),
            effect: "deny".to_owned(),
            policy: policy.to_owned(),
            rule: rule.to_owned(),
            policies: policies
                .iter()
                .map(|(rule, verdict)| portcullis_audit::PolicyLine {
                    rule: (*rule).to_owned(),
                    verdict: (*verdict).to_owned(),
                    ..portcullis_audit::PolicyLine::default()
                })
                .collect(),
            ..VerdictLine::default()
        };
        let asks = ("host.shell-files", "ask");
        let told = remedy(&line(&[("host.start-up-files", "deny"), asks], "host", "host.start-up-files"));
        assert_eq!(
            told.as_deref(),
            Some("`host.start-up-files` in `protections.lift`: portcullis config edit")
        );
        let told = remedy(&line(&[asks], "host", "host.shell-files"));
        assert_eq!(told.as_deref(), Some("create it yourself, then portcullis allow /h/.bashrc --write"));
    }

    /// Checks the recorded form of current requests, not only the form that the code above reads.
    #[test]
    fn real_requests() {
        use portcullis_decision::Request;
        use portcullis_decision::pattern::HostName;
        use portcullis_decision::request::{
            Action, Direction, HttpHead, NetworkAccess, Origin, ProcessInfo, Stage, ToolCall, Transport,
        };
        let asked_of = |action: Action| {
            let id = "r1".to_owned();
            let request = Request { id, parent: None, origin: Origin::Agent, action, facts: Vec::new() };
            asked(&serde_json::to_value(request).unwrap())
        };
        let access = NetworkAccess {
            transport: Transport::Tcp,
            direction: Direction::Outbound,
            target: HostName::parse("a.test").unwrap(),
            port: 443,
            stage: Stage::Connect,
            process: ProcessInfo::default(),
        };
        let at = |stage| asked_of(Action::Network(NetworkAccess { stage, ..access.clone() }));
        assert_eq!(at(Stage::Connect), "connect a.test:443");
        assert_eq!(at(Stage::ClientHello("a.test".to_owned())), "connect with TLS to a.test:443");
        let (method, url) = ("POST".to_owned(), "http://a.test/b".to_owned());
        let head = HttpHead { method, url, header_names: Vec::new() };
        assert_eq!(at(Stage::Http(head)), "request POST http://a.test/b");
        let call = ToolCall { name: "t".to_owned(), provider: String::new(), input: String::new() };
        assert_eq!(asked_of(Action::Tool(call)), "tool t");
    }

    #[test]
    fn what_can_be_allowed_is_named_as_allow_takes_it() {
        let file =
            |operation: Value| json!({ "file": { "path": { "canonical": "/a b" }, "operation": operation } });
        let network = json!({ "network": { "target": { "domain": "a.test" }, "port": 443 } });
        for (action, expected) in [
            (file(json!("read")), Some("'/a b'")),
            (file(json!({ "search": {} })), Some("'/a b'")),
            (file(json!({ "write": {} })), Some("'/a b' --write")),
            (network, Some("a.test:443")),
            (json!({ "command": { "script": "make" } }), None),
        ] {
            assert_eq!(allowed_as(&json!({ "action": action })).as_deref(), expected, "{action}");
        }
    }

    #[test]
    fn a_refusal_without_a_question_says_how_to_allow_it() {
        use portcullis_audit::PolicyLine;
        let path = json!({ "canonical": "/h/new", "kind": "missing" });
        let mut line = VerdictLine {
            request: json!({ "action": { "file": { "path": path, "operation": { "write": {} } } } }),
            effect: "deny".to_owned(),
            policy: "base".to_owned(),
            rule: "base.closed".to_owned(),
            ..VerdictLine::default()
        };
        assert_eq!(remedy(&line).as_deref(), Some("no answer allows it"));
        line.policies.push(PolicyLine { verdict: "ask".to_owned(), ..PolicyLine::default() });
        let expected = "create it yourself, then portcullis allow /h/new --write";
        assert_eq!(remedy(&line).as_deref(), Some(expected));
        line.answered_by = "user".to_owned();
        assert_eq!(remedy(&line).as_deref(), Some("portcullis allow /h/new --write"));
    }

    #[test]
    fn ids() {
        assert_eq!(id("0123456789abcdef", 3), "01234567:3");
        assert_eq!(id("0123456789abcdef.2", 3), "0123456789abcdef.2:3");
        assert_eq!(id("s", 1), "s:1");
    }
}

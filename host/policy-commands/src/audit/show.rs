//! `portcullis audit show`: a decision and its outcome, as they were recorded.

use portcullis_audit::{Decided, OUTPUT, winner};
use portcullis_bootstrap::process_env::ProcessEnv;
use portcullis_command_line::args::audit::Decision;
use portcullis_command_line::exit::{self, Exit};
use portcullis_command_line::human::{ago, path};
use portcullis_command_line::output::{Cell, Page, Tint, cell, tinted};
use portcullis_server::record_text;
use portcullis_text::{counted, tilde, utc};
use serde_json::{Value, json};

use super::logs::directory;
use crate::explain::heard;

pub(super) fn run(around: &ProcessEnv, wanted: &Decision) -> exit::Outcome {
    let found = directory(around).decision(&wanted.id)?;
    let mut page = Page::new(around);
    if wanted.json {
        page.json(&json!({
            "log": found.log,
            "id": record_text::id(&found.name, found.sequence),
            "session": found.session,
            "verdict": found.verdict,
            "outcome": found.outcome,
        }));
    } else {
        human(&mut page, around, &found);
    }
    page.print()?;
    Ok(Exit::Done)
}

fn human(page: &mut Page, around: &ProcessEnv, found: &Decided) {
    let verdict = &found.verdict;
    let asked = record_text::shown(&verdict.request, &around.home);
    page.row("", &[tinted(&verdict.effect, Tint::for_word(&verdict.effect)), cell(&asked)], &[]);
    let origin = verdict.request.get("origin").and_then(Value::as_str).unwrap_or("unknown");
    let mut rows = vec![
        ("when", format!("{} ({} UTC)", ago(verdict.at_ms), utc(verdict.at_ms))),
        ("id", record_text::id(&found.name, found.sequence)),
        ("log", path(around, &found.log)),
        ("session", found.session.clone()),
        ("asked by", record_text::asked_by(origin).to_owned()),
    ];
    rows.extend(request_rows(&verdict.request, &around.home.to_string_lossy()));
    rows.extend([
        ("because", verdict.reason.clone()),
        ("rule", format!("{} of {}", verdict.rule, verdict.policy)),
        ("set by", path(around, &verdict.setting)),
        ("answered by", record_text::answered_by(&verdict.answered_by).to_owned()),
        ("decided in", format!("{} µs", verdict.cost_us)),
    ]);
    let grants = verdict.grants.as_array().map_or(0, Vec::len);
    if grants > 0 {
        rows.push(("your answers", format!("{} applied", counted(grants, "grant"))));
    }
    match &found.outcome {
        Some(outcome) => {
            let when = format!("{}, {} ({} UTC)", outcome.result, ago(outcome.at_ms), utc(outcome.at_ms));
            rows.push(("outcome", when));
            rows.extend(outcome.detail.get(OUTPUT).map(|output| ("output", output_in_words(output))));
        }
        None => rows.push(("outcome", "none recorded".to_owned())),
    }
    let rows: Vec<Vec<Cell>> = rows
        .iter()
        .filter(|(_, value)| !value.is_empty())
        .map(|(name, value)| vec![tinted(name, Tint::Faint), cell(value)])
        .collect();
    page.table("  ", &rows);
    page.line("");
    heard(page, around, verdict, winner(verdict));
    page.line("\nThe record has more fields: see --json.");
}

/// Returns the recorded details of a request. Parts that are masked or missing are left out.
fn request_rows(request: &Value, home: &str) -> Vec<(&'static str, String)> {
    let Some((kind, action)) =
        request.get("action").and_then(Value::as_object).and_then(|action| action.iter().next())
    else {
        return Vec::new();
    };
    let text = |pointer: &str| action.pointer(pointer).and_then(Value::as_str).unwrap_or_default();
    let path = |pointer: &str| tilde(text(pointer), home);
    let number = |pointer: &str| action.pointer(pointer).and_then(Value::as_u64).unwrap_or_default();
    match kind.as_str() {
        "file" => {
            let (given, canonical) = (text("/path/given"), text("/path/canonical"));
            let other = ["/operation/move/canonical", "/operation/link/canonical", "/operation/symlink"];
            vec![
                ("written as", if given == canonical { "" } else { given }.to_owned()),
                ("path", path("/path/canonical")),
                ("to", other.map(path).into_iter().find(|path| !path.is_empty()).unwrap_or_default()),
                ("kind", text("/path/kind").to_owned()),
            ]
        }
        "command" | "escalation" => {
            let limit = number("/timeout-ms");
            vec![
                ("directory", path("/cwd/canonical")),
                ("shell", text("/shell").to_owned()),
                ("time limit", if limit == 0 { String::new() } else { format!("{} s", limit / 1000) }),
            ]
        }
        "network" => {
            let (program, pid) = (text("/process/program"), number("/process/pid"));
            vec![("program", if pid == 0 { String::new() } else { format!("{program} (process {pid})") })]
        }
        "tool" => vec![("of", text("/provider").to_owned()), ("input", text("/input").to_owned())],
        _ => Vec::new(),
    }
}

/// Describes the change of an output: by which policy, under which rule, and why.
fn output_in_words(output: &Value) -> String {
    let text = |key: &str| output.get(key).and_then(Value::as_str).unwrap_or_default();
    format!("changed by {} [{}]: {}", text("policy"), text("rule"), text("reason"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_are_in_words() {
        let check = |action: Value, expected: &[(&str, &str)]| {
            let rows = request_rows(&json!({ "action": action }), "/a");
            let rows: Vec<_> = rows.iter().map(|(name, value)| (*name, value.as_str())).collect();
            let rows: Vec<_> = rows.into_iter().filter(|(_, value)| !value.is_empty()).collect();
            assert_eq!(rows, expected);
        };
        let path = json!({ "given": "../b", "canonical": "/a/b", "kind": "missing" });
        check(
            json!({ "file": { "path": path, "operation": { "move": { "canonical": "/c" } } } }),
            &[("written as", "../b"), ("path", "~/b"), ("to", "/c"), ("kind", "missing")],
        );
        check(
            json!({ "command": { "script": "make", "cwd": { "canonical": "/b" }, "timeout-ms": 2_000 } }),
            &[("directory", "/b"), ("time limit", "2 s")],
        );
        check(
            json!({ "network": { "process": { "pid": 7, "program": "/usr/bin/curl" } } }),
            &[("program", "/usr/bin/curl (process 7)")],
        );
        check(json!({ "tool": { "name": "t", "input": { "length": 9 } } }), &[]);
        assert!(request_rows(&json!(null), "/a").is_empty());
    }
}

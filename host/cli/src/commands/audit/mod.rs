//! `portcullis audit`: the log of decisions and outcomes.

pub(crate) mod logs;
mod stats;
mod tail;
mod verify;

use portcullis_bootstrap::process_env::ProcessEnv;
use portcullis_server::record_text;
use serde_json::{Value, json};

use crate::args::audit::{Audit, Decision};
use crate::exit::Exit;
use crate::output::{Page, Tint, cell, tinted, utc};
use logs::directory;

/// Runs the subcommand.
pub(crate) fn run(audit: Audit) -> crate::exit::Outcome {
    let around = ProcessEnv::read()?;
    match audit {
        Audit::Tail(options) => tail::run(&around, &options),
        Audit::Show(decision) => show(&around, &decision),
        Audit::Verify { file, json } => verify::run(&around, file, json),
        Audit::Stats { json } => stats::run(&around, json),
    }
}

fn show(around: &ProcessEnv, wanted: &Decision) -> crate::exit::Outcome {
    let found = directory(around).decision(&wanted.id)?;
    let record = json!({
        "log": found.log,
        "id": record_text::id(&found.name, found.sequence),
        "session": found.session,
        "verdict": found.verdict,
        "outcome": found.outcome,
    });
    let mut page = Page::new(around);
    if wanted.json {
        page.json(&record);
    } else {
        let mut rows = Vec::new();
        flatten("", &record, &mut rows);
        for (name, value) in &mut rows {
            if name.ends_with("at_ms") {
                *value = value.parse().map(utc).unwrap_or_default();
            }
        }
        let rows: Vec<_> =
            rows.iter().map(|(name, value)| vec![tinted(name, Tint::Faint), cell(value)]).collect();
        page.table("", &rows);
    }
    page.print()?;
    Ok(Exit::Done)
}

/// Adds a row for each value, with the path to it; empty values are left out.
fn flatten(name: &str, value: &Value, rows: &mut Vec<(String, String)>) {
    let inside = |key: &str| if name.is_empty() { key.to_owned() } else { format!("{name}.{key}") };
    match value {
        Value::Null => {}
        Value::Object(members) => {
            members.iter().for_each(|(key, member)| flatten(&inside(key), member, rows));
        }
        Value::Array(items) => {
            items
                .iter()
                .enumerate()
                .for_each(|(index, item)| flatten(&inside(&index.to_string()), item, rows));
        }
        Value::String(text) if text.is_empty() => {}
        Value::String(text) => rows.push((name.to_owned(), text.clone())),
        Value::Bool(_) | Value::Number(_) => rows.push((name.to_owned(), value.to_string())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_have_their_way() {
        let mut rows = Vec::new();
        flatten("", &json!({ "a": { "b": [1, { "c": "x" }], "d": null, "e": "" }, "f": true }), &mut rows);
        let rows: Vec<_> = rows.iter().map(|(name, value)| format!("{name}={value}")).collect();
        assert_eq!(rows, ["a.b.0=1", "a.b.1.c=x", "f=true"]);
    }
}

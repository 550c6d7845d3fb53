//! Messages of RFC 5424, with JSON as the text.

use serde_json::{Map, Value, json};

use super::machine::{PROGRAM, host, rfc3339};
use crate::event::{Event, Kind};

/// The facility "log audit".
const AUDIT: u32 = 13;
/// Severities.
const ERROR: u32 = 3;
const WARNING: u32 = 4;
const INFORMATIONAL: u32 = 6;
/// The longest name of a machine in the format.
const HOST_MAX: usize = 255;

pub(super) fn message(event: &Event) -> Vec<u8> {
    let severity = match &event.kind {
        Kind::Unreadable(_) => ERROR,
        Kind::Decision if event.is_refusal() => WARNING,
        Kind::Decision | Kind::Outcome { .. } => INFORMATIONAL,
    };
    let priority = AUDIT * 8 + severity;
    let time = rfc3339(event.at_ms);
    let host: String = host().chars().filter(char::is_ascii_graphic).take(HOST_MAX).collect();
    let (process, kind) = (std::process::id(), event.kind.name());
    format!("<{priority}>1 {time} {host} {PROGRAM} {process} {kind} - {}", text(event)).into_bytes()
}

/// Returns the fields of an event as one JSON object, without line ends.
pub(super) fn text(event: &Event) -> Value {
    let mut members = Map::new();
    let mut add = |name: &str, value: Value| members.insert(name.to_owned(), value);
    add("id", event.id.as_str().into());
    add("kind", event.kind.name().into());
    add("summary", event.summary.as_str().into());
    if !event.session.is_empty() {
        add("session", event.session.as_str().into());
    }
    for (name, value) in event.decider.fields() {
        add(name, value.into());
    }
    match &event.kind {
        Kind::Decision => {}
        Kind::Outcome { decision, result } => {
            add("decision", decision.as_str().into());
            add("result", result.as_str().into());
        }
        Kind::Unreadable(reason) => {
            add("unreadable", reason.as_str().into());
        }
    }
    if event.repeated {
        add("repeated", true.into());
    }
    if !event.record.is_null() {
        add("record", event.record.clone());
    }
    json!(members)
}

//! Entries of systemd's journal in its native protocol: `NAME=VALUE` lines, or a name, a length and a value.

use super::machine::PROGRAM;
use crate::event::{Event, Kind};

/// Priorities of syslog.
const ERROR: &str = "3";
const WARNING: &str = "4";
const INFORMATIONAL: &str = "6";

pub(super) fn message(event: &Event) -> Vec<u8> {
    let priority = match &event.kind {
        Kind::Unreadable(_) => ERROR,
        Kind::Decision if event.is_refusal() => WARNING,
        Kind::Decision | Kind::Outcome { .. } => INFORMATIONAL,
    };
    let mut entry = Vec::new();
    field(&mut entry, "MESSAGE", &event.summary);
    field(&mut entry, "PRIORITY", priority);
    field(&mut entry, "SYSLOG_IDENTIFIER", PROGRAM);
    let microseconds = event.at_ms.saturating_mul(1000).to_string();
    field(&mut entry, "SYSLOG_TIMESTAMP", &microseconds);
    let mut own = |name: &str, value: &str| {
        field(&mut entry, &format!("PORTCULLIS_{}", name.to_uppercase()), value);
    };
    own("id", &event.id);
    own("kind", event.kind.name());
    if !event.session.is_empty() {
        own("session", &event.session);
    }
    for (name, value) in event.decider.fields() {
        own(name, value);
    }
    match &event.kind {
        Kind::Decision => {}
        Kind::Outcome { decision, result } => {
            own("decision", decision);
            own("result", result);
        }
        Kind::Unreadable(reason) => own("unreadable", reason),
    }
    if event.repeated {
        own("repeated", "true");
    }
    if !event.record.is_null() {
        own("record", &event.record.to_string());
    }
    entry
}

fn field(entry: &mut Vec<u8>, name: &str, value: &str) {
    entry.extend_from_slice(name.as_bytes());
    // A value with line ends could begin a field of its own.
    if value.contains('\n') {
        entry.push(b'\n');
        entry.extend_from_slice(&(value.len() as u64).to_le_bytes());
    } else {
        entry.push(b'=');
    }
    entry.extend_from_slice(value.as_bytes());
    entry.push(b'\n');
}

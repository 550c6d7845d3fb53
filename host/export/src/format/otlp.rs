//! Logs of OpenTelemetry in the JSON form of OTLP.
//!
//! Source: the specification of OTLP 1, and the semantic conventions for `log.record.uid`, `service` and `host`.

use serde_json::{Value, json};

use super::machine::{PROGRAM, VERSION, host};
use crate::answer::Accepted;
use crate::event::{Event, Kind};
use crate::source::now_ms;

/// Severities of OpenTelemetry.
const INFO: (u32, &str) = (9, "INFO");
const WARN: (u32, &str) = (13, "WARN");
const ERROR: (u32, &str) = (17, "ERROR");

pub(super) fn batch(events: &[Event]) -> Value {
    let observed = nanoseconds(now_ms());
    let records: Vec<Value> = events.iter().map(|event| record(event, &observed)).collect();
    let resource = [("service.name", PROGRAM), ("service.version", VERSION), ("host.name", host())];
    json!({ "resourceLogs": [{
        "resource": { "attributes": resource.map(|(name, value)| text(name, value)) },
        "scopeLogs": [{
            "scope": { "name": "portcullis.audit", "version": VERSION },
            "logRecords": records,
        }],
    }] })
}

fn record(event: &Event, observed: &str) -> Value {
    let (number, severity) = match &event.kind {
        Kind::Unreadable(_) => ERROR,
        Kind::Decision if event.is_refusal() => WARN,
        Kind::Decision | Kind::Outcome { .. } => INFO,
    };
    let mut attributes = vec![text("log.record.uid", &event.id)];
    if !event.session.is_empty() {
        attributes.push(text("session.id", &event.session));
    }
    attributes.extend(event.decider.fields().map(|(name, value)| text(&format!("portcullis.{name}"), value)));
    match &event.kind {
        Kind::Decision => {}
        Kind::Outcome { decision, result } => {
            attributes.push(text("portcullis.decision", decision));
            attributes.push(text("portcullis.result", result));
        }
        Kind::Unreadable(reason) => attributes.push(text("portcullis.unreadable", reason)),
    }
    if event.repeated {
        attributes.push(json!({ "key": "portcullis.repeated", "value": { "boolValue": true } }));
    }
    if !event.record.is_null() {
        attributes.push(text("log.record.original", &event.record.to_string()));
    }
    json!({
        "timeUnixNano": nanoseconds(event.at_ms),
        "observedTimeUnixNano": observed,
        "severityNumber": number,
        "severityText": severity,
        "eventName": format!("portcullis.{}", event.kind.name()),
        "body": { "stringValue": event.summary },
        "attributes": attributes,
    })
}

fn text(name: &str, value: &str) -> Value {
    json!({ "key": name, "value": { "stringValue": value } })
}

/// Writes nanoseconds: 64-bit numbers are texts in this form.
fn nanoseconds(ms: u64) -> String {
    (u128::from(ms) * 1_000_000).min(u128::from(u64::MAX)).to_string()
}

/// Reads `ExportLogsServiceResponse`. Records that it rejects must not be sent again.
pub(super) fn accepted(said: &str) -> Accepted {
    let answer: Value = serde_json::from_str(said).unwrap_or_default();
    let Some(partial) = answer.get("partialSuccess") else { return Accepted::default() };
    let refused = match partial.get("rejectedLogRecords") {
        Some(Value::String(digits)) => digits.parse().unwrap_or(0),
        Some(number) => number.as_u64().unwrap_or(0),
        None => 0,
    };
    let reason = partial.get("errorMessage").and_then(Value::as_str).unwrap_or_default();
    Accepted { refused, reason: reason.chars().filter(|one| !one.is_control()).take(200).collect() }
}

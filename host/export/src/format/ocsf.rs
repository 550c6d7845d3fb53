//! Events of the Open Cybersecurity Schema Framework, version 1.3: class "API Activity" with the profile
//! "Security Control". What the agent wants to do is the API, and the decision its authorization.
//!
//! An unreadable line of the log is a "Base Event".

use serde_json::{Map, Value, json};

use super::machine::{PROGRAM, VERSION, host};
use crate::event::{Event, Kind};

/// The version of the schema.
const SCHEMA: &str = "1.3.0";
/// API Activity, in the category Application Activity.
const API_ACTIVITY: (u32, u32) = (6003, 6);
/// Base Event, in no category.
const BASE_EVENT: (u32, u32) = (0, 0);
/// The activity "Other", which an action of an agent is.
const OTHER: u32 = 99;

/// Severities.
const INFORMATIONAL: u32 = 1;
const MEDIUM: u32 = 3;
const HIGH: u32 = 4;

pub(super) fn batch(events: &[Event]) -> Value {
    events.iter().map(one).collect()
}

/// Writes one event.
pub(super) fn one(event: &Event) -> Value {
    let is_unreadable = matches!(event.kind, Kind::Unreadable(_));
    let (class, category) = if is_unreadable { BASE_EVENT } else { API_ACTIVITY };
    let severity = match &event.kind {
        Kind::Unreadable(_) => HIGH,
        Kind::Decision if event.is_refusal() => MEDIUM,
        Kind::Decision | Kind::Outcome { .. } => INFORMATIONAL,
    };
    let mut written = json!({
        "class_uid": class,
        "category_uid": category,
        "activity_id": OTHER,
        "activity_name": event.kind.name(),
        "type_uid": class * 100 + OTHER,
        "time": event.at_ms,
        "severity_id": severity,
        "message": event.summary,
        "metadata": {
            "version": SCHEMA,
            "uid": event.id,
            "log_name": "portcullis.audit",
            "profiles": if is_unreadable { json!([]) } else { json!(["security_control"]) },
            "product": { "name": "Portcullis", "vendor_name": "Portcullis", "version": VERSION },
        },
        "unmapped": unmapped(event),
    });
    if let (false, Value::Object(members)) = (is_unreadable, &mut written) {
        members.extend(api_activity(event));
    }
    if let (false, Value::Object(members)) = (event.record.is_null(), &mut written) {
        members.insert("raw_data".to_owned(), event.record.to_string().into());
    }
    written
}

fn api_activity(event: &Event) -> Map<String, Value> {
    let decider = &event.decider;
    let (action, disposition) = match decider.effect.as_str() {
        "allow" => (1, 1),
        "deny" => (2, 2),
        _ => (0, 0),
    };
    let policy = json!({ "name": decider.policy, "uid": decider.rule, "desc": decider.reason });
    let mut members = Map::new();
    let mut add = |name: &str, value: Value| members.insert(name.to_owned(), value);
    add("action_id", action.into());
    add("disposition_id", disposition.into());
    add("policy", policy.clone());
    add(
        "actor",
        json!({
            "app_name": PROGRAM,
            "session": { "uid": event.session },
            "authorizations": [{ "decision": decider.effect, "policy": policy }],
        }),
    );
    add("api", json!({ "operation": decider.action, "service": { "name": PROGRAM } }));
    add("src_endpoint", json!({ "hostname": host() }));
    if let Kind::Outcome { decision, result } = &event.kind {
        let is_success = matches!(result.as_str(), "done" | "exit 0") || result.starts_with("exit 0,");
        add("status_id", if is_success { 1 } else { OTHER }.into());
        add("status", result.as_str().into());
        if let Some(api) = members.get_mut("api").and_then(Value::as_object_mut) {
            api.insert("request".to_owned(), json!({ "uid": decision }));
        }
    }
    members
}

/// Returns the fields that the schema has no place for.
fn unmapped(event: &Event) -> Value {
    let mut members = Map::new();
    for (name, value) in [("setting", &event.decider.setting), ("answered_by", &event.decider.answered_by)] {
        if !value.is_empty() {
            members.insert(name.to_owned(), value.as_str().into());
        }
    }
    if let Kind::Unreadable(reason) = &event.kind {
        members.insert("unreadable".to_owned(), reason.as_str().into());
    }
    if event.repeated {
        members.insert("repeated".to_owned(), true.into());
    }
    members.into()
}

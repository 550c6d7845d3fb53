//! The ruling on files with several names (hard links).

use portcullis_decision::request::Attribute;
use portcullis_decision::{Effect, Grant, Request, Ruling};
use serde_json::{Value, json};

use super::grantable::{HARD_LINKS, HOST, is_for_one_file};

/// Name of the attribute with the verdict on a file's other names: a JSON object with `effect` and `reason`.
const NAMES: &str = "host:names";

/// Returns the attribute with the verdict on a file's other names.
pub(crate) fn attribute(effect: Effect, reason: &str) -> Attribute {
    let effect = if effect == Effect::Deny { "deny" } else { "ask" };
    Attribute { name: NAMES.to_owned(), value: json!({ "effect": effect, "reason": reason }).to_string() }
}

/// Returns the ruling that the file's other names add to the decision, if any.
pub(crate) fn ruling(request: &Request, grants: &[Grant]) -> Option<Ruling> {
    let told = request.attributes.iter().find(|attribute| attribute.name == NAMES)?;
    let told: Value = serde_json::from_str(&told.value).unwrap_or_default();
    let is_denied = told.get("effect").and_then(Value::as_str) == Some("deny");
    if !is_denied && grants.iter().any(|grant| is_for_one_file(&grant.pattern) && grant.covers(request)) {
        return None;
    }
    Some(Ruling {
        effect: if is_denied { Effect::Deny } else { Effect::Ask },
        policy: HOST.to_owned(),
        rule: HARD_LINKS.to_owned(),
        reason: told.get("reason").and_then(Value::as_str).unwrap_or_default().to_owned(),
        setting: String::new(),
        conceal: false,
    })
}

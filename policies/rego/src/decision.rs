//! The values of rules as answers.

use portcullis_text_policy::{Answer, Effect, is_rule_id};
use serde_json::{Map, Value};

/// The rules of the package that answer, with the effect of those that have one.
pub(crate) const RULES: [(&str, Option<Effect>); 4] = [
    ("decision", None),
    ("deny", Some(Effect::Deny)),
    ("ask", Some(Effect::Ask)),
    ("allow", Some(Effect::Allow)),
];

/// Returns the answers in the value of a rule: none for `false` and an empty set.
///
/// # Errors
/// If the value is of another form; a mistake in a `deny` must not make it count as nothing.
pub(crate) fn answers(rule: &str, effect: Option<Effect>, value: &Value) -> Result<Vec<Answer>, String> {
    let plain = |reason: &str| Answer {
        effect: effect.unwrap_or(Effect::Deny),
        rule: rule.to_owned(),
        reason: reason.to_owned(),
        hint: None,
    };
    match (effect, value) {
        (Some(_), Value::Bool(true)) => Ok(vec![plain(&format!("`{rule}` is true"))]),
        (Some(_), Value::Bool(false)) => Ok(Vec::new()),
        (Some(_), Value::String(reason)) => Ok(vec![plain(reason)]),
        (Some(_), Value::Array(items)) => {
            let one = |item: &Value| match item {
                Value::String(reason) => Ok(plain(reason)),
                Value::Object(fields) => object(rule, effect, fields),
                other => Err(format!("`{rule}` contains `{other}`, which is neither a text nor an object")),
            };
            items.iter().map(one).collect()
        }
        (_, Value::Object(fields)) => Ok(vec![object(rule, effect, fields)?]),
        (_, other) => Err(format!("`{rule}` is `{other}`, which is no answer")),
    }
}

fn object(rule: &str, effect: Option<Effect>, fields: &Map<String, Value>) -> Result<Answer, String> {
    let text = |name: &str| match fields.get(name) {
        None => Ok(None),
        Some(Value::String(text)) => Ok(Some(text.clone())),
        Some(other) => Err(format!("`{name}` of `{rule}` is `{other}` and no text")),
    };
    let known: &[&str] =
        if effect.is_some() { &["rule", "reason", "hint"] } else { &["effect", "rule", "reason", "hint"] };
    if let Some(name) = fields.keys().find(|name| !known.contains(&name.as_str())) {
        return Err(format!("`{rule}` has the unknown field `{name}`"));
    }
    let effect = match effect {
        Some(effect) => effect,
        None => match text("effect")?.as_deref() {
            Some("allow") => Effect::Allow,
            Some("ask") => Effect::Ask,
            Some("deny") => Effect::Deny,
            _ => return Err(format!("`effect` of `{rule}` is none of `allow`, `ask` and `deny`")),
        },
    };
    let id = text("rule")?.unwrap_or_else(|| rule.to_owned());
    if !is_rule_id(&id) {
        return Err(format!(
            "`{id}` cannot be the id of a rule: lower-case letters, digits, dots, dashes, underscores"
        ));
    }
    let reason = text("reason")?.unwrap_or_else(|| format!("the rule `{id}` matches"));
    Ok(Answer { effect, rule: id, reason, hint: text("hint")? })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn values_of_another_form_are_errors() {
        for (rule, effect, value) in [
            ("deny", Some(Effect::Deny), json!(7)),
            ("deny", Some(Effect::Deny), json!([["x"]])),
            ("deny", Some(Effect::Deny), json!([{ "reasn": "x" }])),
            ("deny", Some(Effect::Deny), json!([{ "rule": "Not an id" }])),
            ("deny", Some(Effect::Deny), json!({ "effect": "allow" })),
            ("decision", None, json!(true)),
            ("decision", None, json!("deny")),
            ("decision", None, json!({ "reason": "x" })),
            ("decision", None, json!({ "effect": "maybe" })),
        ] {
            assert!(answers(rule, effect, &value).is_err(), "{rule} {value}");
        }
        assert_eq!(answers("allow", Some(Effect::Allow), &json!(false)), Ok(Vec::new()));
        assert_eq!(answers("deny", Some(Effect::Deny), &json!([])), Ok(Vec::new()));
        let decided = answers("decision", None, &json!({ "effect": "ask", "rule": "a.b" })).unwrap();
        assert_eq!((decided[0].effect, decided[0].rule.as_str()), (Effect::Ask, "a.b"));
    }
}

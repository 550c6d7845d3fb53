//! The annotations of a policy: what it answers when it matches.

use cedar_policy::{Effect as CedarEffect, Policy};
use portcullis_text_policy::{Answer, Effect, is_rule_id};

/// The annotations that have a meaning here.
const KNOWN: [&str; 4] = ["id", "effect", "reason", "hint"];

/// Returns the answer of a policy that begins in this line.
///
/// # Errors
/// The wrong annotation, and what it should be.
pub(crate) fn answer(policy: &Policy, line: usize) -> Result<Answer, (String, String)> {
    if let Some((name, _)) = policy.annotations().find(|(name, _)| !KNOWN.contains(name)) {
        let known = KNOWN.map(|name| format!("`@{name}`")).join(", ");
        return Err((format!("unknown annotation `@{name}`"), format!("write one of {known}")));
    }
    let effect = effect(policy)?;
    let rule = match policy.annotation("id") {
        Some(id) if is_rule_id(id) => id.to_owned(),
        Some(id) => {
            let hint = "use lower-case letters, digits, dots, dashes and underscores";
            return Err((format!("`{id}` cannot be the id of a rule"), hint.to_owned()));
        }
        None => format!("line-{line}"),
    };
    let reason = match policy.annotation("reason").filter(|reason| !reason.is_empty()) {
        Some(reason) => reason.to_owned(),
        None => format!("the `{}` in line {line} matches", policy.effect()),
    };
    let hint = policy.annotation("hint").filter(|hint| !hint.is_empty()).map(str::to_owned);
    if hint.is_some() && effect != Effect::Deny {
        let message = "`@hint` is for policies that deny".to_owned();
        return Err((message, "put the text into `@reason`".to_owned()));
    }
    Ok(Answer { effect, rule, reason, hint })
}

/// Returns the effect of a policy. Only a `forbid` can ask, so that other tools, which do not know the annotation,
/// never read a text as milder than it is here.
fn effect(policy: &Policy) -> Result<Effect, (String, String)> {
    match (policy.effect(), policy.annotation("effect")) {
        (CedarEffect::Permit, None) => Ok(Effect::Allow),
        (CedarEffect::Forbid, None) => Ok(Effect::Deny),
        (CedarEffect::Forbid, Some("ask")) => Ok(Effect::Ask),
        (CedarEffect::Permit, Some("ask")) => {
            let hint = "write `@effect(\"ask\") forbid (...)`";
            Err(("a `permit` cannot ask".to_owned(), hint.to_owned()))
        }
        (_, Some(other)) => {
            let hint = "the only value is `@effect(\"ask\")`; `permit` allows and `forbid` denies";
            Err((format!("unknown effect `{other}`"), hint.to_owned()))
        }
    }
}

//! The verdict on the content of one of git's own files, where the decision depends on it.

use portcullis_decision::request::{Action, Attribute, FileOperation};
use portcullis_decision::{Effect, Request};
use portcullis_exec_surface::Rule;

/// Name of the attribute with the verdict on the content of one of git's own files: a JSON string.
///
/// Empty for harmless content, else the reason to ask or, after [`UNREADABLE`], to refuse.
pub(crate) const CONTENT: &str = "host:git-content";

/// Prefix of the reason for content that cannot be judged.
pub(crate) const UNREADABLE: &str = "it cannot be judged";

/// Returns the attribute with the verdict on content.
pub(crate) fn attribute(reason: String) -> Attribute {
    Attribute { name: CONTENT.to_owned(), value: serde_json::Value::String(reason).to_string() }
}

/// Returns effect and reason from the verdict on the content to write.
pub(super) fn on_content(request: &Request, rule: &Rule) -> Option<(Effect, String)> {
    let known = request.attributes.iter().find(|attribute| attribute.name == CONTENT);
    let is_edit =
        matches!(&request.action, Action::File(access) if matches!(access.operation, FileOperation::Edit(_)));
    match known.map(|attribute| serde_json::from_str::<String>(&attribute.value)) {
        Some(Ok(reason)) if reason.is_empty() => None,
        Some(Ok(reason)) if reason.starts_with(UNREADABLE) => Some((Effect::Deny, reason)),
        Some(Ok(reason)) => Some((Effect::Ask, reason)),
        // The result of an edit is judged once it exists.
        None if is_edit => None,
        Some(Err(_)) | None => Some((Effect::Ask, rule.reason.to_owned())),
    }
}

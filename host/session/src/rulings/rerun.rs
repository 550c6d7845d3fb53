//! The ruling on running a command again after it has failed.

use portcullis_decision::request::Attribute;
use portcullis_decision::{Effect, Request, Ruling};
use portcullis_text::escape_confusables;

/// Name of the attribute with the path that a command named before it failed: a JSON string.
const SAID: &str = "host:said-afterwards";
/// Name of the attribute of a command that is to run again: a JSON list of the paths that are now allowed.
const AGAIN: &str = "host:run-again";
/// Id of the rule that asks.
const RULE: &str = "host.run-again";

/// Returns the attribute with the path that a command named before it failed.
pub(crate) fn named_path(path: &str) -> Attribute {
    Attribute { name: SAID.to_owned(), value: serde_json::Value::String(path.to_owned()).to_string() }
}

/// Returns the path that a command named before it failed, if the request is the question about it.
pub(crate) fn path_named(request: &Request) -> Option<String> {
    let told = request.attributes.iter().find(|attribute| attribute.name == SAID)?;
    Some(serde_json::from_str(&told.value).unwrap_or_default())
}

/// Returns the attribute of a command that is to run again, with the paths that are now allowed.
pub(crate) fn allowed_paths(paths: &[String]) -> Attribute {
    Attribute { name: AGAIN.to_owned(), value: serde_json::Value::from(paths.to_vec()).to_string() }
}

/// Returns true if the request is the question whether to run a command again.
pub(crate) fn is_rerun(request: &Request) -> bool {
    request.attributes.iter().any(|attribute| attribute.name == AGAIN)
}

/// Returns the ruling that asks before a command runs again.
///
/// This is always the user's decision, whatever policies and grants allow.
pub(crate) fn ruling(request: &Request) -> Option<Ruling> {
    let told = request.attributes.iter().find(|attribute| attribute.name == AGAIN)?;
    let paths: Vec<String> = serde_json::from_str(&told.value).unwrap_or_default();
    Some(Ruling {
        effect: Effect::Ask,
        policy: "host".to_owned(),
        rule: RULE.to_owned(),
        reason: format!(
            "it failed without {}; what it has done stays done, and is done again",
            listed(&paths)
        ),
        setting: String::new(),
        conceal: false,
    })
}

/// Returns paths as a list for a sentence.
pub(crate) fn listed(paths: &[String]) -> String {
    paths.iter().map(|path| format!("`{}`", escape_confusables(path))).collect::<Vec<_>>().join(", ")
}

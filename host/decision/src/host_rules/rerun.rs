//! The ruling on running a command again after it has failed.

use portcullis_text::escape_confusables;

use super::by_host::by_host;
use crate::{Effect, Request, Ruling};

/// Id of the rule that asks.
const RULE: &str = "host.run-again";

/// Returns the ruling that asks before a command runs again.
///
/// This is always the user's decision, whatever policies and grants allow.
pub(super) fn ruling(request: &Request) -> Option<Ruling> {
    let paths = listed(request.run_again()?);
    Some(by_host(
        Effect::Ask,
        RULE,
        format!("it failed without {paths}; its effects so far remain, and it repeats them"),
    ))
}

/// Returns paths as a list for a sentence, safe to show.
#[must_use]
pub fn listed(paths: &[String]) -> String {
    paths.iter().map(|path| format!("`{}`", escape_confusables(path))).collect::<Vec<_>>().join(", ")
}

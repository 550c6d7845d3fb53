//! The ruling on commands outside the sandbox.

use super::by_host::by_host;
use crate::request::Action;
use crate::{Effect, Ruling};

/// Id of the rule that asks.
const ASKED: &str = "host.escalation";

/// Returns the ruling that asks before a command leaves the sandbox.
///
/// This is always the user's decision, whatever policies allow.
pub(super) fn ruling(action: &Action) -> Option<Ruling> {
    matches!(action, Action::Escalation(_))
        .then(|| by_host(Effect::Ask, ASKED, "it runs with your full rights, unprotected".to_owned()))
}

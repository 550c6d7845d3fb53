//! The ruling on commands outside the sandbox.

use portcullis_decision::request::Action;
use portcullis_decision::{Effect, Ruling};

/// Id of the rule that asks.
const ASKED: &str = "host.escalation";

/// Returns the ruling that asks before a command leaves the sandbox.
///
/// This is always the user's decision, whatever policies allow.
pub(crate) fn ruling(action: &Action) -> Option<Ruling> {
    matches!(action, Action::Escalation(_)).then(|| Ruling {
        effect: Effect::Ask,
        policy: "host".to_owned(),
        rule: ASKED.to_owned(),
        reason: "nothing holds a command outside of the sandbox".to_owned(),
        setting: String::new(),
        conceal: false,
    })
}

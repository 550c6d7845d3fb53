//! Why a connection or a request is denied.

use portcullis_text::escape;

use crate::host_rules::HOST;
use crate::refusal_text::{Reader, RefusalText};

/// The reason for a denial.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConnectionRefusal {
    /// The policy that denies.
    pub policy: String,
    /// The id of the rule.
    pub rule: String,
    /// The reason in one sentence, safe to show.
    pub reason: String,
    /// Reason, rule and next step for the model, safe to show.
    pub text: String,
    /// The same for the user.
    for_user: String,
}

impl ConnectionRefusal {
    /// Makes a refusal; `what` are the words that `portcullis allow` takes for the connection.
    #[must_use]
    pub fn new(refusal: RefusalText<'_>, what: Option<&str>) -> Self {
        Self {
            policy: escape(refusal.policy),
            rule: escape(refusal.rule),
            reason: escape(refusal.reason),
            text: refusal.with_next_step(what),
            for_user: refusal.read_by(Reader::User).with_next_step(what),
        }
    }

    /// Returns reason, rule and next step for a reader, safe to show.
    #[must_use]
    pub fn text_for(&self, reader: Reader) -> &str {
        match reader {
            Reader::Model => &self.text,
            Reader::User => &self.for_user,
        }
    }

    /// Returns a refusal by the host itself.
    #[must_use]
    pub fn by_host(rule: &str, reason: impl AsRef<str>) -> Self {
        Self::new(RefusalText::by_rule(HOST, rule, reason.as_ref()), None)
    }

    /// Returns the refusal of a connection that a command has left behind.
    #[must_use]
    pub fn of_ended_command() -> Self {
        Self::by_host("host.command-ended", "the command that opened the connection has ended")
    }
}

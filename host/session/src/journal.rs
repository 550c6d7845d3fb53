//! The record of decisions, written before an action, and of its outcome.

use std::time::SystemTime;

use portcullis_decision::verdict::Cause;
use portcullis_decision::{Decision, Request};

/// A decision that is about to take effect.
#[derive(Debug, Clone, Copy)]
pub struct Entry<'a> {
    /// The time.
    pub at: SystemTime,
    /// The request.
    pub request: &'a Request,
    /// The decision.
    pub decision: &'a Decision,
}

/// Records decisions.
pub trait Journal: Send + Sync {
    /// Records a decision. If this fails, the action is not performed.
    ///
    /// # Errors
    /// When the record cannot be written; the text says why.
    fn before(&self, entry: &Entry<'_>) -> Result<(), JournalError>;

    /// Records the outcome of the request with this id.
    fn after(&self, at: SystemTime, request: &str, outcome: &str);

    /// Records what happens on behalf of this request before its outcome, any number of times. By default it is the
    /// outcome.
    fn meanwhile(&self, at: SystemTime, request: &str, event: &str) {
        self.after(at, request, event);
    }

    /// Records that a policy changed the output of this request, which can be after its outcome. By default it is the
    /// outcome.
    fn output_changed(&self, at: SystemTime, request: &str, change: &OutputChange<'_>) {
        self.after(at, request, &change.to_string());
    }
}

/// A change that a policy made to the output of a tool, before the model saw it.
#[derive(Debug, Clone, Copy)]
pub struct OutputChange<'a> {
    /// Whether the output was withheld; otherwise it was replaced.
    pub is_withheld: bool,
    /// The policy.
    pub policy: &'a str,
    /// The rule and the reason.
    pub cause: &'a Cause,
}

impl std::fmt::Display for OutputChange<'_> {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let verb = if self.is_withheld { "withheld" } else { "replaced" };
        write!(formatter, "output {verb} by `{}` ({})", self.policy, self.cause.rule)
    }
}

/// A decision could not be recorded.
#[derive(Debug, thiserror::Error)]
#[error("the audit log cannot be written: {0}; nothing is allowed without it")]
pub struct JournalError(pub String);

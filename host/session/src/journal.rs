//! The record of decisions, written before an action, and of its outcome.

use std::time::SystemTime;

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
}

/// A decision could not be recorded.
#[derive(Debug, thiserror::Error)]
#[error("the audit log cannot be written: {0}; nothing is allowed without it")]
pub struct JournalError(pub String);

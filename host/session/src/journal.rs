//! Where decisions are recorded: before the act, and what came of it.

use std::time::SystemTime;

use portcullis_decision::{Decision, Request};

/// A decision about to be acted on.
#[derive(Debug, Clone, Copy)]
pub struct Entry<'a> {
    /// When.
    pub at: SystemTime,
    /// What was asked.
    pub request: &'a Request,
    /// What was decided.
    pub decision: &'a Decision,
}

/// A record of decisions.
pub trait Journal: Send + Sync {
    /// Writes a decision down. Nothing is done when this fails.
    ///
    /// # Errors
    /// When it could not be written; the text says why.
    fn before(&self, entry: &Entry<'_>) -> Result<(), JournalError>;

    /// Writes down what came of the request with this id.
    fn after(&self, at: SystemTime, request: &str, outcome: &str);
}

/// A decision could not be recorded.
#[derive(Debug, thiserror::Error)]
#[error("the audit log cannot be written: {0}; nothing is allowed without it")]
pub struct JournalError(pub String);

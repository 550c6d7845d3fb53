//! What a collector says to a batch.

use std::time::Duration;

/// Why a batch was not accepted.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SendError {
    /// Nothing of it has arrived.
    #[error("{reason}")]
    NotSent {
        /// What was done, and what went wrong.
        reason: String,
        /// How long the collector asks to wait.
        wait: Option<Duration>,
    },
    /// It may have arrived.
    #[error("{reason}")]
    Unclear {
        /// What was done, and what went wrong.
        reason: String,
    },
    /// The collector does not take this batch, now or later.
    #[error("{reason}")]
    Refused {
        /// What it said.
        reason: String,
    },
}

impl SendError {
    pub(crate) fn not_sent(reason: impl Into<String>) -> Self {
        Self::NotSent { reason: reason.into(), wait: None }
    }

    pub(crate) fn unclear(reason: impl Into<String>) -> Self {
        Self::Unclear { reason: reason.into() }
    }
}

/// What a collector said to a batch that it accepted.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Accepted {
    /// Number of its records that it refused for good.
    pub(crate) refused: u64,
    /// Why.
    pub(crate) reason: String,
}

//! The result of sending a batch.

use std::time::Duration;

/// Why a batch was not accepted.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SendError {
    /// Nothing of it has arrived.
    #[error("{reason}")]
    NotSent {
        /// The failed operation and its error.
        reason: String,
        /// How long the collector asks to wait.
        wait: Option<Duration>,
    },
    /// It may have arrived.
    #[error("{reason}")]
    Unclear {
        /// The failed operation and its error.
        reason: String,
    },
    /// The collector does not take this batch, now or later.
    #[error("{reason}")]
    Refused {
        /// The collector's answer.
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

/// The answer to an accepted batch.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Accepted {
    /// Number of its records that it refused for good.
    pub(crate) refused: u64,
    /// Why.
    pub(crate) reason: String,
}

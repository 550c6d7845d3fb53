//! What can go wrong in a session, apart from a denial, which is an answer.

use portcullis_decision::PolicyError;

/// Why a session could not be opened.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// A policy gave no rules.
    #[error("asking policy `{policy}` for its rules")]
    Rules {
        /// Its name.
        policy: String,
        /// What happened.
        #[source]
        source: PolicyError,
    },
    /// The gate for connections could not be started.
    #[error("starting the gate for connections")]
    Network(#[source] std::io::Error),
    /// Files cannot be opened safely here.
    #[error("preparing to open files")]
    Gate(#[source] portcullis_file_gate::FileError),
}

/// An error with all its causes, in one line.
#[must_use]
pub fn with_causes(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(inner) = cause {
        text.push_str(": ");
        text.push_str(&inner.to_string());
        cause = inner.source();
    }
    text
}

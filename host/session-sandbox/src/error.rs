//! Errors of sessions. A denial is a decision, not an error.

use std::path::PathBuf;

use portcullis_decision::PolicyError;

/// Why a session could not be opened.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// A policy failed to return its rules.
    #[error("asking policy `{policy}` for its rules")]
    Rules {
        /// The policy's name.
        policy: String,
        /// The cause.
        #[source]
        source: PolicyError,
    },
    /// The network gate could not be started.
    #[error("starting the gate for connections")]
    Network(#[source] std::io::Error),
    /// A directory in which commands may write is closed to its owner, so its links and settings are not known. A
    /// command can have closed it, and the next one could open it again.
    #[error(
        "looking for the files that your own programs read: `{}` is closed, so nothing in it can be protected; open \
         it with `chmod u+rx` or remove it",
        directory.display()
    )]
    Closed {
        /// The directory.
        directory: PathBuf,
    },
    /// Files cannot be opened safely here.
    #[error("preparing to open files")]
    Gate(#[source] portcullis_file_gate::FileError),
}

/// Returns an error with all its causes, in one line.
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

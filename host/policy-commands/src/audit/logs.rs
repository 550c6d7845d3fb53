//! The logs of all sessions.

use portcullis_audit::{Directory, ReadError};
use portcullis_bootstrap::process_env::ProcessEnv;

/// Returns the directory with the logs of all sessions.
#[must_use]
pub fn directory(around: &ProcessEnv) -> Directory {
    Directory::new(&around.state.join("audit"))
}

/// Formats an error with its causes, as at the end of the program.
pub(crate) fn causes(error: ReadError) -> String {
    format!("{:#}", anyhow::Error::new(error))
}

//! Reasons why there is no sandbox.

use std::io;
use std::path::PathBuf;

use crate::findings::Findings;

/// The reason why commands cannot run under a profile.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ProfileError {
    /// The profile cannot be written for the confiner.
    #[error("writing the profile `{}`", path.display())]
    Write {
        /// The file.
        path: PathBuf,
        /// The system's error.
        #[source]
        source: io::Error,
    },
    /// The self-test could not be carried out.
    #[error("testing the sandbox: {doing}")]
    Test {
        /// The step that failed.
        doing: &'static str,
        /// The system's error.
        #[source]
        source: io::Error,
    },
    /// The self-test has failed.
    #[error("{0}")]
    Failed(Findings),
}

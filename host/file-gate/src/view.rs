//! The roots in which paths are opened.

use std::fmt;
use std::path::PathBuf;

/// The root of a sandbox, as long as the sandbox lives.
pub trait RootView: Send + Sync {
    /// Returns a descriptor of the root directory of the sandbox's mount namespace.
    ///
    /// The gate asks for it before and after each walk. What was walked between two answers was seen with
    /// all mounts in place, because a sandbox that has ended does not come back.
    ///
    /// # Errors
    /// When the sandbox has ended: its mounts come apart, and the descriptor would show what they hid.
    #[cfg(unix)]
    fn root(&self) -> std::io::Result<std::os::fd::BorrowedFd<'_>>;
}

/// The views of a gate.
pub enum Views {
    /// There is no sandbox: paths are opened as the host itself sees them.
    Host,
    /// Paths are opened as commands in the sandbox see them.
    Session {
        /// The root of the sandbox.
        root: Box<dyn RootView>,
        /// The directory that the sandbox has to itself under a name that the host uses too (`/tmp`), where
        /// there is one. Nothing below it is ever opened in the host's own view, but for the files named
        /// to [`Gate::register_output`](crate::Gate::register_output).
        private_temp: Option<PathBuf>,
    },
}

/// The view in which something was located.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum View {
    /// What commands in the sandbox see.
    Session,
    /// The host's own; there is no sandbox.
    Host,
    /// The host's own, though there is a sandbox: only for an exception that the user approved.
    BeyondSession,
    /// The host's own, for a file of pi's that was registered by its exact name.
    Output,
}

impl fmt::Debug for Views {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Host => formatter.write_str("Host"),
            Self::Session { private_temp, .. } => {
                formatter.debug_struct("Session").field("private_temp", private_temp).finish_non_exhaustive()
            }
        }
    }
}

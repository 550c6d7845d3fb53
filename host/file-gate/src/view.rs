//! The roots in which paths are opened.

use std::fmt;
use std::path::Path;

/// The root of a sandbox, available as long as the sandbox exists.
pub trait RootView: Send + Sync {
    /// Returns a descriptor of the root directory of the sandbox's mount namespace.
    ///
    /// The gate calls it before and after each walk. A walk between two successful calls saw all mounts in place,
    /// because a sandbox that has ended does not come back.
    ///
    /// # Errors
    /// If the sandbox has ended: its mounts are removed, and the descriptor would reveal the files that they hid.
    #[cfg(unix)]
    fn root(&self) -> std::io::Result<std::os::fd::BorrowedFd<'_>>;
}

/// The views of a gate.
pub enum Views {
    /// There is no sandbox: paths are opened as the host sees them.
    Host,
    /// Paths are opened as commands in the sandbox see them.
    Session {
        /// The root of the sandbox.
        root: Box<dyn RootView>,
        /// Tells the paths that are the sandbox's own, where the host may have another file (`/tmp`).
        ///
        /// None of them is ever opened in the host's view, except those registered with
        /// [`Gate::register_output`](crate::Gate::register_output).
        is_own: IsOwn,
    },
}

/// Tells the paths that are the sandbox's own.
pub type IsOwn = Box<dyn Fn(&Path) -> bool + Send + Sync>;

/// The view in which a path was located.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum View {
    /// The view of commands in the sandbox.
    Session,
    /// The host's view, without a sandbox.
    Host,
    /// The host's view, although there is a sandbox: only for an exception that the user approved.
    BeyondSession,
    /// The host's view, for a file of pi that was registered by its exact name.
    Output,
}

impl fmt::Debug for Views {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Host => formatter.write_str("Host"),
            Self::Session { .. } => formatter.debug_struct("Session").finish_non_exhaustive(),
        }
    }
}

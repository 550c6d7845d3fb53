//! The type of a session's branch.

/// The branch of a session, locked as long as this process uses it.
#[cfg(target_os = "linux")]
pub(super) type OwnBranch = portcullis_bootstrap::branches::OpenBranch;

/// The branch of a session; there is none on this system.
#[cfg(not(target_os = "linux"))]
pub(super) enum OwnBranch {}

//! The control group of a sandbox: limits that the kernel enforces on all of its processes together.
//!
//! The host creates a group for each sandbox, beside its own, if it finds a place where it may: the directory of an
//! ancestor of its own group that was delegated to this user (by the service manager, a container or an administrator).
//! The keeper starts in that group ([`made`]), and every process that it starts stays there. The host moves no process:
//! neither itself nor others of the user's session. Where there is no such place, the sandbox runs without a control
//! group, and [`NoGroup`] gives the reason.

#[cfg(target_os = "linux")]
pub(crate) mod directory;
#[cfg(target_os = "linux")]
mod limits;
#[cfg(target_os = "linux")]
pub(crate) mod parent;

/// Removes groups that killed hosts left behind; there are no control groups on this system.
#[cfg(not(target_os = "linux"))]
pub fn sweep_groups() {}

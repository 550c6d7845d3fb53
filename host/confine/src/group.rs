//! The control group of a sandbox: limits that the kernel enforces on all of its processes together.
//!
//! The host creates a group for each sandbox, beside its own, if it finds a place where it may: the directory of an
//! ancestor of its own group that was delegated to this user (by the service manager, a container or an administrator).
//! The keeper starts in that group ([`made`]), and every process that it starts stays there. The host moves no process:
//! neither itself nor others of the user's session. Where there is no such place, the sandbox runs without a control
//! group, and [`NoGroup`] gives the reason.

#[cfg(target_os = "linux")]
mod bounds;
#[cfg(target_os = "linux")]
mod made;
#[cfg(target_os = "linux")]
mod place;

#[cfg(target_os = "linux")]
use std::fmt;
use std::path::PathBuf;

#[cfg(target_os = "linux")]
pub use made::sweep_groups;
#[cfg(target_os = "linux")]
pub(crate) use made::{Deaths, Group};
#[cfg(target_os = "linux")]
pub(crate) use place::outlook;

/// A controller of a control group, see cgroups(7).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Controller {
    /// Memory of all kinds, including the kernel's for these processes and cached files (`memory`).
    Memory,
    /// Processes and threads (`pids`).
    Processes,
    /// Huge pages, which neither the memory controller nor any other limit counts (`hugetlb`).
    HugePages,
}

impl Controller {
    /// All controllers.
    pub const ALL: [Self; 3] = [Self::Memory, Self::Processes, Self::HugePages];
    /// The controllers without which a group does not enforce the limits.
    pub const NEEDED: [Self; 2] = [Self::Memory, Self::Processes];

    /// Returns the kernel's name of the controller.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Memory => "memory",
            Self::Processes => "pids",
            Self::HugePages => "hugetlb",
        }
    }
}

/// Why a sandbox has no control group, or one that lacks some controllers.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum NoGroup {
    /// No limit needs a group.
    #[error("no limit is set that it would keep")]
    NoLimits,
    /// No control groups of version 2 are visible to this process.
    #[error("no control groups of version 2 are mounted where this program sees them")]
    NotMounted,
    /// The hierarchy of version 2 lacks a needed controller.
    #[error("control groups of version 2 have neither `memory` nor `pids` here, or only one of them")]
    NoControllers,
    /// The group belongs to another user.
    #[error("the control group `{}` is not delegated to this user", .0.display())]
    NotDelegated(PathBuf),
    /// The group contains processes, so it cannot give controllers to groups below it.
    #[error("processes in the control group `{}` keep it from giving controllers to groups below it", .0.display())]
    Occupied(PathBuf),
    /// The kernel refused an operation.
    #[error("{doing}: {}", std::io::Error::from_raw_os_error(*.errno))]
    Refused {
        /// The operation.
        doing: &'static str,
        /// The kernel's error.
        errno: i32,
    },
}

impl NoGroup {
    /// Returns the closest errno of the kernel.
    #[cfg(target_os = "linux")]
    pub(crate) fn errno(&self) -> i32 {
        match self {
            Self::NoLimits => libc::EINVAL,
            Self::NotMounted => libc::ENOENT,
            Self::NoControllers => libc::EOPNOTSUPP,
            Self::NotDelegated(_) => libc::EACCES,
            Self::Occupied(_) => libc::EBUSY,
            Self::Refused { errno, .. } => *errno,
        }
    }

    /// Returns advice on how to fix this; `None` if there is nothing to do.
    #[must_use]
    pub fn remedy(&self) -> Option<&'static str> {
        match self {
            Self::NoLimits => None,
            Self::NotMounted | Self::NoControllers => Some(
                "boot with `systemd.unified_cgroup_hierarchy=1`, or with `cgroup_no_v1=all` and the controllers \
                 `memory` and `pids` switched on",
            ),
            Self::NotDelegated(_) => Some(
                "start pi in a group that is yours: `systemd-run --user --scope pi`; for a service of the system \
                 `Delegate=yes` with `DelegateSubgroup=main`",
            ),
            Self::Occupied(_) => Some(
                "have the processes of the container or service in a group of their own below that one \
                 (`DelegateSubgroup=main`, or what starts the container moves itself to one first)",
            ),
            Self::Refused { .. } => {
                Some("Linux 5.7 or later, without a filter of system calls that refuses clone3")
            }
        }
    }
}

/// Displays the names of controllers as a list.
#[cfg(target_os = "linux")]
pub(crate) struct Names<'a>(pub(crate) &'a [Controller]);

#[cfg(target_os = "linux")]
impl fmt::Display for Names<'_> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, controller) in self.0.iter().enumerate() {
            let lead = if index == 0 { "" } else { ", " };
            write!(formatter, "{lead}{}", controller.name())?;
        }
        Ok(())
    }
}

/// Removes groups that killed hosts left behind; there are no control groups on this system.
#[cfg(not(target_os = "linux"))]
pub fn sweep_groups() {}

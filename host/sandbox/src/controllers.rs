//! Controllers of control groups, and why a sandbox has no group.

use std::fmt;
use std::path::PathBuf;

const ENOENT: i32 = 2;
const EACCES: i32 = 13;
const EBUSY: i32 = 16;
const EINVAL: i32 = 22;
const EOPNOTSUPP: i32 = 95;

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
    pub fn errno(&self) -> i32 {
        match self {
            Self::NoLimits => EINVAL,
            Self::NotMounted => ENOENT,
            Self::NoControllers => EOPNOTSUPP,
            Self::NotDelegated(_) => EACCES,
            Self::Occupied(_) => EBUSY,
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
#[derive(Debug)]
pub struct ControllerNames<'a>(pub &'a [Controller]);

impl fmt::Display for ControllerNames<'_> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, controller) in self.0.iter().enumerate() {
            let lead = if index == 0 { "" } else { ", " };
            write!(formatter, "{lead}{}", controller.name())?;
        }
        Ok(())
    }
}

//! The control group of a sandbox: bounds that the kernel keeps for all of its processes together.
//!
//! The host makes a group for each sandbox, beside its own, where it finds a place in which it may: the directory of
//! a group above its own that was delegated to this user (by the service manager, a container or an administrator).
//! The keeper starts in it ([`made`]), and all that it starts stays there. The host moves nobody: neither itself nor
//! what else runs in the user's session. Where there is no such place everything is as without control groups, and
//! [`NoGroup`] says why.

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

/// What a control group can bound, see cgroups(7).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Controller {
    /// Memory of all kinds, the kernel's for these processes and cached files among it (`memory`).
    Memory,
    /// Processes and threads (`pids`).
    Processes,
    /// Huge pages, which neither the first nor anything else counts (`hugetlb`).
    HugePages,
}

impl Controller {
    /// Every one.
    pub const ALL: [Self; 3] = [Self::Memory, Self::Processes, Self::HugePages];
    /// Those without which a group does not bound what the limits are about.
    pub const NEEDED: [Self; 2] = [Self::Memory, Self::Processes];

    /// Returns the kernel's name for it.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Memory => "memory",
            Self::Processes => "pids",
            Self::HugePages => "hugetlb",
        }
    }
}

/// Why a sandbox has no control group, or has one without some controllers.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum NoGroup {
    /// There is nothing to bound.
    #[error("no limit is set that it would keep")]
    NoLimits,
    /// This process sees no groups of version 2.
    #[error("no control groups of version 2 are mounted where this program sees them")]
    NotMounted,
    /// They have no such controllers.
    #[error("control groups of version 2 have neither `memory` nor `pids` here, or only one of them")]
    NoControllers,
    /// They belong to somebody else.
    #[error("the control group `{}` is not delegated to this user", .0.display())]
    NotDelegated(PathBuf),
    /// There are processes where controllers would have to be given to groups below.
    #[error("processes in the control group `{}` keep it from giving controllers to groups below it", .0.display())]
    Occupied(PathBuf),
    /// The kernel has refused it.
    #[error("{doing}: {}", std::io::Error::from_raw_os_error(*.errno))]
    Refused {
        /// What was being done.
        doing: &'static str,
        /// The kernel's answer.
        errno: i32,
    },
}

impl NoGroup {
    /// The number of the kernel's error that comes nearest.
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

    /// Returns what can be done about it; nothing where nothing can or has to be.
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

/// The names of controllers, as they are read.
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

/// Removes what killed hosts have left; there are no control groups on this system.
#[cfg(not(target_os = "linux"))]
pub fn sweep_groups() {}

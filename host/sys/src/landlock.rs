//! Landlock: a process permanently gives up rights on files, see landlock(7).

use std::io;
use std::ops::{BitAnd, BitOr};
use std::os::fd::{AsFd, AsRawFd, FromRawFd, OwnedFd, RawFd};
use std::ptr;

/// Access rights on files and directories.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rights(u64);

impl Rights {
    /// No rights.
    pub const NONE: Self = Self(0);
    /// Execute a file.
    pub const EXECUTE: Self = Self(1);
    /// Open a file for writing.
    pub const WRITE_FILE: Self = Self(1 << 1);
    /// Open a file for reading.
    pub const READ_FILE: Self = Self(1 << 2);
    /// List a directory.
    pub const READ_DIRECTORY: Self = Self(1 << 3);
    /// Create and remove names of every type: files, directories, symlinks, sockets, pipes, devices.
    pub const CHANGE_NAMES: Self = Self(0x1ff << 4);
    /// Rename or hard-link a file to another directory. Since version 2, Linux 5.19.
    pub const MOVE: Self = Self(1 << 13);
    /// Truncate a file. Since version 3, Linux 6.2.
    pub const TRUNCATE: Self = Self(1 << 14);
    /// Use ioctls on a device that is opened later. Since version 5, Linux 6.10.
    pub const DEVICE_REQUESTS: Self = Self(1 << 15);
    /// The rights that apply to anything but a directory.
    pub const OF_A_FILE: Self = Self(
        Self::EXECUTE.0 | Self::WRITE_FILE.0 | Self::READ_FILE.0 | Self::TRUNCATE.0 | Self::DEVICE_REQUESTS.0,
    );

    /// Returns the rights that an ABI version supports.
    pub const fn known_to(version: u32) -> Self {
        let first = (1 << 13) - 1;
        Self(match version {
            0 => 0,
            1 => first,
            2 => first | Self::MOVE.0,
            3 | 4 => first | Self::MOVE.0 | Self::TRUNCATE.0,
            _ => first | Self::MOVE.0 | Self::TRUNCATE.0 | Self::DEVICE_REQUESTS.0,
        })
    }
}

impl BitOr for Rights {
    type Output = Self;

    fn bitor(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }
}

impl BitAnd for Rights {
    type Output = Self;

    fn bitand(self, other: Self) -> Self {
        Self(self.0 & other.0)
    }
}

/// Whether a process can reach processes outside of its Landlock domain.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Others {
    /// As far as the user's permissions allow.
    Reachable,
    /// Processes outside get no signals and no connections to abstract sockets. Since version 6, Linux 6.12.
    Unreachable,
}

/// `struct landlock_ruleset_attr`. Older kernels know only the first field and accept zeros after it.
#[repr(C)]
struct RulesetAttributes {
    handled_access_fs: u64,
    handled_access_net: u64,
    scoped: u64,
}

/// `struct landlock_path_beneath_attr`.
#[repr(C, packed)]
struct PathBeneathAttributes {
    allowed_access: u64,
    parent_fd: RawFd,
}

const CREATE_RULESET_VERSION: u32 = 1;
const RULE_PATH_BENEATH: u32 = 1;
const SCOPE_ABSTRACT_UNIX_SOCKET: u64 = 1;
const SCOPE_SIGNAL: u64 = 2;

/// Returns the Landlock ABI version of the kernel.
///
/// # Errors
/// `ENOSYS` when the kernel is built without Landlock, `EOPNOTSUPP` when Landlock is disabled at boot.
pub fn version() -> io::Result<u32> {
    let nothing = ptr::null::<RulesetAttributes>();
    // SAFETY: with this flag the kernel expects no attributes and touches no memory.
    let version =
        unsafe { libc::syscall(libc::SYS_landlock_create_ruleset, nothing, 0_usize, CREATE_RULESET_VERSION) };
    u32::try_from(version).map_err(|_negative| io::Error::last_os_error())
}

/// Creates a ruleset. The `handled` rights are denied wherever no rule grants them.
///
/// # Errors
/// `EINVAL` when the kernel's version does not support all of the arguments.
pub fn create(handled: Rights, others: Others) -> io::Result<OwnedFd> {
    let scoped = match others {
        Others::Reachable => 0,
        Others::Unreachable => SCOPE_ABSTRACT_UNIX_SOCKET | SCOPE_SIGNAL,
    };
    let attributes = RulesetAttributes { handled_access_fs: handled.0, handled_access_net: 0, scoped };
    // SAFETY: `attributes` is a complete structure of the given size and outlives the call.
    let rules = unsafe {
        libc::syscall(
            libc::SYS_landlock_create_ruleset,
            ptr::from_ref(&attributes),
            size_of::<RulesetAttributes>(),
            0,
        )
    };
    let rules =
        RawFd::try_from(rules).ok().filter(|&rules| rules >= 0).ok_or_else(io::Error::last_os_error)?;
    // SAFETY: the kernel has just created this close-on-exec descriptor, so it has no other owner.
    Ok(unsafe { OwnedFd::from_raw_fd(rules) })
}

/// Adds a rule that grants rights on the file or directory behind `place`, and on everything below it.
///
/// # Errors
/// `EINVAL` for rights that the ruleset does not handle, or for directory rights on another type of file.
pub fn allow(rules: impl AsFd, place: impl AsFd, rights: Rights) -> io::Result<()> {
    let attributes = PathBeneathAttributes { allowed_access: rights.0, parent_fd: place.as_fd().as_raw_fd() };
    // SAFETY: both descriptors are borrowed and so open. `attributes` is the structure for this type of rule
    // and outlives the call.
    let result = unsafe {
        libc::syscall(
            libc::SYS_landlock_add_rule,
            rules.as_fd().as_raw_fd(),
            RULE_PATH_BENEATH,
            ptr::from_ref(&attributes),
            0,
        )
    };
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

/// Enforces the ruleset on the calling thread and its future children.
///
/// # Errors
/// `EPERM` without `no_new_privs` or `CAP_SYS_ADMIN`, `E2BIG` when too many rulesets are stacked.
pub fn restrict_self(rules: impl AsFd) -> io::Result<()> {
    // SAFETY: the call touches no memory; the descriptor is borrowed and so open.
    let result = unsafe { libc::syscall(libc::SYS_landlock_restrict_self, rules.as_fd().as_raw_fd(), 0) };
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_version_knows_what_the_one_before_knew() {
        for version in 0..9 {
            let known = Rights::known_to(version);
            assert_eq!(known & Rights::known_to(version + 1), known);
        }
        let file_rights = Rights::OF_A_FILE & Rights::known_to(1);
        assert_eq!(file_rights, Rights::EXECUTE | Rights::WRITE_FILE | Rights::READ_FILE);
    }

    #[test]
    fn what_no_rule_is_about_has_an_error() {
        let file = std::fs::File::open("/dev/null").expect("it is there");
        assert!(allow(&file, &file, Rights::READ_FILE).is_err());
        assert!(restrict_self(&file).is_err());
    }
}

//! Mount attributes, which the safe libraries do not cover.

use std::io;
use std::ops::BitOr;
use std::os::fd::{AsFd, AsRawFd};

/// Attributes that [`add_attributes`] can set.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Attributes(u64);

impl Attributes {
    /// The mount is read-only.
    pub const READ_ONLY: Self = Self(libc::MOUNT_ATTR_RDONLY);
    /// Set-user-id bits have no effect.
    pub const NO_SETUID: Self = Self(libc::MOUNT_ATTR_NOSUID);
    /// Device nodes cannot be opened.
    pub const NO_DEVICES: Self = Self(libc::MOUNT_ATTR_NODEV);
    /// Programs cannot be executed.
    pub const NO_EXEC: Self = Self(libc::MOUNT_ATTR_NOEXEC);
}

impl BitOr for Attributes {
    type Output = Self;

    fn bitor(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }
}

/// The mounts that a change of attributes affects.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reach {
    /// The mount itself.
    One,
    /// The mount and all mounts below it.
    Tree,
}

/// Sets attributes on the mount whose root is `mount`. Never clears any.
///
/// Since Linux 5.12, see mount_setattr(2).
///
/// # Errors
/// `EINVAL` when `mount` is not the root of a mount, `EPERM` without the right to change mounts.
pub fn add_attributes(mount: impl AsFd, reach: Reach, attributes: Attributes) -> io::Result<()> {
    let change = libc::mount_attr { attr_set: attributes.0, attr_clr: 0, propagation: 0, userns_fd: 0 };
    let flags = libc::AT_EMPTY_PATH
        | match reach {
            Reach::One => 0,
            Reach::Tree => libc::AT_RECURSIVE,
        };
    // SAFETY: the descriptor is borrowed and so open; the path is a NUL-terminated literal; `change` is a
    // complete `mount_attr` of the given size.
    let result = unsafe {
        libc::syscall(
            libc::SYS_mount_setattr,
            mount.as_fd().as_raw_fd(),
            c"".as_ptr(),
            flags,
            std::ptr::from_ref(&change),
            size_of::<libc::mount_attr>(),
        )
    };
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_mount_is_refused() {
        let file = std::fs::File::open("/proc/self/status").expect("/proc is there");
        assert!(add_attributes(file, Reach::One, Attributes::READ_ONLY).is_err());
    }
}

//! The metadata of files, by fstat(2) and fstatat(2).

use std::ffi::OsStr;
use std::os::fd::AsFd;

use rustix::fs::{AtFlags, FileType, Stat};
use rustix::io::Errno;

use crate::operation::{Identity, Inode, Time};
use crate::system::kernel::status::{Status, kind};

impl Status {
    /// Returns true if two states are of the same file.
    pub(super) fn is_same_file(&self, other: &Self) -> bool {
        self.identity.inode == other.identity.inode && self.kind == other.kind
    }

    /// Returns the metadata of an open file.
    pub(crate) fn read(file: impl AsFd) -> Result<Self, Errno> {
        rustix::fs::fstat(file).map(|stat| Self::from(&stat))
    }

    /// Returns the metadata of one name in a directory, without following a link.
    pub(crate) fn of_name(directory: impl AsFd, name: &OsStr) -> Result<Self, Errno> {
        rustix::fs::statat(directory, name, AtFlags::SYMLINK_NOFOLLOW).map(|stat| Self::from(&stat))
    }
}

impl From<&Stat> for Status {
    fn from(stat: &Stat) -> Self {
        let mode: u32 = sized(stat.st_mode, u32::MAX);
        let time = |seconds, nanoseconds| Time { seconds, nanoseconds };
        Self {
            kind: kind(FileType::from_raw_mode(stat.st_mode)),
            mode: mode & 0o7777,
            // Too many to count is more than one, so it counts as linked.
            links: sized(stat.st_nlink, u32::MAX),
            owner: stat.st_uid,
            group: stat.st_gid,
            is_mount: false,
            identity: Identity {
                inode: Inode {
                    device: (rustix::fs::major(stat.st_dev), rustix::fs::minor(stat.st_dev)),
                    number: stat.st_ino,
                },
                size: sized(stat.st_size, u64::MAX),
                modified: time(stat.st_mtime, sized(stat.st_mtime_nsec, 0)),
                changed: time(stat.st_ctime, sized(stat.st_ctime_nsec, 0)),
            },
        }
    }
}

/// Converts a number whose size differs among systems.
fn sized<T, U: TryFrom<T>>(number: T, otherwise: U) -> U {
    U::try_from(number).unwrap_or(otherwise)
}

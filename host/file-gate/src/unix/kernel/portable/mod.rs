//! Opens paths name by name, with calls that every Unix has.
//!
//! There is neither `O_PATH` nor openat2 nor `/proc`. So a file is held by its directory and its name, together with its
//! identity, and is compared with this identity whenever it is opened. Regular files and directories are also held
//! open for reading; other files are never opened.
//!
//! # Limits
//! A walk is not one act. A user who may rename both in a permitted directory and in another can make a file of the
//! other appear at a path in the permitted one at which it never was at any moment. `bound.rs` shows it, and that
//! renames in the permitted directory alone never lead out of it. The same user could as well have moved the file there.
//! macOS names open files (`F_GETPATH`), and this name counts, so that files with one name are exempt.
//!
//! An access control list that is neither in the mode nor an extended attribute is not copied to a file that replaces
//! another. A directory that may be entered but not read cannot be walked through.

#[cfg(test)]
mod bound;
mod case;
mod descriptors;
mod handle;
mod open;
mod place;
mod reported;
mod status;
mod walk;

use std::hash::{BuildHasher as _, Hasher as _, RandomState};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::Path;

use rustix::fs::{Gid, OFlags, Uid};
use rustix::io::Errno;

use super::last::Last;

pub(crate) use case::ignores_case;
pub(crate) use descriptors::Descriptors;
pub(crate) use handle::{Directory, Handle};
pub(crate) use open::open_name;

/// There is no flag with which a file is created without a name.
pub(crate) const UNNAMED: Option<OFlags> = None;

/// Opens a path in the host's view.
pub(crate) fn open_on_host(path: &Path, last: Last) -> Result<Handle, Errno> {
    walk::open(path, last)
}

/// Opens a directory, if no part of its path is a link.
pub(crate) fn open_without_links(path: &Path) -> Result<OwnedFd, Errno> {
    Ok(walk::open_without_links(path)?.into_directory()?.file)
}

/// Returns an error: no system but Linux has mounts of its own for a session.
pub(crate) fn open_in_root(_root: BorrowedFd<'_>, _path: &Path, _last: Last) -> Result<Handle, Errno> {
    Err(Errno::NOSYS)
}

/// Returns false: every file is examined.
pub(crate) fn is_disk(_device: (u32, u32)) -> bool {
    false
}

/// Gives a file to a user.
pub(super) fn give(file: impl AsFd, owner: Uid, group: Gid) -> Result<(), Errno> {
    rustix::fs::fchown(file, Some(owner), Some(group))
}

/// Returns a number that others cannot guess: the hash of the standard library has a random key.
#[expect(clippy::unnecessary_wraps, reason = "it fails on Linux")]
pub(crate) fn random() -> Result<u64, Errno> {
    Ok(RandomState::new().build_hasher().finish())
}

/// Returns false: canonical paths are walked, not reported by the kernel.
pub(crate) fn looks_removed(_name: &Path) -> bool {
    false
}

//! The name that a call is about, in an opened directory.

use std::ffi::{CStr, CString};
use std::os::fd::{BorrowedFd, OwnedFd};
use std::path::{Component, Path, PathBuf};

use portcullis_exec_surface::{Change, PACKAGES};
use rustix::fs::{AtFlags, FileType, statat};
use rustix::io::Errno;

/// A name in an opened directory.
pub(crate) struct ResolvedName {
    pub(crate) directory: OwnedFd,
    /// The name without a trailing slash.
    pub(crate) name: CString,
    /// The canonical path of the directory, joined with the name.
    pub(crate) path: PathBuf,
    /// Whether the name had a trailing slash.
    pub(crate) as_directory: bool,
}

impl ResolvedName {
    /// Returns the name as given: a trailing slash means something to the kernel.
    pub(crate) fn given(&self) -> CString {
        if !self.as_directory {
            return self.name.clone();
        }
        // Neither a name nor the slash contains NUL.
        CString::new([self.name.as_bytes(), b"/"].concat()).unwrap_or_default()
    }
}

/// Whether a symbolic link at the end is followed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum LastLink {
    Follow,
    Keep,
}

/// Returns the type of the file with this name; a link is not followed.
pub(crate) fn kind_of(holder: BorrowedFd<'_>, name: &CStr) -> Result<FileType, Errno> {
    let status = statat(holder, name, AtFlags::SYMLINK_NOFOLLOW)?;
    Ok(FileType::from_raw_mode(status.st_mode))
}

/// Returns the change that creating a name for a file of this kind means.
pub(crate) fn change_for(kind: FileType) -> Change {
    match kind {
        FileType::Directory => Change::MoveTree,
        FileType::RegularFile => Change::Install,
        FileType::Symlink => Change::Symlink,
        FileType::Fifo
        | FileType::Socket
        | FileType::CharacterDevice
        | FileType::BlockDevice
        | FileType::Unknown => Change::Special,
    }
}

/// Returns `path` with `..` resolved lexically.
pub(crate) fn normalize(path: &Path) -> PathBuf {
    let mut normal = PathBuf::new();
    for part in path.components() {
        if part == Component::ParentDir {
            normal.pop();
        } else {
            normal.push(part);
        }
    }
    normal
}

/// Returns true if a path leads through a package directory, whose files the user does not edit.
pub(crate) fn has_packages(path: &Path) -> bool {
    path.iter().any(|name| name == PACKAGES)
}

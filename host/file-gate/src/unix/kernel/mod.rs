//! The system calls of this crate, each with the reason why it is safe to use.
//!
//! On Linux, paths are opened by openat2 and descriptors are named by `/proc`. The portable module does both with calls
//! that every Unix has: it walks a path name by name.

mod interfaces;
#[cfg_attr(all(target_os = "linux", not(feature = "portable")), path = "linux.rs")]
#[cfg_attr(not(all(target_os = "linux", not(feature = "portable"))), path = "portable/mod.rs")]
mod system;

use std::ffi::{OsStr, OsString};
use std::io;
use std::os::fd::AsFd;
use std::os::unix::ffi::OsStringExt as _;
use std::path::{Path, PathBuf};

use portcullis_decision::path_text;
use portcullis_decision::request::{FileFacts, PathKind};
use rustix::fs::{FileType, Gid, Mode, Uid};
use rustix::io::Errno;

use crate::FileError;
use crate::operation::Identity;

pub(crate) use interfaces::is_kernel_interface;
pub(crate) use system::{
    Descriptors, Directory, Handle, UNNAMED, ignores_case, is_disk, looks_removed, open_in_root, open_name,
    open_on_host, open_without_links, random,
};

/// The treatment of the last name of a path that is opened.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Last {
    /// A link is followed.
    Followed,
    /// A link is opened itself.
    Itself,
    /// A link is followed, and must lead to a directory.
    Directory,
}

/// Returns the target of a symbolic link; `None` if the name is not a link.
pub(crate) fn link_target(directory: impl AsFd, name: &OsStr) -> Result<Option<PathBuf>, Errno> {
    match rustix::fs::readlinkat(directory, name, Vec::new()) {
        Ok(target) => Ok(Some(PathBuf::from(OsString::from_vec(target.into_bytes())))),
        Err(Errno::INVAL) => Ok(None),
        Err(errno) => Err(errno),
    }
}

/// The metadata of a file.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Status {
    pub(crate) kind: PathKind,
    pub(crate) mode: u32,
    pub(crate) links: u32,
    pub(crate) owner: u32,
    pub(crate) group: u32,
    /// True if a mount begins here. Kernels before 5.8 do not report it, which counts as true. The portable gate does
    /// not know it: mounts on single files exist on Linux only.
    pub(crate) is_mount: bool,
    pub(crate) identity: Identity,
}

impl Status {
    /// Returns the facts for policies.
    pub(crate) fn facts(&self) -> FileFacts {
        FileFacts {
            size: u32::try_from(self.identity.size).unwrap_or(u32::MAX),
            links: self.links,
            owner: self.owner,
            mode: self.mode,
        }
    }
}

/// Returns the kind of a file in the terms of requests.
pub(crate) fn kind(file_type: FileType) -> PathKind {
    match file_type {
        FileType::RegularFile => PathKind::File,
        FileType::Directory => PathKind::Directory,
        FileType::Symlink => PathKind::Symlink,
        FileType::Fifo
        | FileType::Socket
        | FileType::CharacterDevice
        | FileType::BlockDevice
        | FileType::Unknown => PathKind::Other,
    }
}

/// Returns the mode with these bits.
pub(crate) fn mode(bits: u32) -> Mode {
    // The size of the number differs among systems. Permission bits always fit; otherwise, nothing is permitted.
    fn sized<T: TryFrom<u32> + Default>(bits: u32) -> T {
        T::try_from(bits).unwrap_or_default()
    }
    Mode::from_raw_mode(sized(bits & 0o7777))
}

/// Returns true if a file is on a read-only mount.
pub(crate) fn is_on_read_only_mount(file: impl AsFd) -> Result<bool, Errno> {
    Ok(rustix::fs::fstatvfs(file)?.f_flag.contains(rustix::fs::StatVfsMountFlags::RDONLY))
}

/// Gives a file that root has just created to the owner of its directory.
///
/// Root acts there for that user, who could not access the file otherwise.
pub(crate) fn hand_over(made: impl AsFd, directory: impl AsFd) -> Result<(), Errno> {
    let (own, around) = (Status::of(&made)?, Status::of(directory)?);
    if own.owner != ROOT || around.owner == ROOT {
        return Ok(());
    }
    system::give(made, Uid::from_raw(around.owner), Gid::from_raw(around.group))
}

const ROOT: u32 = 0;

/// Converts an error of the kernel into an error of this crate.
pub(crate) fn failure(doing: &'static str, path: &Path, errno: Errno) -> FileError {
    let path = path_text::encode(path);
    match errno {
        Errno::NOENT => FileError::NotFound { path },
        Errno::NOTDIR => FileError::NotADirectory { path },
        Errno::ISDIR => FileError::IsDirectory { path },
        Errno::LOOP => FileError::Loop { path },
        Errno::NOSYS => FileError::Unsupported,
        // Concurrent renames kept interrupting the walk of the path, or the name has become another file.
        Errno::AGAIN | Errno::STALE => FileError::Moved { path },
        Errno::ACCESS | Errno::PERM | Errno::ROFS => {
            FileError::Denied { doing, path, source: io::Error::from(errno) }
        }
        _ => FileError::Io { doing, path, source: io::Error::from(errno) },
    }
}

//! Opens paths name by name, with calls that every Unix has.
//!
//! There is neither `O_PATH` nor openat2 nor `/proc`. So a file is held by its directory and its name, together with its
//! identity, and is compared with this identity whenever it is opened. Regular files and directories are also held
//! open for reading; other files are never opened.
//!
//! # Limits
//! The walk is not one act: a process that may rename directories on both sides of a rule can make a file appear at a
//! path at which it never was at any one moment. `tests/gate/bound.rs` tries it.
//!
//! An access control list that is neither in the mode nor an extended attribute is not copied to a file that replaces
//! another. A directory that may be entered but not read cannot be walked through.

mod open;
mod status;
mod walk;

use std::ffi::{OsStr, OsString};
use std::hash::{BuildHasher as _, Hasher as _, RandomState};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use portcullis_decision::request::PathKind;
use rustix::fs::{Gid, Mode, OFlags, SeekFrom, Uid};
use rustix::io::Errno;

use super::{Last, Status};

pub(crate) use open::open_name;

/// There is no flag with which a file is created without a name.
pub(crate) const UNNAMED: Option<OFlags> = None;

/// A file or directory.
#[derive(Debug)]
pub(crate) struct Handle {
    /// The directory that contains the name.
    parent: Arc<OwnedFd>,
    name: OsString,
    /// The canonical path.
    path: PathBuf,
    /// The metadata when it was opened.
    status: Status,
    /// A regular file or directory that may be read, opened for reading.
    file: Option<OwnedFd>,
}

/// A directory, opened for reading.
#[derive(Debug)]
pub(crate) struct Directory {
    file: OwnedFd,
    path: PathBuf,
}

impl Handle {
    /// Returns the canonical path and the metadata.
    pub(crate) fn place(&self, _descriptors: &Descriptors) -> Result<(PathBuf, Status), Errno> {
        let status = self.status()?;
        // A link as such is compared as well: the walk does not follow it.
        walk::require_at(&status, &self.path)?;
        Ok((self.path.clone(), status))
    }

    /// Returns the metadata.
    pub(crate) fn status(&self) -> Result<Status, Errno> {
        match &self.file {
            Some(file) => Status::of(file),
            None => {
                let status = Status::of_name(&self.parent, &self.name)?;
                if open::is_same(&status, &self.status) { Ok(status) } else { Err(Errno::STALE) }
            }
        }
    }

    /// Returns a descriptor of something on the same mount.
    pub(crate) fn volume(&self) -> BorrowedFd<'_> {
        self.file.as_ref().map_or(self.parent.as_fd(), AsFd::as_fd)
    }

    /// Returns the descriptor if this is a directory whose names can be looked up.
    pub(crate) fn directory(&self) -> Option<BorrowedFd<'_>> {
        let file = self.file.as_ref().filter(|_| self.status.kind == PathKind::Directory);
        file.map(AsFd::as_fd)
    }

    /// Returns the directory that was opened as one.
    pub(crate) fn into_directory(self) -> Result<Directory, Errno> {
        match self.status.kind {
            PathKind::Directory => {
                let file = self.file.ok_or(Errno::ACCESS)?;
                Ok(Directory { file, path: self.path })
            }
            PathKind::File | PathKind::Symlink | PathKind::Other | PathKind::Missing => Err(Errno::NOTDIR),
        }
    }
}

impl Directory {
    /// Opens one name in a directory, without following a link. `path` is its canonical path.
    pub(crate) fn open(directory: impl AsFd, name: &OsStr, path: &Path) -> Result<Self, Errno> {
        Ok(Self { file: open::directory(directory, name)?, path: path.to_owned() })
    }

    /// Returns the canonical path and the metadata.
    pub(crate) fn place(&self, _descriptors: &Descriptors) -> Result<(PathBuf, Status), Errno> {
        let status = Status::of(&self.file)?;
        walk::require_at(&status, &self.path)?;
        Ok((self.path.clone(), status))
    }
}

impl AsFd for Directory {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.file.as_fd()
    }
}

/// Operations on open files.
#[derive(Debug)]
pub(crate) struct Descriptors(());

impl Descriptors {
    /// Always succeeds: nothing is needed.
    #[expect(clippy::unnecessary_wraps, reason = "it fails on Linux")]
    pub(crate) fn open() -> Result<Self, Errno> {
        Ok(Self(()))
    }

    /// Returns true if an open file is at the canonical path `path` now.
    #[expect(clippy::unused_self, reason = "it is used on Linux")]
    pub(crate) fn is_at(&self, file: impl AsFd, path: &Path) -> bool {
        Status::of(file).and_then(|status| walk::require_at(&status, path)).is_ok()
    }

    /// Returns an error: no file is without a name.
    #[expect(clippy::unused_self, reason = "it is used on Linux")]
    pub(crate) fn link(&self, _: BorrowedFd<'_>, _: impl AsFd, _: &OsStr) -> Result<(), Errno> {
        Err(Errno::NOTSUP)
    }

    /// Opens the same file again, with other access rights; fails with `ESTALE` if the name is another file.
    #[expect(clippy::unused_self, reason = "it is used on Linux")]
    pub(crate) fn reopen(&self, file: &Handle, flags: OFlags) -> Result<OwnedFd, Errno> {
        let cannot_write = !flags.intersects(OFlags::WRONLY | OFlags::RDWR);
        match &file.file {
            Some(held) if file.status.kind == PathKind::Directory => {
                rustix::fs::openat(held, ".", flags | OFlags::CLOEXEC | OFlags::NONBLOCK, Mode::empty())
            }
            Some(held) if cannot_write => {
                let copy = rustix::io::fcntl_dupfd_cloexec(held, 0)?;
                rustix::fs::seek(&copy, SeekFrom::Start(0))?;
                Ok(copy)
            }
            Some(_) | None => open::again(&file.parent, &file.name, &file.status, flags),
        }
    }
}

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

/// Returns true if case does not count in the names of a directory, or if this cannot be found out.
pub(crate) fn ignores_case(directory: &Path) -> bool {
    let inode = |path: &Path| rustix::fs::lstat(path).map(|stat| Status::from(&stat).identity.inode);
    for path in directory.ancestors() {
        let Some(name) = path.file_name() else { break };
        let other: Vec<u8> = name.as_bytes().iter().map(swap_case).collect();
        if other == name.as_bytes() {
            continue;
        }
        return match (inode(path), inode(&path.with_file_name(OsStr::from_bytes(&other)))) {
            (Ok(one), Ok(two)) => one == two,
            (_, Err(Errno::NOENT)) => false,
            _ => true,
        };
    }
    !cfg!(target_os = "linux")
}

fn swap_case(byte: &u8) -> u8 {
    if byte.is_ascii_lowercase() { byte.to_ascii_uppercase() } else { byte.to_ascii_lowercase() }
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

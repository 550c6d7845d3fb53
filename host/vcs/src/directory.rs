//! Directories and small files, opened by descriptor without following links.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::Read as _;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Component, Path};

use rustix::fs::{CWD, Dir, FileType, Mode, OFlags, Stat, fstat, openat};

/// How a directory is opened that is only walked through.
#[cfg(target_os = "linux")]
const WALK: OFlags = OFlags::PATH;
#[cfg(not(target_os = "linux"))]
const WALK: OFlags = OFlags::RDONLY;

/// An open directory.
#[derive(Debug)]
pub(crate) struct Directory(OwnedFd);

impl Directory {
    /// Opens a directory by its absolute path. `None` if a component is a link or is missing.
    pub(crate) fn open(path: &Path) -> Option<Self> {
        let flags = WALK | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let root = Self(openat(CWD, "/", flags, Mode::empty()).ok()?);
        path.strip_prefix("/").ok()?.components().try_fold(root, |at, part| match part {
            Component::Normal(name) => at.child(name),
            Component::CurDir => Some(at),
            Component::RootDir | Component::ParentDir | Component::Prefix(_) => None,
        })
    }

    /// Opens a directory in this one.
    pub(crate) fn child(&self, name: impl AsRef<OsStr>) -> Option<Self> {
        let flags = WALK | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        openat(&self.0, name.as_ref(), flags, Mode::empty()).ok().map(Self)
    }

    /// Reads a regular file in this directory, if it has at most `limit` bytes.
    pub(crate) fn read(&self, name: impl AsRef<OsStr>, limit: usize) -> Option<Vec<u8>> {
        let mut bytes = Vec::new();
        self.file(name)?.take(u64::try_from(limit).ok()?.saturating_add(1)).read_to_end(&mut bytes).ok()?;
        (bytes.len() <= limit).then_some(bytes)
    }

    /// Opens a regular file in this directory.
    pub(crate) fn file(&self, name: impl AsRef<OsStr>) -> Option<File> {
        // A pipe would block; a terminal could become ours.
        let careful = OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
        let opened = openat(&self.0, name.as_ref(), OFlags::RDONLY | careful, Mode::empty()).ok()?;
        let state = fstat(&opened).ok()?;
        let is_regular = FileType::from_raw_mode(state.st_mode) == FileType::RegularFile;
        is_regular.then(|| File::from(opened))
    }

    /// Returns the names of entries: those of `most` packs, each of which has up to four files.
    pub(crate) fn names(&self, most: usize) -> Option<Vec<OsString>> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let opened = openat(&self.0, ".", flags, Mode::empty()).ok()?;
        let entries = Dir::read_from(opened).ok()?.flatten();
        let names = entries.map(|entry| OsStr::from_bytes(entry.file_name().to_bytes()).to_owned());
        Some(names.filter(|name| name != "." && name != "..").take(most * 4).collect())
    }

    /// Returns the state of an entry of this directory, itself if it is a link.
    pub(crate) fn state(&self, name: impl AsRef<OsStr>) -> Option<Stat> {
        rustix::fs::statat(&self.0, name.as_ref(), rustix::fs::AtFlags::SYMLINK_NOFOLLOW).ok()
    }

    /// Returns true if the directory belongs to the user of this process.
    pub(crate) fn is_own(&self) -> bool {
        fstat(&self.0).is_ok_and(|state| state.st_uid == rustix::process::geteuid().as_raw())
    }
}

//! The directory of kept contents: one file each.

use std::io;
use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicU64, Ordering};

use rustix::fs::{AtFlags, Mode, OFlags, fchmod, openat, renameat, unlinkat};

use crate::disk;

const MODE: Mode = Mode::RUSR.union(Mode::WUSR);

/// The kept contents of a session, as one writer uses them.
#[derive(Debug)]
pub(crate) struct Contents {
    directory: OwnedFd,
    /// Makes the names of this writer differ from those of others.
    writer: u64,
    next: AtomicU64,
}

impl Contents {
    pub(crate) fn new(directory: OwnedFd) -> io::Result<Self> {
        let writer = getrandom::u64().map_err(io::Error::other)?;
        Ok(Self { directory, writer, next: AtomicU64::new(0) })
    }

    pub(crate) fn directory(&self) -> &OwnedFd {
        &self.directory
    }

    pub(crate) fn writer(&self) -> u64 {
        self.writer
    }

    /// Returns a name that no other content has.
    pub(crate) fn new_name(&self) -> String {
        format!("{:016x}-{}", self.writer, self.next.fetch_add(1, Ordering::Relaxed))
    }

    /// Copies an open file to a new name.
    pub(crate) fn copy(&self, file: &OwnedFd, name: &str, size: u64) -> io::Result<()> {
        let flags = OFlags::CREATE | OFlags::EXCL | OFlags::WRONLY | OFlags::CLOEXEC;
        let to = openat(&self.directory, name, flags, MODE)?;
        // A broker has the umask of the command that it works for.
        fchmod(&to, MODE)?;
        Ok(disk::copy(file, &to, size)?)
    }

    /// Puts a copy of an open file in the place of the link to it.
    pub(crate) fn copy_instead(&self, file: &OwnedFd, name: &str, size: u64) -> io::Result<()> {
        let copy = self.new_name();
        self.copy(file, &copy, size)?;
        Ok(renameat(&self.directory, &*copy, &self.directory, name)?)
    }

    /// Removes a content.
    pub(crate) fn remove(&self, name: &str) {
        // One that stays is removed with the store.
        let _gone = unlinkat(&self.directory, name, AtFlags::empty());
    }
}

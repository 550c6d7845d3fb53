//! Operations on open files.

use std::ffi::OsStr;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use portcullis_decision::request::PathKind;
use rustix::fs::{Mode, OFlags, SeekFrom};
use rustix::io::Errno;

use super::handle::Handle;
use super::open::again;

/// Operations on open files.
#[derive(Debug)]
pub(crate) struct Descriptors(());

impl Descriptors {
    /// Always succeeds: nothing is needed.
    #[expect(clippy::unnecessary_wraps, reason = "it fails on Linux")]
    pub(crate) fn open() -> Result<Self, Errno> {
        Ok(Self(()))
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
            Some(_) | None => again(&file.parent, &file.name, &file.status, flags),
        }
    }
}

//! Files and directories that were found.

use std::ffi::OsString;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::PathBuf;
use std::sync::Arc;

use portcullis_decision::request::PathKind;
use rustix::io::Errno;

use crate::system::kernel::status::Status;

/// A file or directory.
#[derive(Debug)]
pub(crate) struct Handle {
    /// The directory that contains the name.
    pub(super) parent: Arc<OwnedFd>,
    pub(super) name: OsString,
    /// The canonical path.
    pub(super) path: PathBuf,
    /// The metadata when it was opened.
    pub(super) status: Status,
    /// A regular file or directory that may be read, opened for reading.
    pub(super) file: Option<OwnedFd>,
}

/// A directory, opened for reading.
#[derive(Debug)]
pub(crate) struct Directory {
    pub(super) file: OwnedFd,
    pub(super) path: PathBuf,
}

impl Handle {
    /// Returns the metadata.
    pub(crate) fn status(&self) -> Result<Status, Errno> {
        match &self.file {
            Some(file) => Status::read(file),
            None => {
                let status = Status::of_name(&self.parent, &self.name)?;
                if status.is_same_file(&self.status) { Ok(status) } else { Err(Errno::STALE) }
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

impl AsFd for Directory {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.file.as_fd()
    }
}

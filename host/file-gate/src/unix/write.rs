//! Writes whole files: a new file replaces the old one, or the old one is overwritten in place.

mod create;
mod overwrite;

use std::path::Path;

use portcullis_decision::path_text;
use rustix::io::Errno;

use crate::FileError;
use crate::operation::{WriteOptions, Written};
use crate::system::kernel::{Descriptors, Directory, Status, failure};
use crate::system::located::{Located, Slot, Target};
use crate::system::read;

/// Writes `bytes` as the content of the located file.
pub(crate) fn whole(
    descriptors: &Descriptors,
    located: &Located,
    bytes: &[u8],
    options: WriteOptions,
) -> Result<Written, FileError> {
    let slot = slot(located)?;
    let job = Job { descriptors, located, slot, bytes };
    job.require_place(&slot.parent, &slot.parent_path)?;
    match &slot.file {
        Some(file) => {
            read::require_file(located, file)?;
            job.overwrite(file, options)
        }
        None if options.expect.is_some() => Err(job.conflict()),
        None => job.create(),
    }
}

/// Returns the name that was located for writing.
pub(crate) fn slot(located: &Located) -> Result<&Slot, FileError> {
    match &located.target {
        Target::Slot(slot) => Ok(slot),
        Target::Opened(_) => Err(FileError::NotForWriting { path: located.text.clone() }),
    }
}

/// One write operation.
struct Job<'a> {
    descriptors: &'a Descriptors,
    located: &'a Located,
    slot: &'a Slot,
    bytes: &'a [u8],
}

impl Job<'_> {
    /// Checks that a directory still has the canonical path that was decided about.
    ///
    /// It may have been moved while the user was asked.
    fn require_place(&self, directory: &Directory, path: &Path) -> Result<(), FileError> {
        match directory.place(self.descriptors) {
            Ok((name, _)) if name == path => Ok(()),
            Ok(_) | Err(Errno::NOENT) => Err(FileError::Moved { path: path_text::encode(path) }),
            Err(errno) => Err(failure("name", path, errno)),
        }
    }

    fn written(&self, status: &Status, created: bool) -> Written {
        Written { identity: status.identity, size: status.identity.size, created }
    }

    fn failed(&self, errno: Errno) -> FileError {
        failure("write", &self.located.canonical, errno)
    }

    fn broken(&self, source: std::io::Error) -> FileError {
        FileError::Io { doing: "write", path: self.located.text.clone(), source }
    }

    fn conflict(&self) -> FileError {
        FileError::Conflict { path: self.located.text.clone() }
    }
}

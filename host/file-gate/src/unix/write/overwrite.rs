//! Writes a file that exists.

use std::fs::File;
use std::io::Write as _;
use std::os::fd::OwnedFd;

use rustix::fs::OFlags;
use rustix::io::Errno;

use super::Job;
use crate::FileError;
use crate::operation::{Links, WriteOptions, Written};
use crate::system::kernel::{self, Handle, Status};
use crate::system::temporary::{Looks, Temporary};
use crate::view::View;

/// The outcome of an attempt to replace the file by a new one.
enum ReplaceOutcome {
    Done(Status),
    Conflict,
    /// The file cannot be replaced, so it must be written in place.
    NotHere,
}

impl Job<'_> {
    pub(super) fn overwrite(&self, file: &Handle, options: WriteOptions) -> Result<Written, FileError> {
        // Opening it for writing makes the kernel check the permission on this file: replacing it would only need write
        // permission on the directory.
        let file = match self.descriptors.reopen(file, OFlags::WRONLY) {
            // The name is another file now.
            Err(Errno::STALE) => return Err(self.conflict()),
            opened => opened.map_err(|errno| self.failed(errno))?,
        };
        let before = Status::read(&file).map_err(|errno| self.failed(errno))?;
        if options.expect.is_some_and(|expected| expected != before.identity) {
            return Err(self.conflict());
        }
        let linked = before.links > 1;
        if linked && options.links == Links::Refuse {
            return Err(FileError::Linked { path: self.located.text.clone(), links: before.links });
        }
        // A mount on this name, which hides or binds a single file, would be lost with the renamed file, see rename(2):
        // the kernel refuses the rename only in the namespace of the mount, which is not ours. In the host's view such
        // a mount is not visible at all.
        let has_mount = before.is_mount || self.located.view == View::BeyondSession;
        let in_place = linked || has_mount;
        let attempt = if in_place { ReplaceOutcome::NotHere } else { self.replace(&file, &before, options)? };
        match attempt {
            ReplaceOutcome::Done(status) => Ok(self.written(&status, false)),
            ReplaceOutcome::Conflict => Err(self.conflict()),
            ReplaceOutcome::NotHere => self.write_in_place(file, &before, options),
        }
    }

    fn replace(
        &self,
        file: &OwnedFd,
        before: &Status,
        options: WriteOptions,
    ) -> Result<ReplaceOutcome, FileError> {
        let mut temporary = match Temporary::create(&self.slot.parent, self.descriptors, 0o600) {
            // The directory is not writable, but the file is.
            Err(Errno::ACCESS | Errno::PERM | Errno::ROFS) => return Ok(ReplaceOutcome::NotHere),
            created => created.map_err(|errno| self.failed(errno))?,
        };
        // Replacing the file would change its owner or lose its attributes.
        if temporary.dress(Looks::after_write(before), file).is_err() {
            return Ok(ReplaceOutcome::NotHere);
        }
        temporary.write(self.bytes).map_err(|error| self.broken(error))?;
        let is_expected = |displaced: &Status| match options.expect {
            // The change time is not compared: the rename itself sets it.
            Some(_) => {
                let (now, then) = (displaced.identity, before.identity);
                (now.inode, now.size, now.modified) == (then.inode, then.size, then.modified)
                    && displaced.mode == before.mode
            }
            None => displaced.identity.inode == before.identity.inode,
        };
        match temporary.exchange(&self.slot.name, is_expected) {
            Ok(Some(status)) => Ok(ReplaceOutcome::Done(status)),
            Ok(None) | Err(Errno::NOENT) => Ok(ReplaceOutcome::Conflict),
            // There is a mount on the name, or the file system cannot exchange files (NFS, some FUSE).
            Err(Errno::BUSY | Errno::XDEV | Errno::INVAL | Errno::NOSYS | Errno::NOTSUP) => {
                Ok(ReplaceOutcome::NotHere)
            }
            Err(errno) => Err(self.failed(errno)),
        }
    }

    fn write_in_place(
        &self,
        file: OwnedFd,
        before: &Status,
        options: WriteOptions,
    ) -> Result<Written, FileError> {
        let now = Status::read(&file).map_err(|errno| self.failed(errno))?;
        if now.links == 0 || options.expect.is_some() && now.identity != before.identity {
            return Err(self.conflict());
        }
        if before.mode != Looks::after_write(before).mode {
            // The kernel drops set-id bits only for writers other than root, so root has to do it.
            let mode = kernel::mode(Looks::after_write(before).mode);
            rustix::fs::fchmod(&file, mode).map_err(|errno| self.failed(errno))?;
        }
        let file = File::from(file);
        (&file).write_all(self.bytes).map_err(|error| self.broken(error))?;
        let length = u64::try_from(self.bytes.len()).map_err(|_| self.failed(Errno::FBIG))?;
        file.set_len(length).map_err(|error| self.broken(error))?;
        let status = Status::read(&file).map_err(|errno| self.failed(errno))?;
        Ok(self.written(&status, false))
    }
}

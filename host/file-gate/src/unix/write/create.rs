//! Writes a file that does not exist yet.

use std::fs::File;
use std::io::Write as _;

use rustix::fs::OFlags;
use rustix::io::Errno;

use super::Job;
use crate::FileError;
use crate::operation::Written;
use crate::system::kernel::{self, Directory, Status, failure};
use crate::system::temporary::Temporary;

/// The modes of new files and directories before the umask is applied, as in other programs.
const FILE_MODE: u32 = 0o666;
const DIRECTORY_MODE: u32 = 0o777;

impl Job<'_> {
    pub(super) fn create(&self) -> Result<Written, FileError> {
        let made = self.make_parents()?;
        let parent = made.as_ref().unwrap_or(&self.slot.parent);
        let mut temporary =
            Temporary::create(parent, self.descriptors, FILE_MODE).map_err(|errno| self.failed(errno))?;
        temporary.write(self.bytes).map_err(|error| self.broken(error))?;
        temporary.hand_over().map_err(|errno| self.failed(errno))?;
        match temporary.install(&self.slot.name) {
            Ok(status) => Ok(self.written(&status, true)),
            Err(Errno::EXIST) => Err(self.conflict()),
            // NFS and some FUSE file systems do not support the flags of renameat2.
            Err(Errno::INVAL | Errno::NOSYS | Errno::NOTSUP) => self.create_directly(parent),
            Err(errno) => Err(self.failed(errno)),
        }
    }

    /// Creates the missing directories one by one, each inside the one before; returns the last.
    fn make_parents(&self) -> Result<Option<Directory>, FileError> {
        let mut made: Option<Directory> = None;
        for (name, path) in self.slot.missing.iter().zip(self.slot.missing_paths()) {
            let parent = made.as_ref().unwrap_or(&self.slot.parent);
            let failed = |errno| failure("create the directory", &path, errno);
            let is_ours = match rustix::fs::mkdirat(parent, name, kernel::mode(DIRECTORY_MODE)) {
                Ok(()) => true,
                // Another process created it in the meantime; it is used only if it is a directory.
                Err(Errno::EXIST) => false,
                Err(errno) => return Err(failed(errno)),
            };
            let directory = Directory::open(parent, name, &path).map_err(failed)?;
            self.require_place(&directory, &path)?;
            if is_ours {
                kernel::hand_over(&directory, parent).map_err(failed)?;
            }
            made = Some(directory);
        }
        Ok(made)
    }

    fn create_directly(&self, parent: &Directory) -> Result<Written, FileError> {
        let flags = OFlags::CREATE | OFlags::EXCL | OFlags::WRONLY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let mode = kernel::mode(FILE_MODE);
        let file = match rustix::fs::openat(parent, &self.slot.name, flags, mode) {
            Err(Errno::EXIST) => return Err(self.conflict()),
            opened => File::from(opened.map_err(|errno| self.failed(errno))?),
        };
        (&file).write_all(self.bytes).map_err(|error| self.broken(error))?;
        kernel::hand_over(&file, parent).map_err(|errno| self.failed(errno))?;
        let status = Status::read(&file).map_err(|errno| self.failed(errno))?;
        Ok(self.written(&status, true))
    }
}

//! Reads the names of one directory of the machine, and creates directories in it, without following a link.

use std::ffi::OsStr;
use std::fs::File;
use std::io::{self, Read};
use std::os::fd::OwnedFd;
use std::path::Path;

use rustix::fs::{AtFlags, Dir, FileType, Mode, OFlags, fchown, fstat, mkdirat, openat, statat, unlinkat};
use rustix::process::{Gid, Uid, geteuid};

use crate::system::kernel;

/// An open directory of the machine.
#[derive(Debug)]
pub struct HostDirectory(OwnedFd);

impl HostDirectory {
    /// Opens a directory; `None` if there is none at this very path.
    #[must_use]
    pub fn open(path: &Path) -> Option<Self> {
        kernel::open_without_links(path).ok().map(Self)
    }

    /// Returns true if it has this name.
    #[must_use]
    pub fn has(&self, name: &str) -> bool {
        statat(&self.0, name, AtFlags::SYMLINK_NOFOLLOW).is_ok()
    }

    /// Returns true if it has a directory with this name.
    #[must_use]
    pub fn has_directory(&self, name: &str) -> bool {
        let status = statat(&self.0, name, AtFlags::SYMLINK_NOFOLLOW);
        status.is_ok_and(|status| FileType::from_raw_mode(status.st_mode) == FileType::Directory)
    }

    /// Returns the content of the regular file with this name, if it has at most `most` bytes.
    #[must_use]
    pub fn read(&self, name: &str, most: u64) -> Option<Vec<u8>> {
        // NONBLOCK: opening a named pipe does not wait.
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
        let file = openat(&self.0, name, flags, Mode::empty()).ok()?;
        let is_regular = FileType::from_raw_mode(fstat(&file).ok()?.st_mode) == FileType::RegularFile;
        let mut content = Vec::new();
        let read =
            if is_regular { File::from(file).take(most + 1).read_to_end(&mut content).ok()? } else { 0 };
        (is_regular && read as u64 <= most).then_some(content)
    }

    /// Makes an empty directory with this name. Root makes one that belongs to the owner of this directory.
    ///
    /// # Errors
    /// The kernel's, as when the name exists.
    pub fn make_directory(&self, name: &OsStr) -> io::Result<()> {
        mkdirat(&self.0, name, Mode::RWXU | Mode::RWXG | Mode::RWXO)?;
        if geteuid().is_root() {
            self.give_to_owner(name).inspect_err(|_| drop(self.remove_directory(name)))?;
        }
        Ok(())
    }

    /// Gives a new directory to the owner of this one. That user may have replaced it by now, so
    /// only an empty directory of root's is given away.
    fn give_to_owner(&self, name: &OsStr) -> io::Result<()> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let made = openat(&self.0, name, flags, Mode::empty())?;
        let is_empty =
            Dir::read_from(&made)?.flatten().all(|entry| [c".", c".."].contains(&entry.file_name()));
        if fstat(&made)?.st_uid != 0 || !is_empty {
            return Err(io::Error::other("another program has replaced it"));
        }
        let owner = fstat(&self.0)?;
        fchown(&made, Some(Uid::from_raw(owner.st_uid)), Some(Gid::from_raw(owner.st_gid)))?;
        Ok(())
    }

    /// Removes the directory with this name if it is empty.
    ///
    /// # Errors
    /// The kernel's, as when it is not empty.
    pub fn remove_directory(&self, name: &OsStr) -> io::Result<()> {
        Ok(unlinkat(&self.0, name, AtFlags::REMOVEDIR)?)
    }
}

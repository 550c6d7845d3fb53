//! Looks at the names of one directory of the machine, without following a link.

use std::os::fd::OwnedFd;
use std::path::Path;

use rustix::fs::{AtFlags, CWD, FileType, Mode, OFlags, ResolveFlags, statat};

/// An open directory of the machine.
#[derive(Debug)]
pub struct HostDirectory(OwnedFd);

impl HostDirectory {
    /// Opens a directory; `None` if there is none at this very path.
    #[must_use]
    pub fn open(path: &Path) -> Option<Self> {
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let resolve = ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_MAGICLINKS;
        rustix::fs::openat2(CWD, path, flags, Mode::empty(), resolve).ok().map(Self)
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
}

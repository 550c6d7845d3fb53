//! The session's record of changes, as one broker writes it.

use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use portcullis_changes::Recorder;
use rustix::fs::{Mode, OFlags, ResolveFlags, fstat, openat2};

use crate::resolved_name::ResolvedName;

/// The record of the session's changes.
#[derive(Debug)]
pub(crate) struct Recording {
    pub(crate) recorder: Recorder,
    /// The number of this sandbox in the record.
    pub(crate) view: u64,
    pub(crate) outside: Option<Outside>,
}

/// The project outside of the sandbox, on the mount that the record is on as well. A file can have links on one mount
/// only, and the sandbox has the project on another.
#[derive(Debug)]
pub(crate) struct Outside {
    project: PathBuf,
    top: OwnedFd,
    /// The directory that was used last: commands remove the files of a directory one after the other.
    last: Mutex<Option<Known>>,
}

/// An open directory with its path, device and inode number.
#[derive(Debug)]
struct Known {
    path: PathBuf,
    id: (u64, u64),
    open: Arc<OwnedFd>,
}

impl Outside {
    pub(crate) fn new(project: PathBuf, top: OwnedFd) -> Self {
        Self { project, top, last: Mutex::default() }
    }

    /// Returns the directory of a place as it is outside; `None` if it is another one.
    pub(crate) fn directory_of(&self, place: &ResolvedName) -> Option<Arc<OwnedFd>> {
        let path = place.path.parent()?;
        let rest = path.strip_prefix(&self.project).ok()?;
        let id = |open: &OwnedFd| fstat(open).ok().map(|found| (found.st_dev, found.st_ino));
        let inside = id(&place.directory)?;
        let mut last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = last.as_ref().filter(|known| known.id == inside && known.path == path) {
            return Some(Arc::clone(&known.open));
        }
        let open = Arc::new(self.open(rest).filter(|open| id(open) == Some(inside))?);
        *last = Some(Known { path: path.to_owned(), id: inside, open: Arc::clone(&open) });
        Some(open)
    }

    fn open(&self, rest: &Path) -> Option<OwnedFd> {
        let rest = if rest.as_os_str().is_empty() { Path::new(".") } else { rest };
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_MAGICLINKS;
        openat2(&self.top, rest, flags, Mode::empty(), resolve).ok()
    }
}

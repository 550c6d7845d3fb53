//! Directories and files that a command has closed, opened for a look.

use std::ffi::CStr;
use std::os::fd::{AsFd, OwnedFd};
use std::path::{Path, PathBuf};

use rustix::fs::{Mode, OFlags, openat};
use rustix::io::Errno;
use rustix::process::geteuid;

use crate::disk::{self, look, open_same, set_mode, set_mode_of, spot};
use crate::state::{FileId, FileState, State};

/// The permissions with which the owner of a directory can search it.
const SEARCHED: u32 = 0o500;
/// The bits of a mode that a directory gets back.
const MODE: u32 = 0o3777;
/// The permission with which its owner can read a file.
const READ: u32 = 0o400;

/// Directories that were opened. They get their modes back when this is dropped.
#[derive(Debug, Default)]
pub(crate) struct Opened(Vec<(PathBuf, FileId, u32)>);

impl Opened {
    /// Opens the directories on the way to a path that belong to this user, and that `may` allows to be opened.
    pub(crate) fn open_the_way(&mut self, path: &Path, may: &dyn Fn(&Path, &State) -> bool) {
        let mut way: Vec<&Path> = path.ancestors().skip(1).collect();
        way.reverse();
        for directory in way {
            let Ok(place) = spot(directory) else { continue };
            let Ok(State::Directory(found)) = look(&place.directory, &place.name) else { continue };
            let is_closed = found.mode & SEARCHED != SEARCHED && found.owner.0 == geteuid().as_raw();
            if is_closed
                && may(directory, &State::Directory(found.clone()))
                && set_mode(&place, found.id, (found.mode | SEARCHED) & MODE).is_ok()
            {
                self.0.push((directory.to_owned(), found.id, found.mode & MODE));
            }
        }
    }

    /// Returns true if nothing had to be opened.
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl Drop for Opened {
    fn drop(&mut self) {
        for (directory, id, mode) in self.0.drain(..).rev() {
            if let Ok(place) = spot(&directory) {
                // One that is another directory by now keeps its mode.
                let _changed = set_mode(&place, id, mode);
            }
        }
    }
}

/// Opens a file for reading that is as it was looked at. One of this user that is closed to its owner is open for a moment.
pub(crate) fn file(directory: impl AsFd, name: &CStr, was: &FileState) -> rustix::io::Result<OwnedFd> {
    match open_same(&directory, name, was.id) {
        Err(Errno::ACCESS) if was.mode & READ == 0 && was.owner.0 == geteuid().as_raw() => {}
        opened => return opened,
    }
    let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let closed = openat(&directory, name, flags, Mode::empty())?;
    if disk::id(&closed)? != was.id {
        return Err(Errno::STALE);
    }
    set_mode_of(&closed, was.mode | READ)?;
    let opened = open_same(&directory, name, was.id);
    set_mode_of(&closed, was.mode)?;
    opened
}

//! Directories and files that a command has closed, opened for a look.
//!
//! The store has a record of each that is open, so that it is closed again if the program is killed meanwhile.

use std::ffi::CStr;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::path::{Path, PathBuf};

use rustix::fs::{Mode, OFlags, openat};
use rustix::io::Errno;
use rustix::process::geteuid;

use crate::disk::{self, look, open_same_for, set_mode, set_mode_of, spot};
use crate::record::Record;
use crate::state::{Attributes, FileId, FileState, State};
use crate::store::Store;

/// The permissions with which the owner of a directory can search it.
const SEARCHED: u32 = 0o500;
/// The bits of a mode that a directory gets back.
const MODE: u32 = 0o3777;
/// The permissions with which its owner can read and write a file.
const READ: u32 = 0o400;
const WRITE: u32 = 0o200;

/// Directories that were opened. They get their modes back when this is dropped.
#[derive(Debug)]
pub(crate) struct Opened<'a> {
    store: &'a Store,
    directories: Vec<(PathBuf, FileId, u32)>,
}

impl<'a> Opened<'a> {
    pub(crate) fn new(store: &'a Store) -> Self {
        Self { store, directories: Vec::new() }
    }

    /// Opens the directories on the way to a path that belong to this user, and that `may` allows to be opened.
    pub(crate) fn open_the_way(&mut self, path: &Path, may: &dyn Fn(&Path, &State) -> bool) {
        let mut way: Vec<&Path> = path.ancestors().skip(1).collect();
        way.reverse();
        for directory in way {
            let Ok(place) = spot(directory) else { continue };
            let Ok(State::Directory(found)) = look(&place.directory, &place.name) else { continue };
            let is_closed = found.mode & SEARCHED != SEARCHED && found.owner.0 == geteuid().as_raw();
            if !is_closed || !may(directory, &State::Directory(found.clone())) {
                continue;
            }
            let mode = found.mode & MODE;
            let opens = Record::Opens { path: directory.to_owned(), id: found.id, mode, by: SEARCHED };
            if self.store.append(&[opens]).is_ok() && set_mode(&place, found.id, mode | SEARCHED).is_ok() {
                self.directories.push((directory.to_owned(), found.id, mode));
            }
        }
    }

    /// Returns true if nothing had to be opened.
    pub(crate) fn is_empty(&self) -> bool {
        self.directories.is_empty()
    }
}

impl Drop for Opened<'_> {
    fn drop(&mut self) {
        for (path, id, mode) in self.directories.drain(..).rev() {
            if let Ok(place) = spot(&path) {
                // One that is another directory by now keeps its mode.
                let _changed = set_mode(&place, id, mode);
            }
            // Without this record, the next undo looks whether it is closed, and finds it so.
            let _unwritten = self.store.append(&[Record::Closes { path }]);
        }
    }
}

/// What a file is opened for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Access {
    Read,
    Write,
}

/// Opens a file that is as it was looked at. One of this user that is closed to its owner is open for a moment.
///
/// # Errors
/// The system's, or if the store cannot be written.
pub(crate) fn file<D: AsFd>(
    store: &Store,
    place: (D, &CStr, &Path),
    was: &FileState,
    access: Access,
) -> io::Result<OwnedFd> {
    while_open(store, place, was, access, |file| file)
}

/// Returns the extended attributes of a file that is as it was looked at. The system gives their values only while its
/// owner can read it.
///
/// # Errors
/// The system's, or if the store cannot be written.
pub(crate) fn attributes<D: AsFd>(
    store: &Store,
    place: (D, &CStr, &Path),
    was: &FileState,
) -> io::Result<Attributes> {
    while_open(store, place, was, Access::Read, |file| disk::attributes(&file))
}

fn while_open<D: AsFd, T>(
    store: &Store,
    (directory, name, path): (D, &CStr, &Path),
    was: &FileState,
    access: Access,
    work: impl FnOnce(OwnedFd) -> T,
) -> io::Result<T> {
    let (by, flags) = match access {
        Access::Read => (READ, OFlags::RDONLY),
        Access::Write => (WRITE, OFlags::WRONLY),
    };
    match open_same_for(&directory, name, was.id, flags) {
        Err(Errno::ACCESS) if was.mode & by == 0 && was.owner.0 == geteuid().as_raw() => {}
        opened => return Ok(work(opened?)),
    }
    let mode = was.mode & MODE;
    let as_path = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let closed = openat(&directory, name, as_path, Mode::empty())?;
    if disk::id(&closed)? != was.id {
        return Err(Errno::STALE.into());
    }
    store.append(&[Record::Opens { path: path.to_owned(), id: was.id, mode, by }])?;
    set_mode_of(&closed, mode | by)?;
    let done = open_same_for(&directory, name, was.id, flags).map(work);
    set_mode_of(&closed, mode)?;
    store.append(&[Record::Closes { path: path.to_owned() }])?;
    Ok(done?)
}

/// A directory or file that was opened, and not closed again: its mode, and the permissions that it got.
pub(crate) struct StillOpen<'a> {
    path: &'a Path,
    id: FileId,
    mode: u32,
    by: u32,
}

/// Returns what a program had opened when it was killed.
pub(crate) fn still_open(entries: &[Record]) -> Vec<StillOpen<'_>> {
    let mut open: Vec<StillOpen<'_>> = Vec::new();
    for entry in entries {
        if let Record::Opens { path, id, mode, by } = entry {
            open.push(StillOpen { path, id: *id, mode: *mode, by: *by });
        } else if let Record::Closes { path } = entry
            && let Some(last) = open.iter().rposition(|opened| opened.path == path.as_path())
        {
            open.remove(last);
        }
    }
    open
}

/// Gives directories and files their modes back that a program had opened when it was killed.
///
/// # Errors
/// If the store cannot be written.
pub(crate) fn close_again(store: &Store, entries: &[Record]) -> io::Result<()> {
    for StillOpen { path, id, mode, by } in still_open(entries).into_iter().rev() {
        if let Ok(place) = spot(path)
            && let Ok(found) = look(&place.directory, &place.name)
            && found.id() == Some(id)
            // If the user has changed the mode since, that mode stays.
            && found.mode().is_some_and(|found| found & MODE == (mode | by) & MODE)
        {
            // This fails if another user owns it by now; its mode is that user's then.
            let _changed = set_mode(&place, id, mode);
        }
        store.append(&[Record::Closes { path: path.to_owned() }])?;
    }
    Ok(())
}

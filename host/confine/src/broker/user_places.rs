//! User's places: names that the user may follow although a command has put a file there.
//!
//! A name becomes one when a command takes away a directory or link that was not made in this session, and so does
//! every name that is reachable from there through links. Names are remembered by the identity of the directory that
//! holds them, directories by their own. In a user's place no directory counts as a command's own, even if a command
//! made it.

use std::collections::{HashMap, HashSet};
use std::ffi::OsStr;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;

use rustix::fs::{CWD, FileType, Mode, OFlags, openat};

use super::Broker;
use super::directories::REMEMBERED;
use super::identity::{Identity, identify, look};
use super::resolve::Place;
use super::worker::{Stop, Worker};

/// The user's places.
#[derive(Default)]
pub(super) struct UserPlaces {
    /// Names in lower case, by the directory that holds them.
    names: HashMap<Identity, HashSet<Vec<u8>>>,
    /// The number of entries of each name in `names`.
    spellings: HashMap<Vec<u8>, usize>,
    directories: HashSet<Identity>,
    /// The number of names.
    count: usize,
    /// Set when there were more than are remembered.
    is_full: bool,
}

/// The user's places that one change adds.
#[derive(Debug, Default)]
pub(super) struct Reached {
    /// Names on the way through links.
    pub(super) names: Vec<(Identity, Vec<u8>)>,
    /// Directories; everything in them is in a user's place, wherever they are moved.
    pub(super) directories: Vec<Identity>,
}

impl UserPlaces {
    /// Adds a name in `holder`.
    pub(super) fn add_name(&mut self, holder: Identity, name: &[u8]) {
        self.is_full |= self.count >= REMEMBERED;
        if self.is_full || !self.names.entry(holder).or_default().insert(key(name)) {
            return;
        }
        self.count += 1;
        *self.spellings.entry(key(name)).or_default() += 1;
    }

    /// Takes back a name of [`Self::add_name`].
    pub(super) fn remove_name(&mut self, holder: &Identity, name: &[u8]) {
        let Some(names) = self.names.get_mut(holder) else { return };
        if names.remove(&key(name)) {
            self.count_down(&key(name));
        }
    }

    /// Adds a directory; everything in it is in a user's place, wherever it is moved.
    pub(super) fn add_directory(&mut self, directory: Identity) {
        self.is_full |= self.directories.len() >= REMEMBERED;
        if !self.is_full {
            self.directories.insert(directory);
        }
    }

    /// Forgets a directory that no longer exists, with the names in it.
    pub(super) fn forget(&mut self, gone: &Identity) {
        self.directories.remove(gone);
        for name in self.names.remove(gone).unwrap_or_default() {
            self.count_down(&name);
        }
    }

    /// Makes every place the user's.
    pub(super) fn fill(&mut self) {
        self.is_full = true;
    }

    /// Returns true if every place is the user's.
    pub(super) fn is_full(&self) -> bool {
        self.is_full
    }

    /// Returns true if a directory is known here.
    pub(super) fn knows(&self, directory: &Identity) -> bool {
        self.directories.contains(directory) || self.names.contains_key(directory)
    }

    /// Returns whether a place is the user's, if the names of its path alone decide that.
    pub(super) fn known_by_name(&self, place: &Place) -> Option<bool> {
        if self.is_full {
            return Some(true);
        }
        let is_name = |name: &OsStr| self.spellings.contains_key(&key(name.as_bytes()));
        let is_elsewhere = self.directories.is_empty() && !place.path.iter().any(is_name);
        is_elsewhere.then_some(false)
    }

    /// Returns true if a name in `directory`, or everything in it, is a user's place.
    pub(super) fn holds(&self, directory: &Identity, name: &[u8]) -> bool {
        self.directories.contains(directory) || self.holds_name(directory, name)
    }

    /// Returns true if exactly this name is one.
    pub(super) fn holds_name(&self, directory: &Identity, name: &[u8]) -> bool {
        self.names.get(directory).is_some_and(|names| names.contains(&key(name)))
    }

    fn count_down(&mut self, name: &[u8]) {
        self.count -= 1;
        let Some(count) = self.spellings.get_mut(name) else { return };
        *count -= 1;
        if *count == 0 {
            self.spellings.remove(name);
        }
    }
}

/// The file at a place before a command takes it away.
pub(super) struct Taken {
    /// Its identity, and that of its directory; `None` if it is neither a directory nor a link.
    found: Option<(Identity, Identity)>,
    name: Vec<u8>,
    /// Whether its name has become a user's place by this.
    is_noted: bool,
}

/// The way in which a file leaves its place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Gone {
    /// It no longer exists.
    Removed,
    /// It was renamed.
    Moved,
}

impl Taken {
    /// Examines the file at `place`. If it is a directory or link of the user's, its name becomes a user's place; the
    /// caller must then hold the name order exclusively.
    pub(super) fn from(worker: &Worker, place: &Place) -> Result<Self, Stop> {
        let name = place.name.to_bytes().to_vec();
        let found = match look(&place.directory, &place.name) {
            Ok((found, FileType::Directory | FileType::Symlink)) => {
                identify(&place.directory, c"").map(|holder| (found, holder)).ok()
            }
            Ok(_) | Err(_) => None,
        };
        let known = &worker.broker.known;
        let is_noted = match &found {
            Some((found, holder)) if !known.is_ours(found) => {
                // If two calls take it away at once, one of them fails and takes its note back.
                worker.must_be_alone()?;
                known.add_name(holder.clone(), &name)?
            }
            Some(_) | None => false,
        };
        Ok(Self { found, name, is_noted })
    }

    /// The file has left its place.
    pub(super) fn settle(self, broker: &Broker, how: Gone) {
        if let (Gone::Removed, Some((found, _))) = (how, self.found) {
            broker.known.forget(&found);
        }
    }

    /// The file has not left its place.
    pub(super) fn undo(self, broker: &Broker) {
        if let (true, Some((_, holder))) = (self.is_noted, self.found) {
            broker.known.remove_name(&holder, &self.name);
        }
    }
}

impl Broker {
    /// Makes user's places of the targets of the user's dangling links: of the first missing name on the way.
    pub(super) fn note_leading_nowhere(&self, ends: &[PathBuf]) -> io::Result<()> {
        if ends.is_empty() {
            return Ok(());
        }
        let _nobody_else = self.order.alone()?;
        for end in ends {
            let mut way = end.ancestors().zip(end.ancestors().skip(1));
            let found = way.find_map(|(below, holder)| {
                let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
                let holder = openat(CWD, holder, flags, Mode::empty()).ok()?;
                Some((identify(holder, c"").ok()?, below.file_name()?.as_bytes().to_vec()))
            });
            // A target elsewhere is out of reach for commands as well.
            if let Some((holder, name)) = found {
                self.known.add_name(holder, &name)?;
            }
        }
        Ok(())
    }
}

/// Returns the key of a name: on some file systems names that differ in case are the same file.
fn key(name: &[u8]) -> Vec<u8> {
    name.to_ascii_lowercase()
}

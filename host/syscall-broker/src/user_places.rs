//! User's places: names that the user may follow although a command has put a file there.
//!
//! A name becomes one when a command removes a directory or link that was not created in this session, and so does
//! every name that is reachable from there through links. Names are remembered by the identity of the directory that
//! holds them, directories by their own. In a user's place no directory counts as a command's own, even if a command
//! made it.

use std::collections::{HashMap, HashSet};
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;

use crate::identity::Identity;
use crate::made_files::REMEMBERED;
use crate::resolved_name::ResolvedName;

/// The user's places.
#[derive(Default)]
pub(crate) struct UserPlaces {
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
pub(crate) struct Reached {
    /// Names on the way through links.
    pub(crate) names: Vec<(Identity, Vec<u8>)>,
    /// Directories; everything in them is in a user's place, wherever they are moved.
    pub(crate) directories: Vec<Identity>,
}

impl UserPlaces {
    /// Adds a name in `holder`.
    pub(crate) fn add_name(&mut self, holder: Identity, name: &[u8]) {
        self.is_full |= self.count >= REMEMBERED;
        if self.is_full || !self.names.entry(holder).or_default().insert(key(name)) {
            return;
        }
        self.count += 1;
        *self.spellings.entry(key(name)).or_default() += 1;
    }

    /// Takes back a name of [`Self::add_name`].
    pub(crate) fn remove_name(&mut self, holder: &Identity, name: &[u8]) {
        let Some(names) = self.names.get_mut(holder) else { return };
        if names.remove(&key(name)) {
            self.count_down(&key(name));
        }
    }

    /// Adds a directory; everything in it is in a user's place, wherever it is moved.
    pub(crate) fn add_directory(&mut self, directory: Identity) {
        self.is_full |= self.directories.len() >= REMEMBERED;
        if !self.is_full {
            self.directories.insert(directory);
        }
    }

    /// Forgets a directory that no longer exists, with the names in it.
    pub(crate) fn forget(&mut self, gone: &Identity) {
        self.directories.remove(gone);
        for name in self.names.remove(gone).unwrap_or_default() {
            self.count_down(&name);
        }
    }

    /// Makes every place the user's.
    pub(crate) fn fill(&mut self) {
        self.is_full = true;
    }

    /// Returns true if every place is the user's.
    pub(crate) fn is_full(&self) -> bool {
        self.is_full
    }

    /// Returns true if a directory is known here.
    pub(crate) fn knows(&self, directory: &Identity) -> bool {
        self.directories.contains(directory) || self.names.contains_key(directory)
    }

    /// Returns whether a place is the user's, if the names of its path alone decide that.
    pub(crate) fn known_by_name(&self, place: &ResolvedName) -> Option<bool> {
        if self.is_full {
            return Some(true);
        }
        let is_name = |name: &OsStr| self.spellings.contains_key(&key(name.as_bytes()));
        let is_elsewhere = self.directories.is_empty() && !place.path.iter().any(is_name);
        is_elsewhere.then_some(false)
    }

    /// Returns true if a name in `directory`, or everything in it, is a user's place.
    pub(crate) fn holds(&self, directory: &Identity, name: &[u8]) -> bool {
        self.directories.contains(directory) || self.holds_name(directory, name)
    }

    /// Returns true if exactly this name is one.
    pub(crate) fn holds_name(&self, directory: &Identity, name: &[u8]) -> bool {
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

/// Returns the key of a name: on some file systems names that differ in case are the same file.
fn key(name: &[u8]) -> Vec<u8> {
    name.to_ascii_lowercase()
}

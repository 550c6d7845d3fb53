//! The user's places: where the user may go, although what stands there now was put there by a command.
//!
//! A name is one when a command has taken away a directory or a link that was not made in this session, and so is every
//! name that leads on from there through links. Names are remembered by the identity of the directory that holds them,
//! directories by their own. In a user's place no directory counts as a command's own, whoever has made it.

use std::collections::{HashMap, HashSet};
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::sync::{Mutex, MutexGuard, PoisonError};

use rustix::fs::FileType;

use super::Broker;
use super::directories::REMEMBERED;
use super::identity::{Identity, Moving, Upwards, identify, look};
use super::resolve::Place;

/// The user's places of a session.
#[derive(Default)]
pub(super) struct UserPlaces(Mutex<State>);

#[derive(Default)]
struct State {
    /// Names in lower case, by the directory that holds them.
    names: HashMap<Identity, HashSet<Vec<u8>>>,
    /// How often each name is in `names`.
    spellings: HashMap<Vec<u8>, usize>,
    directories: HashSet<Identity>,
    /// How many names there are.
    count: usize,
    /// There were more than are remembered.
    is_full: bool,
}

/// What becomes a user's place by one change.
#[derive(Debug, Default)]
pub(super) struct Reached {
    /// Names on the way through links.
    pub(super) names: Vec<(Identity, Vec<u8>)>,
    /// Directories; whatever they hold is in a user's place, wherever they are moved.
    pub(super) directories: Vec<Identity>,
}

impl UserPlaces {
    /// Adds a name in `holder`, and says whether it was none before.
    pub(super) fn add_name(&self, holder: Identity, name: &[u8]) -> bool {
        self.lock().add_name(holder, name)
    }

    /// Takes back what [`Self::add_name`] has added.
    pub(super) fn remove_name(&self, holder: &Identity, name: &[u8]) {
        self.lock().remove_name(holder, name);
    }

    /// Adds what a change has made reachable.
    pub(super) fn add(&self, reached: &Reached) {
        let mut state = self.lock();
        for (holder, name) in &reached.names {
            state.add_name(holder.clone(), name);
        }
        state.is_full |= state.directories.len() + reached.directories.len() > REMEMBERED;
        if !state.is_full {
            state.directories.extend(reached.directories.iter().cloned());
        }
    }

    /// Forgets a directory that is no more, with the names in it.
    pub(super) fn forget(&self, gone: &Identity) {
        let mut state = self.lock();
        state.directories.remove(gone);
        for name in state.names.remove(gone).unwrap_or_default() {
            state.count_down(&name);
        }
    }

    /// Whether `place` is a user's place or lies in one, as if what is `moving` lay where it goes to.
    pub(super) fn cover(&self, place: &Place, moving: Option<&Moving<'_>>) -> bool {
        if let Some(known) = self.known_by_name(place) {
            return known;
        }
        let mut names = place.path.iter().rev();
        Upwards::from(&place.directory, moving).any(|found| {
            // What cannot be looked at may be one.
            let Ok((_, identity)) = found else { return true };
            let name = names.next().unwrap_or_default();
            self.lock().holds(&identity, name.as_bytes())
        })
    }

    /// The answer, where the names of the path are enough for it.
    fn known_by_name(&self, place: &Place) -> Option<bool> {
        let state = self.lock();
        if state.is_full {
            return Some(true);
        }
        let is_name = |name: &OsStr| state.spellings.contains_key(&key(name.as_bytes()));
        let is_elsewhere = state.directories.is_empty() && !place.path.iter().any(is_name);
        is_elsewhere.then_some(false)
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What stands at a place before a command takes it away.
pub(super) struct Taken {
    /// Its identity, and that of the directory that holds it; none where it is no directory and no link.
    found: Option<(Identity, Identity)>,
    name: Vec<u8>,
    /// Whether its name has become a user's place by this.
    is_noted: bool,
}

/// How something leaves its place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Gone {
    /// It is no more.
    Removed,
    /// It has another name now.
    Moved,
}

impl Taken {
    /// Looks at what stands at `place`. If it is a directory or a link of the user's, its name is a user's place from
    /// now on.
    pub(super) fn from(broker: &Broker, place: &Place) -> Self {
        let name = place.name.to_bytes().to_vec();
        let found = match look(&place.directory, &place.name) {
            Ok((found, FileType::Directory | FileType::Symlink)) => {
                identify(&place.directory, c"").map(|holder| (found, holder)).ok()
            }
            Ok(_) | Err(_) => None,
        };
        let is_noted = found.as_ref().is_some_and(|(found, holder)| {
            !broker.made.is_one(found) && broker.user_places.add_name(holder.clone(), &name)
        });
        Self { found, name, is_noted }
    }

    /// It has left its place.
    pub(super) fn settle(self, broker: &Broker, how: Gone) {
        if let (Gone::Removed, Some((found, _))) = (how, self.found) {
            broker.made.forget(&found);
            broker.user_places.forget(&found);
        }
    }

    /// It has not.
    pub(super) fn undo(self, broker: &Broker) {
        if let (true, Some((_, holder))) = (self.is_noted, self.found) {
            broker.user_places.remove_name(&holder, &self.name);
        }
    }
}

impl Broker {
    /// Makes user's places of what a change has made reachable.
    pub(super) fn note_reached(&self, reached: &Reached) {
        self.user_places.add(reached);
        reached.directories.iter().for_each(|directory| self.made.forget(directory));
    }
}

impl State {
    fn add_name(&mut self, holder: Identity, name: &[u8]) -> bool {
        self.is_full |= self.count >= REMEMBERED;
        if self.is_full || !self.names.entry(holder).or_default().insert(key(name)) {
            return false;
        }
        self.count += 1;
        *self.spellings.entry(key(name)).or_default() += 1;
        true
    }

    fn remove_name(&mut self, holder: &Identity, name: &[u8]) {
        let Some(names) = self.names.get_mut(holder) else { return };
        if names.remove(&key(name)) {
            self.count_down(&key(name));
        }
    }

    fn count_down(&mut self, name: &[u8]) {
        self.count -= 1;
        let Some(count) = self.spellings.get_mut(name) else { return };
        *count -= 1;
        if *count == 0 {
            self.spellings.remove(name);
        }
    }

    fn holds(&self, directory: &Identity, name: &[u8]) -> bool {
        self.directories.contains(directory)
            || self.names.get(directory).is_some_and(|names| names.contains(&key(name)))
    }
}

/// A name that may differ in case stands for the same file on some file systems.
fn key(name: &[u8]) -> Vec<u8> {
    name.to_ascii_lowercase()
}

#[cfg(test)]
mod tests {
    use std::fs::{self, File};
    use std::os::fd::OwnedFd;
    use std::path::Path;

    use super::super::identity::identify;
    use super::*;

    fn place(top: &Path, path: &str) -> Place {
        let path = top.join(path);
        let directory: OwnedFd = File::open(path.parent().expect("a parent")).expect("open").into();
        let name = std::ffi::CString::new(path.file_name().expect("a name").as_bytes()).expect("no NUL");
        Place { directory, name, path, as_directory: false }
    }

    #[test]
    fn a_name_covers_what_lies_below_it_and_moves_with_its_directory() {
        let top = tempfile::tempdir().expect("a directory");
        let top = top.path().canonicalize().expect("there");
        fs::create_dir_all(top.join("u/s1/deep")).expect("made");
        let covers = |places: &UserPlaces, path: &str| places.cover(&place(&top, path), None);
        let places = UserPlaces::default();
        assert!(!covers(&places, "u/s1"));
        let holder = identify(File::open(top.join("u")).expect("open"), c"").expect("there");
        assert!(places.add_name(holder.clone(), b"s1") && !places.add_name(holder.clone(), b"S1"));
        assert!(covers(&places, "u/s1") && covers(&places, "u/s1/deep/x") && covers(&places, "u/S1"));
        assert!(!covers(&places, "u/other") && !covers(&places, "s1"));
        fs::rename(top.join("u"), top.join("v")).expect("moved");
        assert!(covers(&places, "v/s1/deep"));
        places.remove_name(&holder, b"s1");
        assert!(!covers(&places, "v/s1/deep"));
        places.add_name(holder.clone(), b"s1");
        places.forget(&holder);
        assert!(!covers(&places, "v/s1/deep") && places.lock().spellings.is_empty());
    }

    #[test]
    fn a_directory_covers_what_it_holds_wherever_it_is_moved() {
        let top = tempfile::tempdir().expect("a directory");
        let top = top.path().canonicalize().expect("there");
        fs::create_dir_all(top.join("n/deep")).expect("made");
        let places = UserPlaces::default();
        let n = identify(File::open(top.join("n")).expect("open"), c"").expect("there");
        places.add(&Reached { directories: vec![n.clone()], ..Reached::default() });
        let covers = |path: &str| places.cover(&place(&top, path), None);
        assert!(covers("n/x") && covers("n/deep/x") && !covers("n"));
        fs::rename(top.join("n"), top.join("m")).expect("moved");
        assert!(covers("m/deep/x"));
        places.forget(&n);
        assert!(!covers("m/deep/x"));
    }
}

//! What commands have made themselves: directories, symbolic links, and further names of files.
//!
//! Some names are free in what a command unpacks or clones and are asked for elsewhere, and all names of a file are
//! known where it got them here. Both are known by the file's identity, so they stay known wherever they are moved to.

use std::collections::{HashMap, HashSet};
use std::ffi::CStr;
use std::os::fd::AsFd;
use std::sync::{Mutex, MutexGuard, PoisonError};

use super::identity::{Identity, Moving, Upwards, identify};

/// How many are remembered of one command, and of a session; in those beyond it is asked.
pub(super) const REMEMBERED: usize = 100_000;

/// Directories and symbolic links that commands have made.
#[derive(Default)]
pub(super) struct Made(Mutex<Makers>);

#[derive(Default)]
struct Makers {
    /// Directories in which some names are free, by the running command that has made them.
    own: HashMap<u64, HashSet<Identity>>,
    /// Directories and links that any command of this session has made.
    all: HashSet<Identity>,
}

impl Made {
    /// Notes a directory or link that a command has made.
    pub(super) fn note(&self, made: Identity) {
        let mut makers = self.lock();
        if made.is_unique() && makers.all.len() < REMEMBERED {
            makers.all.insert(made);
        }
    }

    /// Notes a directory in which names are free to `command`; those of commands that no longer run are forgotten.
    pub(super) fn note_own(&self, command: u64, made: Identity, runs: impl Fn(u64) -> bool) {
        let mut makers = self.lock();
        if !makers.own.contains_key(&command) {
            makers.own.retain(|command, _| runs(*command));
        }
        let own = makers.own.entry(command).or_default();
        if made.is_unique() && own.len() < REMEMBERED {
            own.insert(made);
        }
    }

    /// Forgets a directory or link: it has gone, or counts as the user's from now on.
    pub(super) fn forget(&self, gone: &Identity) {
        let mut makers = self.lock();
        makers.all.remove(gone);
        makers.own.values_mut().for_each(|own| {
            own.remove(gone);
        });
    }

    /// Whether a command of this session has made it, and it does not count as the user's.
    pub(super) fn is_one(&self, found: &Identity) -> bool {
        self.lock().all.contains(found)
    }

    /// Whether names in it are free to `command`.
    pub(super) fn is_own(&self, command: u64, found: &Identity) -> bool {
        self.lock().own.get(&command).is_some_and(|own| own.contains(found))
    }

    /// Whether the directory so many levels above `directory`, or one that it lies in, was made by `command`. What is
    /// `moving` is looked at as if it lay where it goes to.
    pub(super) fn holds(
        &self,
        command: u64,
        directory: impl AsFd,
        levels: usize,
        moving: Option<&Moving<'_>>,
    ) -> bool {
        if !self.lock().own.contains_key(&command) {
            return false;
        }
        let is_own = |identity: &Identity| self.is_own(command, identity);
        let known = Upwards::from(directory, moving).map_while(Result::ok);
        known.skip(levels).any(|(_, identity)| is_own(&identity))
    }

    fn lock(&self) -> MutexGuard<'_, Makers> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Files of which every name was given to them in this session.
#[derive(Default)]
pub(super) struct Linked(Mutex<HashSet<Identity>>);

impl Linked {
    /// Notes that a file gets a further name; `names` is how many it had before.
    pub(super) fn note(&self, holder: impl AsFd, name: &CStr, names: u64) {
        let Ok(identity) = identify(holder, name) else { return };
        let mut known = self.lock();
        // One that had further names before has names that nobody here knows.
        if names <= 1 && identity.is_unique() && known.len() < REMEMBERED {
            known.insert(identity);
        }
    }

    /// Whether all names of a file are known to lie where commands made them.
    pub(super) fn holds(&self, holder: impl AsFd, name: &CStr) -> bool {
        identify(holder, name).is_ok_and(|identity| self.lock().contains(&identity))
    }

    fn lock(&self) -> MutexGuard<'_, HashSet<Identity>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use std::fs::File;

    use super::*;

    #[test]
    fn a_file_is_known_by_all_its_names_or_not_at_all() {
        let place = tempfile::tempdir().expect("a directory");
        let top = File::open(place.path()).expect("open");
        let linked = Linked::default();
        for (name, names) in [(c"one", 1), (c"shared", 2)] {
            std::fs::write(place.path().join(name.to_str().expect("text")), "").expect("a file");
            linked.note(&top, name, names);
        }
        std::fs::rename(place.path().join("one"), place.path().join("other")).expect("moved");
        assert!(
            linked.holds(&top, c"other") && !linked.holds(&top, c"shared") && !linked.holds(&top, c"none")
        );
    }

    #[test]
    fn what_lies_in_an_own_directory_is_own_wherever_it_goes() {
        let place = tempfile::tempdir().expect("a directory");
        let top = File::open(place.path()).expect("open");
        std::fs::create_dir_all(place.path().join("own/deep")).expect("made");
        let made = Made::default();
        let own = identify(&top, c"own").expect("there");
        made.note_own(1, own.clone(), |_| true);
        std::fs::rename(place.path().join("own"), place.path().join("moved")).expect("moved");
        let deep = File::open(place.path().join("moved/deep")).expect("open");
        let holds = |command, directory: &File, levels| made.holds(command, directory, levels, None);
        assert!(holds(1, &deep, 0) && holds(1, &deep, 1) && !holds(1, &deep, 2));
        assert!(!holds(2, &deep, 0) && !holds(1, &top, 0));
        made.note_own(2, own.clone(), |command| command == 2);
        assert!(!made.holds(1, &deep, 0, None), "forgotten with its command");
        made.forget(&own);
        assert!(!made.holds(2, &deep, 0, None), "forgotten by itself");
    }

    #[test]
    fn what_moves_is_own_by_where_it_goes() {
        let place = tempfile::tempdir().expect("a directory");
        let top = File::open(place.path()).expect("open");
        std::fs::create_dir_all(place.path().join("own/users/deep")).expect("made");
        let made = Made::default();
        made.note_own(1, identify(&top, c"own").expect("there"), |_| true);
        let own = File::open(place.path().join("own")).expect("open");
        let deep = File::open(place.path().join("own/users/deep")).expect("open");
        let out = Moving::new(&own, c"users", top.as_fd()).expect("there");
        assert!(made.holds(1, &deep, 0, None) && !made.holds(1, &deep, 0, Some(&out)));
        let within = Moving::new(&own, c"users", own.as_fd()).expect("there");
        assert!(made.holds(1, &deep, 0, Some(&within)));
        let itself = Moving::new(&top, c"own", top.as_fd()).expect("there");
        assert!(made.holds(1, &deep, 2, Some(&itself)) && !made.holds(1, &deep, 3, Some(&itself)));
    }
}

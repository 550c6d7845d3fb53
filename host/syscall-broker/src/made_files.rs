//! Directories, symbolic links and hard links that commands have made themselves.
//!
//! Some names are free in a directory that a command unpacks or clones and are asked about elsewhere, and a file whose
//! names were all given here is known not to be shared with the user. Both are tracked by file identity, which survives
//! renames.

use std::collections::{HashMap, HashSet};
use std::ffi::CStr;
use std::os::fd::AsFd;
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::identity::{Identity, identify};

/// The number of directories and links to remember for one command, and for a session; further ones lead to questions.
pub(crate) const REMEMBERED: usize = 100_000;

/// The number to remember for all other sessions together.
const OF_OTHERS: usize = 4 * REMEMBERED;

/// Directories and symbolic links that commands have made.
#[derive(Default)]
pub(crate) struct MadeFiles {
    /// Directories in which some names are free, by the running command of this sandbox that has made them.
    own: HashMap<u64, HashSet<Identity>>,
    /// Directories and links that any command of this session has made.
    ours: HashSet<Identity>,
    /// Directories and links that commands of other sessions have made.
    others: HashSet<Identity>,
}

impl MadeFiles {
    /// Notes a directory or link that a command of this session or another has made. Returns whether it is remembered.
    pub(crate) fn note(&mut self, made: Identity, is_ours: bool) -> bool {
        let (known, most) =
            if is_ours { (&mut self.ours, REMEMBERED) } else { (&mut self.others, OF_OTHERS) };
        let is_room = known.len() < most && made.is_unique();
        if is_room {
            known.insert(made);
        }
        is_room
    }

    /// Notes a directory in which names are free to `command`, and forgets those of commands that no longer run.
    pub(crate) fn note_own(&mut self, command: u64, made: Identity, runs: impl Fn(u64) -> bool) {
        if !self.own.contains_key(&command) {
            self.own.retain(|command, _| runs(*command));
        }
        let own = self.own.entry(command).or_default();
        if made.is_unique() && own.len() < REMEMBERED {
            own.insert(made);
        }
    }

    /// Forgets a directory or link that was removed, or that counts as the user's from now on.
    pub(crate) fn forget(&mut self, gone: &Identity) {
        self.ours.remove(gone);
        self.others.remove(gone);
        self.own.values_mut().for_each(|own| {
            own.remove(gone);
        });
    }

    /// Returns true if a command of this session has made it, and it does not count as the user's.
    pub(crate) fn is_ours(&self, found: &Identity) -> bool {
        self.ours.contains(found)
    }

    /// Returns true if a command of any session has made it, and it does not count as the user's.
    pub(crate) fn is_one(&self, found: &Identity) -> bool {
        self.ours.contains(found) || self.others.contains(found)
    }

    /// Returns true if names in it are free to `command`.
    pub(crate) fn is_own(&self, command: u64, found: &Identity) -> bool {
        self.own.get(&command).is_some_and(|own| own.contains(found))
    }

    /// Returns true if `command` has made any directory.
    pub(crate) fn has_own(&self, command: u64) -> bool {
        self.own.contains_key(&command)
    }
}

/// Files whose hard links were all made in this session.
#[derive(Default)]
pub(crate) struct LinkedFiles(Mutex<HashSet<Identity>>);

impl LinkedFiles {
    /// Notes that a file gets another hard link; `names` is how many it had before.
    pub(crate) fn note(&self, holder: impl AsFd, name: &CStr, names: impl Into<u64>) {
        let names = names.into();
        let Ok(identity) = identify(holder, name) else { return };
        let mut known = self.lock();
        // A file that already had several names may have some that are not known here.
        if names <= 1 && identity.is_unique() && known.len() < REMEMBERED {
            known.insert(identity);
        }
    }

    /// Returns true if all names of a file are known to be where commands made them.
    pub(crate) fn holds(&self, holder: impl AsFd, name: &CStr) -> bool {
        identify(holder, name).is_ok_and(|identity| self.lock().contains(&identity))
    }

    fn lock(&self) -> MutexGuard<'_, HashSet<Identity>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Sockets that commands of this sandbox have bound.
#[derive(Default)]
pub(crate) struct OwnSockets(Mutex<HashSet<Identity>>);

impl OwnSockets {
    /// Notes a socket that was just bound.
    pub(crate) fn note(&self, holder: impl AsFd, name: &CStr) {
        let Ok(identity) = identify(holder, name) else { return };
        let mut known = self.lock();
        if known.len() < REMEMBERED {
            known.insert(identity);
        }
    }

    /// Returns true if a socket is one of them. Another one may be that of a program of the host, which only its name
    /// keeps apart.
    pub(crate) fn holds(&self, holder: impl AsFd, name: &CStr) -> bool {
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
        let linked = LinkedFiles::default();
        for (name, names) in [(c"one", 1_u64), (c"shared", 2)] {
            std::fs::write(place.path().join(name.to_str().expect("text")), "").expect("a file");
            linked.note(&top, name, names);
        }
        std::fs::rename(place.path().join("one"), place.path().join("other")).expect("moved");
        assert!(
            linked.holds(&top, c"other") && !linked.holds(&top, c"shared") && !linked.holds(&top, c"none")
        );
    }
}

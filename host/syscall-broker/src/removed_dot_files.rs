//! Dot files that commands have removed.
//!
//! A new dot file at the root of a project is asked about. Git and editors replace files by removing them first, so a
//! file that existed before may come back without a question.

use std::collections::HashSet;
use std::ffi::{CStr, CString};
use std::os::fd::AsFd;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::sync::{Mutex, MutexGuard, PoisonError};

use rustix::fs::{CWD, Mode, OFlags, openat};

use crate::identity::{Identity, identify};

/// The number of files that are remembered; further ones lead to a question when they come back.
const REMEMBERED: usize = 100_000;

/// The removed files, by the identity of their directory: a path can later lead to another directory.
#[derive(Default)]
pub(crate) struct RemovedDotFiles(Mutex<HashSet<(Identity, CString)>>);

impl RemovedDotFiles {
    /// Notes that the file `name` was removed from `holder`.
    pub(crate) fn note(&self, holder: impl AsFd, name: &CStr) {
        let Ok(identity) = identify(holder, c"") else { return };
        let mut known = self.lock();
        if known.len() < REMEMBERED {
            known.insert((identity, name.to_owned()));
        }
    }

    /// Returns true if a file with this name was removed from the directory that is at this path.
    pub(crate) fn holds(&self, path: &Path) -> bool {
        if self.lock().is_empty() {
            return false;
        }
        let (Some(holder), Some(name)) = (path.parent(), path.file_name()) else { return false };
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let identity = openat(CWD, holder, flags, Mode::empty()).and_then(|holder| identify(holder, c""));
        let name = CString::new(name.as_bytes());
        identity.is_ok_and(|identity| name.is_ok_and(|name| self.lock().contains(&(identity, name))))
    }

    fn lock(&self) -> MutexGuard<'_, HashSet<(Identity, CString)>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_removed_file_is_known_in_its_own_directory_only() {
        let place = tempfile::tempdir().expect("a directory");
        let at = |name: &str| place.path().join(name);
        for name in ["one", "other"] {
            std::fs::create_dir(at(name)).expect("made");
        }
        let removed = RemovedDotFiles::default();
        removed.note(std::fs::File::open(at("one")).expect("open"), c".foorc");
        assert!(removed.holds(&at("one/.foorc")));
        assert!(!removed.holds(&at("one/.barrc")) && !removed.holds(&at("other/.foorc")));
        // Another directory gets this name.
        std::fs::rename(at("one"), at("away")).expect("moved");
        std::fs::rename(at("other"), at("one")).expect("moved");
        assert!(!removed.holds(&at("one/.foorc")) && removed.holds(&at("away/.foorc")));
    }
}

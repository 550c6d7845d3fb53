//! What commands have made themselves: directories of the one that runs, and further names of files.
//!
//! Some names are free in what a command unpacks or clones and are asked for elsewhere, and all names of a file are
//! known where it got them here. Both are known by what the kernel knows them by, so it stays so wherever they are
//! moved to.

use std::collections::{HashMap, HashSet};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

use rustix::fs::{AtFlags, Mode, OFlags, StatxFlags, openat, statx};
use rustix::io::{self, dup};

/// How many are remembered of one command; in those beyond it is asked.
const REMEMBERED: usize = 100_000;
/// How far up is looked; deeper than any path.
const LEVELS: usize = 4096;

/// What tells a directory from all others, also from one that gets its number later.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
struct Identity {
    device: (u32, u32),
    inode: u64,
    born: (i64, u32),
}

/// The directories of all running commands.
#[derive(Default)]
pub(super) struct Made(Mutex<HashMap<u64, HashSet<Identity>>>);

/// Paths at which somebody else's directories were before commands took them away: what comes there instead is taken
/// for them.
#[derive(Default)]
pub(super) struct Gone(Mutex<Taken>);

#[derive(Default)]
struct Taken {
    /// Every directory that a command of this session has made.
    made: HashSet<Identity>,
    paths: HashSet<PathBuf>,
    /// There were more than are remembered.
    is_full: bool,
}

impl Gone {
    /// Notes a directory that a command has made.
    pub(super) fn note_made(&self, holder: impl AsFd, name: &std::ffi::CStr) {
        let Ok(identity) = identify(holder, name) else { return };
        let mut taken = self.lock();
        if taken.made.len() < REMEMBERED {
            taken.made.insert(identity);
        }
    }

    /// Notes that somebody else's directory is about to go from `path`; says whether that was not known.
    pub(super) fn note(&self, path: &Path) -> bool {
        let mut taken = self.lock();
        taken.is_full |= taken.paths.len() >= REMEMBERED;
        !taken.is_full && taken.paths.insert(path.to_owned())
    }

    /// Takes back what was noted: the directory has not gone.
    pub(super) fn forget(&self, path: &Path) {
        self.lock().paths.remove(path);
    }

    /// Whether what is called `name` in `holder` is there and no command has made it, as a directory.
    pub(super) fn is_others(&self, holder: impl AsFd, name: &std::ffi::CStr) -> bool {
        identify(holder, name).is_ok_and(|found| !self.lock().made.contains(&found))
    }

    /// Whether `path` was somebody else's, or lay in what was.
    pub(super) fn holds(&self, path: &Path) -> bool {
        let taken = self.lock();
        taken.is_full || !taken.paths.is_empty() && path.ancestors().any(|above| taken.paths.contains(above))
    }

    fn lock(&self) -> MutexGuard<'_, Taken> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Files of which every name was given to them in this session.
#[derive(Default)]
pub(super) struct Linked(Mutex<HashSet<Identity>>);

impl Linked {
    /// Notes that a file gets a further name; `names` is how many it had before.
    pub(super) fn note(&self, holder: impl AsFd, name: &std::ffi::CStr, names: u64) {
        let Ok(identity) = identify(holder, name) else { return };
        let mut known = self.lock();
        // One that had further names before has names that nobody here knows.
        if names <= 1 && known.len() < REMEMBERED {
            known.insert(identity);
        }
    }

    /// Whether all names of a file are known to lie where commands made them.
    pub(super) fn holds(&self, holder: impl AsFd, name: &std::ffi::CStr) -> bool {
        identify(holder, name).is_ok_and(|identity| self.lock().contains(&identity))
    }

    fn lock(&self) -> MutexGuard<'_, HashSet<Identity>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Made {
    /// Notes that `command` has made the directory; those of commands that no longer run are forgotten.
    pub(super) fn note(
        &self,
        command: u64,
        holder: impl AsFd,
        name: &std::ffi::CStr,
        runs: impl Fn(u64) -> bool,
    ) {
        let Ok(identity) = identify(holder, name) else { return };
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if !all.contains_key(&command) {
            all.retain(|command, _| runs(*command));
        }
        let own = all.entry(command).or_default();
        if own.len() < REMEMBERED {
            own.insert(identity);
        }
    }

    /// Whether `command` has made the very directory `name` in `holder`.
    pub(super) fn is_one(&self, command: u64, holder: impl AsFd, name: &std::ffi::CStr) -> bool {
        let all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let Ok(identity) = identify(holder, name) else { return false };
        all.get(&command).is_some_and(|own| own.contains(&identity))
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
        let all = || self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if !all().contains_key(&command) {
            return false;
        }
        let is_own = |identity: &Identity| all().get(&command).is_some_and(|own| own.contains(identity));
        let mut above: Option<OwnedFd> = None;
        let mut below: Option<Identity> = None;
        for level in 0..LEVELS {
            let here = match &above {
                Some(above) => above.as_fd(),
                None => directory.as_fd(),
            };
            let Ok(identity) = identify(here, c"") else { return false };
            if level >= levels && is_own(&identity) {
                return true;
            }
            // The root is above itself.
            if below.replace(identity) == Some(identity) {
                return false;
            }
            let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
            let next = match moving.filter(|moving| moving.identity == identity) {
                Some(moving) => dup(moving.to),
                None => openat(here, "..", flags, Mode::empty()),
            };
            let Ok(next) = next else { return false };
            above = Some(next);
        }
        false
    }
}

/// A directory that is about to move.
pub(super) struct Moving<'a> {
    identity: Identity,
    to: BorrowedFd<'a>,
    /// It takes the place of somebody else's.
    pub(super) replaces: bool,
}

impl<'a> Moving<'a> {
    /// The directory `name` in `holder`, which is to lie in `to`.
    pub(super) fn new(holder: impl AsFd, name: &std::ffi::CStr, to: BorrowedFd<'a>) -> io::Result<Self> {
        Ok(Self { identity: identify(holder, name)?, to, replaces: false })
    }
}

fn identify(holder: impl AsFd, name: &std::ffi::CStr) -> io::Result<Identity> {
    let flags = AtFlags::EMPTY_PATH | AtFlags::SYMLINK_NOFOLLOW;
    let status = statx(holder, name, flags, StatxFlags::INO | StatxFlags::BTIME)?;
    Ok(Identity {
        device: (status.stx_dev_major, status.stx_dev_minor),
        inode: status.stx_ino,
        born: (status.stx_btime.tv_sec, status.stx_btime.tv_nsec),
    })
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
    fn where_somebody_elses_directory_was_is_known() {
        let place = tempfile::tempdir().expect("a directory");
        let top = File::open(place.path()).expect("open");
        for name in ["theirs", "ours"] {
            std::fs::create_dir(place.path().join(name)).expect("made");
        }
        let gone = Gone::default();
        gone.note_made(&top, c"ours");
        assert!(gone.is_others(&top, c"theirs") && !gone.is_others(&top, c"ours"));
        assert!(!gone.is_others(&top, c"nobodys"));
        let theirs = Path::new("/p/theirs");
        assert!(gone.note(theirs) && !gone.note(theirs));
        assert!(gone.holds(theirs) && gone.holds(&theirs.join("deep")) && !gone.holds(Path::new("/p")));
        gone.forget(theirs);
        assert!(!gone.holds(theirs));
    }

    #[test]
    fn what_lies_in_an_own_directory_is_own_wherever_it_goes() {
        let place = tempfile::tempdir().expect("a directory");
        let top = File::open(place.path()).expect("open");
        std::fs::create_dir_all(place.path().join("own/deep")).expect("made");
        let made = Made::default();
        made.note(1, &top, c"own", |_| true);
        std::fs::rename(place.path().join("own"), place.path().join("moved")).expect("moved");
        let deep = File::open(place.path().join("moved/deep")).expect("open");
        let holds = |command, directory: &File, levels| made.holds(command, directory, levels, None);
        assert!(holds(1, &deep, 0) && holds(1, &deep, 1) && !holds(1, &deep, 2));
        assert!(!holds(2, &deep, 0) && !holds(1, &top, 0));
        made.note(2, &top, c"moved", |command| command == 2);
        assert!(!made.holds(1, &deep, 0, None), "forgotten with its command");
    }

    #[test]
    fn what_moves_is_own_by_where_it_goes() {
        let place = tempfile::tempdir().expect("a directory");
        let top = File::open(place.path()).expect("open");
        std::fs::create_dir_all(place.path().join("own/users/deep")).expect("made");
        let made = Made::default();
        made.note(1, &top, c"own", |_| true);
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

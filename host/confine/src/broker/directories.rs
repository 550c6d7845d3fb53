//! Directories that a running command has made itself.
//!
//! Some names are free in what a command unpacks or clones and are asked for elsewhere. A directory is known by
//! what the kernel knows it by, so it stays the command's own wherever it is moved to.

use std::collections::{HashMap, HashSet};
use std::os::fd::{AsFd, OwnedFd};
use std::sync::{Mutex, PoisonError};

use rustix::fs::{AtFlags, Mode, OFlags, StatxFlags, openat, statx};
use rustix::io;

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

    /// Whether the directory so many levels above `directory`, or one that it lies in, was made by `command`.
    pub(super) fn holds(&self, command: u64, directory: impl AsFd, levels: usize) -> bool {
        let own = {
            let all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            match all.get(&command) {
                Some(own) => own.clone(),
                None => return false,
            }
        };
        let mut above: Option<OwnedFd> = None;
        let mut below: Option<Identity> = None;
        for level in 0..LEVELS {
            let here = match &above {
                Some(above) => above.as_fd(),
                None => directory.as_fd(),
            };
            let Ok(identity) = identify(here, c"") else { return false };
            if level >= levels && own.contains(&identity) {
                return true;
            }
            // The root is above itself.
            if below.replace(identity) == Some(identity) {
                return false;
            }
            let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
            let Ok(next) = openat(here, "..", flags, Mode::empty()) else { return false };
            above = Some(next);
        }
        false
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
    fn what_lies_in_an_own_directory_is_own_wherever_it_goes() {
        let place = tempfile::tempdir().expect("a directory");
        let top = File::open(place.path()).expect("open");
        std::fs::create_dir_all(place.path().join("own/deep")).expect("made");
        let made = Made::default();
        made.note(1, &top, c"own", |_| true);
        std::fs::rename(place.path().join("own"), place.path().join("moved")).expect("moved");
        let deep = File::open(place.path().join("moved/deep")).expect("open");
        assert!(made.holds(1, &deep, 0) && made.holds(1, &deep, 1) && !made.holds(1, &deep, 2));
        assert!(!made.holds(2, &deep, 0) && !made.holds(1, &top, 0));
        made.note(2, &top, c"moved", |command| command == 2);
        assert!(!made.holds(1, &deep, 0), "forgotten with its command");
    }
}

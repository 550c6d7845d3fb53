//! Making, entering, ending and removing a group.
//!
//! A group is locked (flock(2)) by its host as long as that lives, so nobody takes it for abandoned before its keeper
//! is in it. When a host is killed, the kernel drops the lock and ends what was in the group; who makes the next
//! group in the same place removes it then. Between making and locking it a group looks abandoned, so the place itself
//! is locked as well: by many who make groups, or by one who removes them.

use std::fs::File;
use std::hash::{BuildHasher as _, RandomState};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use rustix::fs::{
    AtFlags, CWD, Dir, FlockOperation, Mode, OFlags, flock, fstat, mkdirat, openat, statat, unlinkat,
};
use rustix::io::Errno;

use super::bounds::{Bounds, put};
use super::place::{self, Place};
use super::{Controller, NoGroup};
use crate::Limits;

/// What the names of groups begin with; sixteen hexadecimal digits follow.
const PREFIX: &str = "portcullis-";
/// Commands that act as somebody else read their bounds in it by their names; who opens it can lock it.
const MODE: Mode = Mode::RWXU.union(Mode::XGRP).union(Mode::XOTH);
/// Names are tried until one is free and nobody has taken its group away.
const TRIES: u32 = 8;
/// Who has been told to end is gone from a group a moment later.
const MOMENTS: u32 = 500;
const MOMENT: Duration = Duration::from_millis(2);

/// A group that this process has made; dropping it ends whoever is in it, and removes it.
#[derive(Debug)]
pub(crate) struct Group {
    place: OwnedFd,
    name: String,
    path: PathBuf,
    /// Locked.
    directory: OwnedFd,
    controllers: Vec<Controller>,
}

impl Group {
    /// Makes one with these limits, in the best place for it.
    pub(crate) fn make(limits: Limits) -> Result<Self, NoGroup> {
        let bounds = Bounds::of(limits).ok_or(NoGroup::NoLimits)?;
        let Place { path, missing, .. } = place::find()?;
        let place = open_directory(CWD, &path).map_err(refused("opening the place of control groups"))?;
        for controller in missing {
            // What this does not give shows below.
            let _refused = put(&place, "cgroup.subtree_control", &format!("+{}", controller.name()));
        }
        sweep(&place);
        let (name, directory) = make_locked(&place).map_err(refused("making a control group"))?;
        let path = path.join(&name);
        let mut group = Self { place, name, path, directory, controllers: Vec::new() };
        group.controllers = controllers_of(&group.directory);
        if group.controllers.is_empty() {
            return Err(NoGroup::NoControllers);
        }
        let put_on = bounds.put_on(group.directory.as_fd(), &group.controllers);
        put_on.map_err(|error| refused("bounding a control group")(error_of(&error)))?;
        Ok(group)
    }

    /// What it bounds.
    pub(crate) fn controllers(&self) -> &[Controller] {
        &self.controllers
    }

    /// Where it is.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Opens it for a process to be started in it; the lock stays here.
    pub(crate) fn entrance(&self) -> rustix::io::Result<OwnedFd> {
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        openat(&self.directory, ".", flags, Mode::empty())
    }

    /// Returns the count of processes that were ended in it for want of memory, where it bounds that.
    pub(crate) fn deaths(&self) -> Option<Deaths> {
        let is_bounded = self.controllers.contains(&Controller::Memory);
        is_bounded.then(|| Deaths::of(self.directory.as_fd())).flatten()
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        end(&self.directory);
        for _ in 0..MOMENTS {
            match unlinkat(&self.place, &self.name, AtFlags::REMOVEDIR) {
                Err(Errno::BUSY) => std::thread::sleep(MOMENT),
                // What cannot be removed is left to the next sweep.
                Ok(()) | Err(_) => return,
            }
        }
    }
}

/// How many processes of a group the kernel has ended because all used more memory than they may.
#[derive(Debug)]
pub(crate) struct Deaths {
    events: File,
    known: Mutex<Events>,
}

/// What the kernel has counted of a group.
#[derive(Debug, Clone, Copy)]
struct Events {
    /// How often there was no more within its bound.
    at_bound: u64,
    /// How many of its processes were ended, also where it was the machine that had no more.
    killed: u64,
}

impl Deaths {
    /// Nothing where the kernel does not count them.
    pub(super) fn of(group: BorrowedFd<'_>) -> Option<Self> {
        let flags = OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NOFOLLOW;
        let events = File::from(openat(group, "memory.events", flags, Mode::empty()).ok()?);
        let known = Mutex::new(Events::read(&events)?);
        Some(Self { events, known })
    }

    /// Whether there were some since it was asked last.
    pub(crate) fn are_new(&self) -> bool {
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        let now = Events::read(&self.events).unwrap_or(*known);
        let before = std::mem::replace(&mut *known, now);
        now.killed > before.killed && now.at_bound > before.at_bound
    }
}

impl Events {
    /// See the kernel's cgroup-v2.rst: lines of a name and a number.
    fn read(events: &File) -> Option<Self> {
        let mut bytes = [0; 512];
        let length = events.read_at(&mut bytes, 0).ok()?;
        let text = std::str::from_utf8(bytes.get(..length)?).ok()?;
        let count = |name: &str| text.lines().find_map(|line| line.strip_prefix(name))?.trim().parse().ok();
        Some(Self { at_bound: count("oom ")?, killed: count("oom_kill ")? })
    }
}

/// Removes the groups that killed hosts have left where this program would make one.
pub fn sweep_groups() {
    if let Ok(place) =
        place::find().map(|found| open_directory(CWD, &found.path)).unwrap_or(Err(Errno::NOENT))
    {
        sweep(&place);
    }
}

/// Removes the groups of hosts that are gone, and ends what is left in them.
fn sweep(place: &OwnedFd) {
    let _alone = hold(place, FlockOperation::NonBlockingLockExclusive);
    let Ok(entries) = Dir::read_from(place) else { return };
    for entry in entries.flatten() {
        let Some(name) = entry.file_name().to_str().ok().filter(|name| is_ours(name)) else { continue };
        let Ok(directory) = open_directory(place, name) else { continue };
        if flock(&directory, FlockOperation::NonBlockingLockExclusive).is_ok() {
            end(&directory);
            // Whoever is still ending leaves it to the next one.
            let _busy = unlinkat(place, name, AtFlags::REMOVEDIR);
        }
    }
}

fn is_ours(name: &str) -> bool {
    let is_hexadecimal =
        |digits: &str| digits.len() == 16 && digits.bytes().all(|byte| byte.is_ascii_hexdigit());
    name.strip_prefix(PREFIX).is_some_and(is_hexadecimal)
}

/// Locks a place as long as what is returned lives. Nobody is waited for long, who may never let it go: what is done
/// under the lock is done without it then, and tried again where it fails.
fn hold(place: &OwnedFd, lock: FlockOperation) -> Option<OwnedFd> {
    // Opened anew, the lock is nobody else's.
    let own = open_directory(place, ".").ok()?;
    for _ in 0..TRIES {
        match flock(&own, lock) {
            Ok(()) => return Some(own),
            Err(Errno::AGAIN) => std::thread::sleep(MOMENT),
            Err(_) => return None,
        }
    }
    None
}

/// Makes a directory and locks it, so that it is still the one that bears its name.
fn make_locked(place: &OwnedFd) -> rustix::io::Result<(String, OwnedFd)> {
    let _nobody_sweeps = hold(place, FlockOperation::NonBlockingLockShared);
    let mut last = Errno::EXIST;
    for _ in 0..TRIES {
        // The keys of these are random.
        let name = format!("{PREFIX}{:016x}", RandomState::new().hash_one(std::process::id()));
        match mkdirat(place, &name, MODE).and_then(|()| lock(place, &name)) {
            Ok(directory) => return Ok((name, directory)),
            // Somebody has the name, or sweeps although the place is held.
            Err(error @ (Errno::EXIST | Errno::NOENT | Errno::AGAIN)) => last = error,
            Err(error) => return Err(error),
        }
    }
    Err(last)
}

fn lock(place: &OwnedFd, name: &str) -> rustix::io::Result<OwnedFd> {
    let directory = open_directory(place, name)?;
    flock(&directory, FlockOperation::NonBlockingLockExclusive)?;
    let (named, locked) = (statat(place, name, AtFlags::SYMLINK_NOFOLLOW)?, fstat(&directory)?);
    let is_the_same = (named.st_dev, named.st_ino) == (locked.st_dev, locked.st_ino);
    if is_the_same { Ok(directory) } else { Err(Errno::NOENT) }
}

/// Kills every process in a group, since Linux 5.14.
fn end(group: &OwnedFd) {
    let _before = put(group, "cgroup.kill", "1");
}

fn controllers_of(group: &OwnedFd) -> Vec<Controller> {
    let flags = OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NOFOLLOW;
    let text = openat(group, "cgroup.controllers", flags, Mode::empty());
    let text = text.and_then(|file| {
        let mut bytes = [0; 512];
        let length = rustix::io::read(file, &mut bytes)?;
        Ok(String::from_utf8_lossy(bytes.get(..length).unwrap_or_default()).into_owned())
    });
    let text = text.unwrap_or_default();
    let is_there = |one: &Controller| text.split_ascii_whitespace().any(|word| word == one.name());
    Controller::ALL.into_iter().filter(is_there).collect()
}

fn open_directory(at: impl AsFd, name: impl rustix::path::Arg) -> rustix::io::Result<OwnedFd> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC | OFlags::NOFOLLOW;
    openat(at, name, flags, Mode::empty())
}

fn refused(doing: &'static str) -> impl Fn(Errno) -> NoGroup {
    move |error| NoGroup::Refused { doing, errno: error.raw_os_error() }
}

fn error_of(error: &std::io::Error) -> Errno {
    Errno::from_io_error(error).unwrap_or(Errno::INVAL)
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    /// Ordinary directories stand in for groups: those can be removed as long as they are empty, and locked, as well.
    fn place() -> (tempfile::TempDir, OwnedFd) {
        let place = tempfile::tempdir().expect("a directory");
        let opened = open_directory(CWD, place.path()).expect("opened");
        (place, opened)
    }

    #[test]
    fn only_groups_of_dead_hosts_are_removed() {
        let (place, opened) = place();
        let (alive, lock) = make_locked(&opened).expect("made");
        let (dead, dropped) = make_locked(&opened).expect("made");
        drop(dropped);
        for other in ["portcullis-0123456789abcde", "portcullis-service-of-user", "0123456789abcdef"] {
            fs::create_dir(place.path().join(other)).expect("a directory");
        }
        let (busy, dropped) = make_locked(&opened).expect("made");
        drop(dropped);
        fs::create_dir(place.path().join(&busy).join("x")).expect("a directory");
        sweep(&opened);
        let is_there = |name: &str| place.path().join(name).exists();
        assert!(is_there(&alive) && !is_there(&dead), "who lives keeps its group");
        assert!(is_there(&busy) && is_there("portcullis-service-of-user") && is_there("0123456789abcdef"));
        drop(lock);
        sweep(&opened);
        assert!(!is_there(&alive));
    }

    #[test]
    fn a_group_that_was_swept_away_before_its_lock_is_none() {
        let (place, opened) = place();
        mkdirat(&opened, "x", Mode::RWXU).expect("made");
        let early = open_directory(&opened, "x").expect("opened");
        fs::remove_dir(place.path().join("x")).expect("removed");
        assert_eq!(lock(&opened, "x").map(drop), Err(Errno::NOENT));
        // While somebody sweeps.
        fs::create_dir(place.path().join("x")).expect("made");
        let sweeper = open_directory(&opened, "x").expect("opened");
        flock(&sweeper, FlockOperation::NonBlockingLockExclusive).expect("locked");
        assert_eq!(lock(&opened, "x").map(drop), Err(Errno::AGAIN));
        drop((early, sweeper));
        assert!(lock(&opened, "x").is_ok());
    }

    #[test]
    fn nobody_is_swept_away_by_who_comes_meanwhile() {
        let (_place, opened) = place();
        let making = hold(&opened, FlockOperation::NonBlockingLockShared).expect("held");
        let also_making = hold(&opened, FlockOperation::NonBlockingLockShared);
        assert!(also_making.is_some() && hold(&opened, FlockOperation::NonBlockingLockExclusive).is_none());
        drop((making, also_making));
        let sweeping = hold(&opened, FlockOperation::NonBlockingLockExclusive);
        assert!(sweeping.is_some() && hold(&opened, FlockOperation::NonBlockingLockShared).is_none());
        // Who does not let it go keeps nobody from making one.
        assert!(make_locked(&opened).is_ok());
    }

    #[test]
    fn sessions_that_start_together_keep_their_groups() {
        let (place, opened) = place();
        std::thread::scope(|scope| {
            let start = || {
                let made: Vec<_> = (0..50)
                    .map(|_| {
                        sweep(&opened);
                        make_locked(&opened).expect("made")
                    })
                    .collect();
                let kept = made.iter().all(|(name, _)| place.path().join(name).exists());
                assert!(kept, "somebody swept a group of a living session");
            };
            let all = [scope.spawn(start), scope.spawn(start), scope.spawn(start)];
            all.into_iter().for_each(|one| one.join().expect("no panic"));
        });
    }

    /// The file is imitated: the kernels that tests run on give this controller to version 1.
    #[test]
    fn deaths_are_told_once() {
        let (place, opened) = place();
        let write = |text: &str| fs::write(place.path().join("memory.events"), text).expect("written");
        assert!(Deaths::of(opened.as_fd()).is_none());
        write("low 0\noom 2\noom_kill 3\noom_group_kill 9\n");
        let deaths = Deaths::of(opened.as_fd()).expect("counted");
        assert!(!deaths.are_new());
        write("low 0\noom 3\noom_kill 4\noom_group_kill 9\n");
        assert!(deaths.are_new() && !deaths.are_new());
        // The machine had no more.
        write("low 0\noom 3\noom_kill 5\noom_group_kill 9\n");
        assert!(!deaths.are_new());
    }
}

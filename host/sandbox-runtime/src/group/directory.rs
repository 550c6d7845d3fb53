//! Creating, entering, killing and removing a group.
//!
//! The host locks its group (flock(2)) as long as it lives, so that no other host takes the group for abandoned before
//! the keeper is in it. When a host is killed, the kernel releases the lock and ends the processes of the group; the
//! next host that creates a group in the same place removes it. Between its creation and its lock a group looks
//! abandoned, so the parent directory is locked as well: shared by hosts that create groups, or exclusively by one that
//! removes them.

use std::fs::File;
use std::hash::{BuildHasher as _, RandomState};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use portcullis_sandbox::{Controller, Limits, NoGroup};
use rustix::fs::{
    AtFlags, CWD, Dir, FlockOperation, Mode, OFlags, flock, fstat, mkdirat, openat, statat, unlinkat,
};
use rustix::io::Errno;

use super::limits::{Bounds, put};
use super::parent::{self, GroupParent};

/// The prefix of group names; sixteen hexadecimal digits follow.
const PREFIX: &str = "portcullis-";
/// Commands that act as another user read their limits in it by name; a process that can open it could lock it.
const MODE: Mode = Mode::RWXU.union(Mode::XGRP).union(Mode::XOTH);
/// Attempts to find a free name whose group is not removed by another host at once.
const TRIES: u32 = 8;
/// The number of waits for killed processes to leave a group.
const MOMENTS: u32 = 500;
const MOMENT: Duration = Duration::from_millis(2);

/// A group that this process has created; dropping it kills its processes and removes it.
#[derive(Debug)]
pub(crate) struct Group {
    place: OwnedFd,
    name: String,
    path: PathBuf,
    /// Holds the lock.
    directory: OwnedFd,
    controllers: Vec<Controller>,
}

impl Group {
    /// Creates a group with these limits in the best place for it.
    pub(crate) fn make(limits: Limits) -> Result<Self, NoGroup> {
        let bounds = Bounds::for_all_commands(limits).ok_or(NoGroup::NoLimits)?;
        let GroupParent { path, missing, .. } = parent::find()?;
        let place = open_directory(CWD, &path).map_err(no_group("opening the place of control groups"))?;
        for controller in missing {
            // A controller that is refused here is missing in the check below.
            let _refused = put(&place, "cgroup.subtree_control", &format!("+{}", controller.name()));
        }
        sweep(&place);
        let (name, directory) = make_locked(&place).map_err(no_group("making a control group"))?;
        let path = path.join(&name);
        let mut group = Self { place, name, path, directory, controllers: Vec::new() };
        group.controllers = controllers_of(&group.directory);
        if group.controllers.is_empty() {
            return Err(NoGroup::NoControllers);
        }
        let put_on = bounds.put_on(group.directory.as_fd(), &group.controllers);
        put_on.map_err(|error| no_group("bounding a control group")(error_of(&error)))?;
        Ok(group)
    }

    /// Returns the controllers that limit the group.
    pub(crate) fn controllers(&self) -> &[Controller] {
        &self.controllers
    }

    /// Returns the path of the group.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Opens the group so that a process can be started in it; the lock stays with this handle.
    pub(crate) fn entrance(&self) -> rustix::io::Result<OwnedFd> {
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        openat(&self.directory, ".", flags, Mode::empty())
    }

    /// Returns the count of processes killed for lack of memory, if the group limits memory.
    pub(crate) fn deaths(&self) -> Option<Deaths> {
        let is_bounded = self.controllers.contains(&Controller::Memory);
        is_bounded.then(|| Deaths::open(self.directory.as_fd())).flatten()
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        end(&self.directory);
        for _ in 0..MOMENTS {
            match unlinkat(&self.place, &self.name, AtFlags::REMOVEDIR) {
                Err(Errno::BUSY) => std::thread::sleep(MOMENT),
                // A group that cannot be removed is left to the next sweep.
                Ok(()) | Err(_) => return,
            }
        }
    }
}

/// Counts the processes of a group that the kernel has killed because all together exceeded the memory limit.
#[derive(Debug)]
pub(crate) struct Deaths {
    events: File,
    known: Mutex<Events>,
}

/// The kernel's counters for a group.
#[derive(Debug, Clone, Copy)]
struct Events {
    /// The number of times that the group ran out of memory at its limit.
    at_bound: u64,
    /// The number of its processes that were killed, including when the whole machine ran out of memory.
    killed: u64,
}

impl Deaths {
    /// Opens the counters; `None` if the kernel does not count.
    pub(super) fn open(group: BorrowedFd<'_>) -> Option<Self> {
        let flags = OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NOFOLLOW;
        let events = File::from(openat(group, "memory.events", flags, Mode::empty()).ok()?);
        let known = Mutex::new(Events::read(&events)?);
        Some(Self { events, known })
    }

    /// Returns true if processes were killed since the last call.
    pub(crate) fn are_new(&self) -> bool {
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        let now = Events::read(&self.events).unwrap_or(*known);
        let before = std::mem::replace(&mut *known, now);
        now.killed > before.killed && now.at_bound > before.at_bound
    }
}

impl Events {
    /// Reads the counters, as in the kernel's cgroup-v2.rst: lines of a name and a number.
    fn read(events: &File) -> Option<Self> {
        let mut bytes = [0; 512];
        let length = events.read_at(&mut bytes, 0).ok()?;
        let text = std::str::from_utf8(bytes.get(..length)?).ok()?;
        let count = |name: &str| text.lines().find_map(|line| line.strip_prefix(name))?.trim().parse().ok();
        Some(Self { at_bound: count("oom ")?, killed: count("oom_kill ")? })
    }
}

/// Removes the groups that killed hosts left in the place where this program would create one.
pub fn sweep_groups() {
    if let Ok(place) =
        parent::find().map(|found| open_directory(CWD, &found.path)).unwrap_or(Err(Errno::NOENT))
    {
        sweep(&place);
    }
}

/// Removes the groups of hosts that have ended, and kills the processes left in them.
fn sweep(place: &OwnedFd) {
    let _alone = hold(place, FlockOperation::NonBlockingLockExclusive);
    let Ok(entries) = Dir::read_from(place) else { return };
    for entry in entries.flatten() {
        let Some(name) = entry.file_name().to_str().ok().filter(|name| is_ours(name)) else { continue };
        let Ok(directory) = open_directory(place, name) else { continue };
        if flock(&directory, FlockOperation::NonBlockingLockExclusive).is_ok() {
            end(&directory);
            // A group with processes that are still ending is left to the next sweep.
            let _busy = unlinkat(place, name, AtFlags::REMOVEDIR);
        }
    }
}

fn is_ours(name: &str) -> bool {
    let is_hexadecimal =
        |digits: &str| digits.len() == 16 && digits.bytes().all(|byte| byte.is_ascii_hexdigit());
    name.strip_prefix(PREFIX).is_some_and(is_hexadecimal)
}

/// Locks a place until the returned descriptor is dropped. Another holder may never release its lock, so the wait is
/// short: the protected operation is then done without the lock, and repeated if it fails.
fn hold(place: &OwnedFd, lock: FlockOperation) -> Option<OwnedFd> {
    // A new open file description has a lock of its own.
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

/// Creates a directory and locks it, and verifies that the name still means this directory.
fn make_locked(place: &OwnedFd) -> rustix::io::Result<(String, OwnedFd)> {
    let _nobody_sweeps = hold(place, FlockOperation::NonBlockingLockShared);
    let mut last = Errno::EXIST;
    for _ in 0..TRIES {
        // `RandomState` has random keys.
        let name = format!("{PREFIX}{:016x}", RandomState::new().hash_one(std::process::id()));
        match mkdirat(place, &name, MODE).and_then(|()| lock(place, &name)) {
            Ok(directory) => return Ok((name, directory)),
            // The name is taken, or another host sweeps although the place is locked.
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

fn no_group(doing: &'static str) -> impl Fn(Errno) -> NoGroup {
    move |error| NoGroup::Refused { doing, errno: error.raw_os_error() }
}

fn error_of(error: &std::io::Error) -> Errno {
    Errno::from_io_error(error).unwrap_or(Errno::INVAL)
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    /// Ordinary directories stand in for groups: they too can be locked, and removed while they are empty.
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
        // While another host sweeps.
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
        // A holder that never releases the lock does not prevent the creation of groups.
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
        assert!(Deaths::open(opened.as_fd()).is_none());
        write("low 0\noom 2\noom_kill 3\noom_group_kill 9\n");
        let deaths = Deaths::open(opened.as_fd()).expect("counted");
        assert!(!deaths.are_new());
        write("low 0\noom 3\noom_kill 4\noom_group_kill 9\n");
        assert!(deaths.are_new() && !deaths.are_new());
        // The machine ran out of memory.
        write("low 0\noom 3\noom_kill 5\noom_group_kill 9\n");
        assert!(!deaths.are_new());
    }
}

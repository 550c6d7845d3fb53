//! The processes whose calls the broker carries out: their directories, descriptors and commands.

use std::collections::{HashMap, HashSet};
use std::ffi::{OsStr, OsString};
use std::io::Read;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

use portcullis_sys::memory::SharedNumbers;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{CWD, Dir, Mode, OFlags, openat, readlinkat};
use rustix::io::{self, Errno};
use rustix::process::{Pid, PidfdFlags, PidfdGetfdFlags, pidfd_getfd, pidfd_open};

use crate::resolved_name::normalize;

/// `PIDFD_THREAD`: pidfds of threads that are not the first of their process, since Linux 6.9.
const OF_A_THREAD: PidfdFlags = PidfdFlags::from_bits_retain(0o200);
/// The number of callers that are remembered; each holds three open descriptors.
const REMEMBERED: usize = 256;
/// The largest number of processes that are looked at to find a command's init.
const GENERATIONS: usize = 4096;
/// How long the keeper may take to record a command, in milliseconds.
const RECORDED_WITHIN: u32 = 1000;
/// Limits on a caller's arguments: the bytes to read, and the paths to take from them.
const ARGUMENT_BYTES: u64 = 64 * 1024;
const NAMED: usize = 8;
/// The umask assumed for a process whose umask cannot be read: no permissions for others.
const STRICT_MASK: u32 = 0o077;

/// All callers of the session.
pub(crate) struct Processes {
    /// `/proc` of the session.
    proc: OwnedFd,
    /// `/proc/self/fd`, whose links give the canonical paths of descriptors that are open here.
    own: OwnedFd,
    known: Mutex<HashMap<i32, Arc<Caller>>>,
    /// Counts changes of the umask of any process.
    masks: AtomicU64,
    commands: SharedNumbers,
    /// Commands whose first program runs.
    started: Mutex<HashSet<u64>>,
    /// The pid of the keeper, the parent of the inits.
    keeper: u32,
}

/// A calling thread.
pub(crate) struct Caller {
    pub(crate) thread: i32,
    /// Readable when the thread has ended; `None` if the kernel has no pidfds of threads, and then the caller is not
    /// remembered.
    pidfd: Option<OwnedFd>,
    /// Its directory in `/proc`, which becomes empty once the thread has ended.
    directory: OnceLock<OwnedFd>,
    /// Constant: commands cannot change their root.
    root: OnceLock<OwnedFd>,
    /// The umask, and the count of changes when it was read.
    mask: Mutex<Option<(u64, u32)>>,
    command: OnceLock<u64>,
    /// The pids of its process and of itself in the command's own pid namespace.
    numbers: OnceLock<(u32, u32)>,
    /// Whether its command is known to have started.
    has_started: AtomicBool,
    /// Ids of mounts that are known to be the caller's own.
    mounts: Mutex<Vec<u64>>,
}

impl Processes {
    pub(crate) fn new(commands: SharedNumbers, keeper: i32) -> io::Result<Self> {
        let directory = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let proc = openat(CWD, "/proc", directory, Mode::empty())?;
        let own = openat(&proc, "self/fd", directory, Mode::empty())?;
        let (known, started) = (Mutex::default(), Mutex::default());
        let keeper = u32::try_from(keeper).map_err(|_negative| Errno::SRCH)?;
        Ok(Self { proc, own, known, masks: AtomicU64::new(0), commands, started, keeper })
    }

    /// Returns the pid of the keeper.
    pub(crate) fn keeper(&self) -> i32 {
        self.keeper.cast_signed()
    }

    /// Returns the calling thread. It is valid as long as the call waits, which must be checked before acting.
    pub(crate) fn caller(&self, thread: i32) -> Arc<Caller> {
        if let Some(known) = self.lock().get(&thread)
            && known.is_alive()
        {
            return Arc::clone(known);
        }
        let caller = Arc::new(Caller {
            thread,
            pidfd: open_thread(thread).ok(),
            directory: OnceLock::new(),
            root: OnceLock::new(),
            mask: Mutex::default(),
            command: OnceLock::new(),
            numbers: OnceLock::new(),
            has_started: AtomicBool::new(false),
            mounts: Mutex::default(),
        });
        if caller.pidfd.is_some() {
            let mut known = self.lock();
            if known.len() >= REMEMBERED {
                known.retain(|_, known| known.is_alive());
            }
            if known.len() >= REMEMBERED {
                known.clear();
            }
            known.insert(thread, Arc::clone(&caller));
        }
        caller
    }

    /// Opens one of the caller's links in `/proc` with O_PATH.
    pub(crate) fn open_link(&self, caller: &Caller, link: &str) -> io::Result<OwnedFd> {
        openat(self.directory(caller)?, link, OFlags::PATH | OFlags::CLOEXEC, Mode::empty())
    }

    /// As [`Self::open_link`], for a link to a directory.
    pub(crate) fn open_link_to_directory(&self, caller: &Caller, link: &str) -> io::Result<OwnedFd> {
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        openat(self.directory(caller)?, link, flags, Mode::empty())
    }

    fn directory<'a>(&self, caller: &'a Caller) -> io::Result<BorrowedFd<'a>> {
        if let Some(directory) = caller.directory.get() {
            return Ok(directory.as_fd());
        }
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let directory = openat(&self.proc, caller.thread.to_string(), flags, Mode::empty())?;
        Ok(caller.directory.get_or_init(|| directory).as_fd())
    }

    /// Returns the caller's root directory.
    pub(crate) fn root<'a>(&self, caller: &'a Caller) -> io::Result<BorrowedFd<'a>> {
        if let Some(root) = caller.root.get() {
            return Ok(root.as_fd());
        }
        let root = self.open_link(caller, "root")?;
        Ok(caller.root.get_or_init(|| root).as_fd())
    }

    /// Returns the canonical path of a descriptor that is open here.
    pub(crate) fn path_of(&self, open: impl AsFd) -> io::Result<Vec<u8>> {
        let number = open.as_fd().as_raw_fd().to_string();
        Ok(readlinkat(&self.own, number, Vec::with_capacity(256))?.into_bytes())
    }

    /// Opens again a file that is open here.
    pub(crate) fn open_anew(&self, open: impl AsFd, flags: OFlags, mode: Mode) -> io::Result<OwnedFd> {
        openat(&self.own, open.as_fd().as_raw_fd().to_string(), flags, mode)
    }

    /// Returns `/proc/self/fd`, whose names are the numbers of the descriptors open here.
    pub(crate) fn own_descriptors(&self) -> BorrowedFd<'_> {
        self.own.as_fd()
    }

    /// Returns a duplicate of one of the caller's descriptors.
    pub(crate) fn descriptor(&self, caller: &Caller, number: i32) -> io::Result<OwnedFd> {
        caller.with_pidfd(|pidfd| pidfd_getfd(pidfd, number, PidfdGetfdFlags::empty()))
    }

    /// Returns a duplicate of a descriptor of the caller's command, preferring the caller's: one whose link in `/proc`
    /// satisfies `is_likely` and which satisfies `is_it`.
    pub(crate) fn find_descriptor(
        &self,
        caller: &Caller,
        is_likely: &dyn Fn(&[u8]) -> bool,
        is_it: &dyn Fn(&OwnedFd) -> bool,
    ) -> Option<OwnedFd> {
        let command = self.command(caller)?;
        let of = |process: i32| self.copies(process, is_likely).into_iter().find(is_it);
        of(caller.thread).or_else(|| {
            let others = self.numbers(".").into_iter().filter(|other| *other != caller.thread);
            others.filter(|other| self.command_of(*other) == Some(command)).find_map(of)
        })
    }

    /// Returns duplicates of a process's descriptors whose links are likely; empty for a process that has ended.
    fn copies(&self, process: i32, is_likely: &dyn Fn(&[u8]) -> bool) -> Vec<OwnedFd> {
        let directory = format!("{process}/fd");
        let is_likely = |number: &i32| {
            let link = readlinkat(&self.proc, format!("{directory}/{number}"), Vec::with_capacity(64));
            link.is_ok_and(|link| is_likely(link.to_bytes()))
        };
        let numbers: Vec<i32> = self.numbers(&directory).into_iter().filter(is_likely).collect();
        let Ok(pidfd) = open_thread(process) else { return Vec::new() };
        let copy = |number| pidfd_getfd(&pidfd, number, PidfdGetfdFlags::empty()).ok();
        numbers.into_iter().filter_map(copy).collect()
    }

    /// Returns the names in a directory of `/proc` that are numbers.
    fn numbers(&self, directory: &str) -> Vec<i32> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let open = openat(&self.proc, directory, flags, Mode::empty());
        let entries = open.and_then(Dir::new).into_iter().flatten().flatten();
        entries.filter_map(|entry| entry.file_name().to_str().ok()?.parse().ok()).collect()
    }

    /// Returns the caller's umask.
    pub(crate) fn mask(&self, caller: &Caller) -> u32 {
        let changes = self.masks.load(Ordering::Acquire);
        let mut mask = caller.mask.lock().unwrap_or_else(PoisonError::into_inner);
        match *mask {
            Some((then, known)) if then == changes => known,
            _ => {
                let read = self.read_mask(caller.thread).unwrap_or(STRICT_MASK);
                *mask = Some((changes, read));
                read
            }
        }
    }

    /// Notes that a process is about to change its umask.
    pub(crate) fn masks_change(&self) {
        self.masks.fetch_add(1, Ordering::AcqRel);
    }

    fn read_mask(&self, thread: i32) -> Option<u32> {
        let status = self.read(&format!("{thread}/status"))?;
        let line = status.lines().find_map(|line| line.strip_prefix("Umask:"))?;
        u32::from_str_radix(line.trim(), 8).ok()
    }

    /// Returns the number of the caller's command, as the keeper counts them.
    pub(crate) fn command(&self, caller: &Caller) -> Option<u64> {
        if let Some(command) = caller.command.get() {
            return Some(*command);
        }
        let init = self.init_of(caller.thread)?;
        // A command may run before the keeper has recorded it, right after creating it. On a busy machine that takes
        // long, and the host refuses a call without a known command instead of asking about it.
        let noted = (0..RECORDED_WITHIN).take_while(|_| !caller.has_ended()).find_map(|_| {
            let found = self.commands.find(|entry| entry >> 32 == u64::from(init));
            if found.is_none() {
                std::thread::sleep(Duration::from_millis(1));
            }
            found
        })?;
        Some(*caller.command.get_or_init(|| noted & u64::from(u32::MAX)))
    }

    /// Returns the number of the command that a process belongs to; `None` if it belongs to no command.
    pub(crate) fn command_of(&self, process: i32) -> Option<u64> {
        let init = u64::from(self.init_of(process)?);
        // An init belongs to the keeper and must not be inspected.
        let entry = self.commands.find(|entry| entry >> 32 == init)?;
        (u64::try_from(process) != Ok(init)).then_some(entry & u64::from(u32::MAX))
    }

    /// Returns true if the command still runs.
    pub(crate) fn is_running(&self, command: u64) -> bool {
        self.commands.find(|entry| entry & u64::from(u32::MAX) == command).is_some()
    }

    /// Notes that a program of the caller's command runs.
    pub(crate) fn note_start(&self, caller: &Caller) {
        if caller.has_started.swap(true, Ordering::Relaxed) {
            return;
        }
        let Some(command) = self.command(caller) else { return };
        let mut started = self.started.lock().unwrap_or_else(PoisonError::into_inner);
        if started.insert(command) {
            started.retain(|command| self.is_running(*command));
        }
    }

    /// Returns true if the caller is the process that a command's init created for the first program, and has not yet
    /// executed it.
    pub(crate) fn is_starting(&self, caller: &Caller) -> bool {
        let Some(command) = self.command(caller) else { return false };
        let init = u32::try_from(caller.thread).ok().and_then(|thread| self.parent(thread));
        let is_first = init.is_some_and(|init| self.parent(init) == Some(self.keeper));
        is_first && !self.started.lock().unwrap_or_else(PoisonError::into_inner).contains(&command)
    }

    /// Returns the pids of the caller's process and of the caller in the command's own pid namespace.
    pub(crate) fn own_numbers(&self, caller: &Caller) -> Option<(u32, u32)> {
        if let Some(numbers) = caller.numbers.get() {
            return Some(*numbers);
        }
        let status = self.read(&format!("{}/status", caller.thread))?;
        let last = |name: &str| {
            let line = status.lines().find_map(|line| line.strip_prefix(name))?;
            line.split_ascii_whitespace().next_back()?.parse().ok()
        };
        Some(*caller.numbers.get_or_init(|| (last("NStgid:").unwrap_or(0), last("NSpid:").unwrap_or(0))))
    }

    /// Returns the major and minor number of the caller's controlling terminal.
    pub(crate) fn terminal(&self, caller: &Caller) -> Option<(u32, u32)> {
        let status = self.read(&format!("{}/stat", caller.thread))?;
        let (_, rest) = status.rsplit_once(')')?;
        let number: i32 = rest.split_ascii_whitespace().nth(4)?.parse().ok()?;
        let number = number.cast_unsigned();
        (number != 0).then_some((number >> 8 & 0xfff, number & 0xff | number >> 12 & 0xf_ff00))
    }

    /// Opens the program of a process with O_PATH.
    pub(crate) fn program(&self, process: i32) -> io::Result<OwnedFd> {
        openat(&self.proc, format!("{process}/exe"), OFlags::PATH | OFlags::CLOEXEC, Mode::empty())
    }

    /// Returns the text of a process's `maps`.
    pub(crate) fn maps(&self, process: i32) -> Option<Vec<u8>> {
        let path = format!("{process}/maps");
        let file = openat(&self.proc, path, OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty()).ok()?;
        let mut text = Vec::with_capacity(4096);
        std::fs::File::from(file).read_to_end(&mut text).ok()?;
        (!text.is_empty()).then_some(text)
    }

    /// Returns the directories among the arguments of the caller's program that hold `path`, or are it.
    ///
    /// A person may have chosen them, but a program can have any arguments. Links in them are not followed.
    pub(crate) fn named_above(&self, caller: &Caller, path: &Path) -> Vec<PathBuf> {
        let Ok(directory) = self.directory(caller) else { return Vec::new() };
        let cwd = readlinkat(directory, "cwd", Vec::with_capacity(256));
        let cwd = cwd.map(|cwd| PathBuf::from(OsString::from_vec(cwd.into_bytes()))).unwrap_or_default();
        let Ok(file) = openat(directory, "cmdline", OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty()) else {
            return Vec::new();
        };
        let mut text = Vec::new();
        let read = std::fs::File::from(file).take(ARGUMENT_BYTES).read_to_end(&mut text);
        let words = if read.is_ok() { text.as_slice() } else { &[] };
        above(words.split(|byte| *byte == 0), &cwd, path)
    }

    /// Returns the process 1 of a process's own pid namespace: its ancestor whose parent is the keeper.
    fn init_of(&self, thread: i32) -> Option<u32> {
        init(u32::try_from(thread).ok()?, self.keeper, |process| self.parent(process))
    }

    fn parent(&self, process: u32) -> Option<u32> {
        let status = self.read(&format!("{process}/stat"))?;
        // The name in brackets can contain any character.
        let (_, rest) = status.rsplit_once(')')?;
        rest.split_ascii_whitespace().nth(1)?.parse().ok()
    }

    fn read(&self, path: &str) -> Option<String> {
        let file = openat(&self.proc, path, OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty()).ok()?;
        let mut bytes = vec![0; 2048];
        let length = std::fs::File::from(file).read(&mut bytes).ok()?;
        bytes.truncate(length);
        Some(String::from_utf8_lossy(&bytes).into_owned())
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<i32, Arc<Caller>>> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Caller {
    /// Calls `act` with a pidfd of the caller.
    pub(crate) fn with_pidfd<T>(&self, act: impl FnOnce(BorrowedFd<'_>) -> io::Result<T>) -> io::Result<T> {
        match &self.pidfd {
            Some(pidfd) => act(pidfd.as_fd()),
            None => act(open_thread(self.thread)?.as_fd()),
        }
    }

    pub(crate) fn has_mount(&self, mount: u64) -> bool {
        self.mounts.lock().unwrap_or_else(PoisonError::into_inner).contains(&mount)
    }

    pub(crate) fn note_mount(&self, mount: u64) {
        self.mounts.lock().unwrap_or_else(PoisonError::into_inner).push(mount);
    }

    fn is_alive(&self) -> bool {
        self.pidfd.is_some() && !self.has_ended()
    }

    /// Returns true if it is known to have ended.
    fn has_ended(&self) -> bool {
        let now = Timespec { tv_sec: 0, tv_nsec: 0 };
        let is_readable = |pidfd| poll(&mut [PollFd::new(pidfd, PollFlags::IN)], Some(&now)) != Ok(0);
        self.pidfd.as_ref().is_some_and(is_readable)
    }
}

/// Returns the paths among `words`, relative to `cwd`, that hold `path`, or are it. What follows a `=` counts as well.
fn above<'a>(words: impl Iterator<Item = &'a [u8]>, cwd: &Path, path: &Path) -> Vec<PathBuf> {
    let mut found: Vec<PathBuf> = Vec::new();
    let values = words.flat_map(|word| {
        let value = word.splitn(2, |byte| *byte == b'=').nth(1);
        std::iter::once(word).chain(value)
    });
    for word in values.filter(|word| !word.is_empty()) {
        let named = normalize(&cwd.join(OsStr::from_bytes(word)));
        if named.is_absolute() && path.starts_with(&named) && !found.contains(&named) {
            found.push(named);
        }
        if found.len() == NAMED {
            break;
        }
    }
    found
}

/// Returns the ancestor of a process, or the process itself, whose parent is the keeper.
fn init(process: u32, keeper: u32, parent: impl Fn(u32) -> Option<u32>) -> Option<u32> {
    let mut at = process;
    for _ in 0..GENERATIONS {
        match parent(at) {
            Some(found) if found == keeper => return Some(at),
            Some(0 | 1) => return None,
            Some(found) => at = found,
            // It has ended since its child was looked at, which has another parent now.
            None if at != process => at = process,
            None => return None,
        }
    }
    None
}

fn open_thread(thread: i32) -> io::Result<OwnedFd> {
    let pid = Pid::from_raw(thread).ok_or(Errno::SRCH)?;
    match pidfd_open(pid, OF_A_THREAD) {
        Err(Errno::INVAL) => pidfd_open(pid, PidfdFlags::empty()),
        opened => opened,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The keeper is 2, the init 10, the process 30; its parent 20 ends while it is looked up.
    #[test]
    fn a_process_whose_parent_ends_meanwhile_belongs_to_its_command() {
        let has_ended = std::cell::Cell::new(false);
        let found = init(30, 2, |process| match process {
            30 if has_ended.get() => Some(10),
            30 => Some(20),
            20 => {
                has_ended.set(true);
                None
            }
            10 => Some(2),
            _ => None,
        });
        assert_eq!(found, Some(10));
        assert!(has_ended.get(), "control");
        let ended = init(30, 2, |_| None);
        assert_eq!(ended, None, "a process that has ended itself");
        let elsewhere = init(30, 2, |process| (process == 30).then_some(1));
        assert_eq!(elsewhere, None);
    }

    #[test]
    fn what_a_program_was_given_names_places() {
        let words = ["git", "-C", "../o", "--dir=/srv/o/x", "", "/", "/srv/other", "/srv/o/../o", "."];
        let found = above(words.iter().map(|word| word.as_bytes()), "/srv/p".as_ref(), "/srv/o/x/y".as_ref());
        assert_eq!(found, ["/srv/o", "/srv/o/x", "/"].map(PathBuf::from));
        assert_eq!(
            above([b"x".as_slice()].into_iter(), "".as_ref(), "/x".as_ref()),
            [""; 0].map(PathBuf::from)
        );
    }
}

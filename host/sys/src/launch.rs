//! Starts a command under its own init process, without copying the address space.
//!
//! The init shares this process's memory until it exits, and the command until it calls `execve`. No memory is
//! copied, which makes the start fast. In return neither may use thread-local state (`errno`, the allocator,
//! a panic). This process prepares all their work as [`Script`]s of system calls.

mod raw;
mod script;
mod stacks;

use std::ffi::{CString, c_void};
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd, RawFd};
use std::os::unix::process::ExitStatusExt;
use std::process::ExitStatus;
use std::ptr;
use std::rc::Rc;
use std::sync::atomic::{AtomicBool, AtomicI32, AtomicU32, Ordering};

use crate::process::{CloneFlags, ExecVector, SingleThread};
use crate::signal::Settled;
use raw::{number, word};
pub use script::{Refused, Script, Standard};
pub use stacks::Stacks;

/// A command and all data needed to start it.
#[derive(Debug)]
pub struct Launch<'a> {
    /// The calls that the init makes before it creates the command.
    pub init: Rc<Script<'static>>,
    /// The calls that the command makes before it executes the program.
    pub command: Script<'a>,
    /// The paths to try, in this order, as in execvp(3).
    pub candidates: Vec<CString>,
    /// The program's arguments.
    pub argv: ExecVector,
    /// The program's environment.
    pub env: ExecVector,
    /// A descriptor, and the bytes that the init writes to it once the program runs.
    pub notice: (BorrowedFd<'a>, Vec<u8>),
    /// The label to report when the command's process cannot be created.
    pub process_label: u32,
    /// The label to report when the program cannot be executed.
    pub exec_label: u32,
}

/// The mechanism that kills all processes below an init.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fence {
    /// A pid namespace with the init as process 1, and further namespaces.
    ///
    /// The kernel kills its processes when the init ends.
    Namespaces(CloneFlags),
    /// A Landlock domain with a signal scope, which the init's script installs.
    ///
    /// The init kills all processes in it with a single `kill(-1)`, which no process can escape by forking.
    /// The script must also make the init a subreaper and set [`END`] as its parent-death signal.
    Signals,
}

/// The signal that tells an init with [`Fence::Signals`] to kill all processes below it.
///
/// It is a real-time signal without a name, so no user sends it to be forwarded.
pub const END: i32 = 62;

/// A running init with its processes. Dropping it kills all of them.
///
/// With [`Fence::Signals`], dropping it kills only the init: see [`Launched::end`].
#[derive(Debug)]
pub struct Launched {
    init: OwnedFd,
    number: u32,
    shared: Rc<Shared>,
    /// True once the init is known to have ended, so that `shared` has no other user.
    ended: bool,
}

/// The result of a launch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    /// The program was never executed.
    Refused(Refused),
    /// The init was killed. With [`Fence::Namespaces`] all processes below it were killed too.
    Killed,
    /// The program exited.
    Ended(ExitStatus),
}

/// The data shared by this process, the init and the command.
#[derive(Debug)]
struct Shared {
    init: Rc<Script<'static>>,
    command: Script<'static>,
    candidates: Vec<CString>,
    argv: ExecVector,
    env: ExecVector,
    notice: (RawFd, Vec<u8>),
    process_label: u32,
    exec_label: u32,
    stacks: Stacks,
    record: Record,
    /// The pid of the process that starts the init with [`Fence::Signals`]; 0 with namespaces.
    maker: i32,
}

/// The results that the init and the command report. This process reads them only after the init has ended.
#[derive(Debug, Default)]
struct Record {
    refused: AtomicBool,
    label: AtomicU32,
    errno: AtomicI32,
    ended: AtomicBool,
    status: AtomicI32,
}

impl Launch<'_> {
    /// Starts the init behind a fence.
    ///
    /// # Errors
    /// The errno of the kernel: `EAGAIN` when there are too many processes, `EPERM` when namespaces are not
    /// permitted.
    pub fn start(
        self,
        (_single, _settled): (&SingleThread, &Settled),
        fence: Fence,
        stacks: Stacks,
    ) -> io::Result<Launched> {
        let (notified, notice) = self.notice;
        let (namespaces, maker) = match fence {
            Fence::Namespaces(namespaces) => (namespaces | CloneFlags::PID, 0),
            Fence::Signals => (CloneFlags::NONE, i32::try_from(std::process::id()).unwrap_or_default()),
        };
        let shared = Rc::new(Shared {
            init: self.init,
            command: self.command.into_prepared(),
            candidates: self.candidates,
            argv: self.argv,
            env: self.env,
            notice: (notified.as_raw_fd(), notice),
            process_label: self.process_label,
            exec_label: self.exec_label,
            stacks,
            record: Record::default(),
            maker,
        });
        let flags = word(namespaces.bits() | libc::CLONE_VM | libc::CLONE_PIDFD | libc::SIGCHLD);
        let stack = shared.stacks.of_init();
        let argument = Rc::as_ptr(&shared).cast_mut().cast::<c_void>();
        let mut pidfd: RawFd = -1;
        // SAFETY: the stack belongs to `shared`. No other process runs on it, and `Launched` keeps it alive
        // until the init has ended. `run_init` gets a pointer of the type it expects and follows the rules
        // for shared memory. `pidfd` outlives the call. No other thread (`_single`) and no signal handler
        // (`_settled`) runs in this memory. The init has a copy of the descriptor table, so the descriptor
        // numbers in the scripts stay valid.
        let pid = unsafe { raw::clone_onto(flags, stack, ptr::from_mut(&mut pidfd), run_init, argument) };
        if let Some(errno) = raw::errno(pid) {
            return Err(io::Error::from_raw_os_error(errno));
        }
        // SAFETY: the kernel has just created this descriptor, so it has no other owner.
        let init = unsafe { OwnedFd::from_raw_fd(pidfd) };
        let number = u32::try_from(pid).unwrap_or_default();
        Ok(Launched { init, number, shared, ended: false })
    }
}

impl Launched {
    /// Kills all processes. [`Launched::try_end`] returns the result when they have ended.
    pub fn end(&self) {
        let signal = if self.shared.maker == 0 { libc::SIGKILL } else { END };
        send(&self.init, signal);
    }

    /// Returns the init's pidfd, which becomes readable when all processes have ended.
    pub fn pidfd(&self) -> BorrowedFd<'_> {
        self.init.as_fd()
    }

    /// Returns the init's pid in the caller's pid namespace.
    pub fn number(&self) -> u32 {
        self.number
    }

    /// Returns the outcome when all processes have ended, and the stacks for another launch.
    ///
    /// # Errors
    /// Returns `self` while processes remain.
    pub fn try_end(mut self) -> Result<(Outcome, Option<Stacks>), Self> {
        if !self.wait(libc::WNOHANG) {
            return Err(self);
        }
        let outcome = self.shared.record.outcome();
        // The init has ended, so this is the last user.
        let shared = Rc::clone(&self.shared);
        drop(self);
        Ok((outcome, Rc::into_inner(shared).map(|shared| shared.stacks)))
    }

    /// Waits for the end of the init, which ends after all processes below it (pid_namespaces(7)).
    fn wait(&mut self, options: libc::c_int) -> bool {
        if self.ended {
            return true;
        }
        let mut info = std::mem::MaybeUninit::<libc::siginfo_t>::zeroed();
        let pidfd = libc::id_t::try_from(self.init.as_raw_fd()).unwrap_or_default();
        let options = options | libc::WEXITED;
        // SAFETY: `info` is writable and outlives the call.
        let result = unsafe { libc::waitid(libc::P_PIDFD, pidfd, info.as_mut_ptr(), options) };
        // SAFETY: zeroed memory is a valid value, and so is everything that the kernel writes.
        let info = unsafe { info.assume_init() };
        // SAFETY: waitid(2) sets this field, or leaves it zero when no child has ended.
        let pid = unsafe { info.si_pid() };
        // `ECHILD` also means that the init has ended: the process ignores SIGCHLD, so the kernel reaps its
        // children.
        let no_child = result < 0 && io::Error::last_os_error().raw_os_error() == Some(libc::ECHILD);
        self.ended = no_child || (result == 0 && pid != 0);
        self.ended
    }
}

impl Drop for Launched {
    fn drop(&mut self) {
        // The memory must outlive the init.
        while !self.ended {
            send(&self.init, libc::SIGKILL);
            self.wait(0);
        }
    }
}

/// Sends a signal. An error means that the process has already ended.
fn send(process: &OwnedFd, signal: i32) {
    let nothing = ptr::null::<libc::siginfo_t>();
    // SAFETY: the call takes an open descriptor, two numbers and a null pointer.
    unsafe { libc::syscall(libc::SYS_pidfd_send_signal, process.as_raw_fd(), signal, nothing, 0) };
}

impl Record {
    fn refuse(&self, refused: Refused) {
        self.label.store(refused.label, Ordering::Relaxed);
        self.errno.store(refused.errno, Ordering::Relaxed);
        self.refused.store(true, Ordering::Release);
    }

    fn is_refused(&self) -> bool {
        self.refused.load(Ordering::Acquire)
    }

    fn end(&self, status: i32) {
        self.status.store(status, Ordering::Relaxed);
        self.ended.store(true, Ordering::Release);
    }

    fn outcome(&self) -> Outcome {
        if self.is_refused() {
            let label = self.label.load(Ordering::Relaxed);
            return Outcome::Refused(Refused { label, errno: self.errno.load(Ordering::Relaxed) });
        }
        match self.ended.load(Ordering::Acquire) {
            true => Outcome::Ended(ExitStatus::from_raw(self.status.load(Ordering::Relaxed))),
            // Killed by the user or the OOM killer. In every other case the init reports a result.
            false => Outcome::Killed,
        }
    }
}

// The code below runs in shared memory. It must not allocate, drop, lock or unwind.

/// The init of a command. It is process 1 if it has its own pid namespace.
unsafe extern "C" fn run_init(argument: *mut c_void) -> ! {
    // SAFETY: `argument` is the `Shared` that `start` passed. It lives until this process has ended, and only
    // its atomic fields change.
    let shared = unsafe { &*argument.cast::<Shared>() };
    if let Err(refused) = shared.init.perform() {
        shared.record.refuse(refused);
        raw::exit(0);
    }
    if shared.maker != 0
        && let Err(errno) = check_fence(shared.maker)
    {
        shared.record.refuse(Refused { label: shared.process_label, errno });
        raw::exit(0);
    }
    let flags = word(libc::CLONE_VM | libc::CLONE_VFORK | libc::SIGCHLD);
    let stack = shared.stacks.of_command();
    // SAFETY: no other process runs on that stack, and it lives as long as this process. The new process ends
    // with this one at the latest. `run_command` gets a pointer of the type it expects and follows the rules
    // for shared memory.
    let command = unsafe { raw::clone_onto(flags, stack, ptr::null_mut(), run_command, argument) };
    if let Some(errno) = raw::errno(command) {
        shared.record.refuse(Refused { label: shared.process_label, errno });
    }
    if shared.record.is_refused() {
        raw::exit(0);
    }
    let (descriptor, notice) = &shared.notice;
    let notice = [word(*descriptor), notice.as_ptr().expose_provenance(), notice.len(), 0, 0, 0];
    // SAFETY: the pointer and length describe valid bytes, which are only read. A failed write
    // is ignored: without a reader this process is about to be killed.
    unsafe { raw::call(number(libc::SYS_write), notice) };
    // Close the init's copies of the command's pipes, so that the command's own close has an effect.
    // SAFETY: this process has its own descriptor table, and no value in it owns a descriptor.
    unsafe { raw::call(number(libc::SYS_close_range), [0, number(i64::from(u32::MAX)), 0, 0, 0, 0]) };
    let status = wait_for(command, shared.maker != 0);
    if shared.maker != 0 {
        end_all();
        reap_all();
    }
    shared.record.end(status);
    raw::exit(0)
}

/// Checks that the maker is alive and that signals cannot reach it, before any process has to be killed.
///
/// A process that may signal the maker may signal all processes of the user.
fn check_fence(maker: i32) -> Result<(), i32> {
    // SAFETY: the call takes no address.
    let parent = unsafe { raw::call(number(libc::SYS_getppid), [0; 6]) };
    // SAFETY: the call takes no address, and signal 0 sends nothing.
    let answer = unsafe { raw::call(number(libc::SYS_kill), [word(maker), 0, 0, 0, 0, 0]) };
    match raw::errno(answer) {
        Some(libc::EPERM) if parent == word(maker).cast_signed() => Ok(()),
        _ => Err(libc::EPERM),
    }
}

/// Kills every process behind the fence except this one. Forks that race with the call are killed too.
fn end_all() {
    // SAFETY: the call takes no address, and `check_fence` made sure that it reaches no process outside of
    // the fence.
    unsafe { raw::call(number(libc::SYS_kill), [word(-1), word(libc::SIGKILL), 0, 0, 0, 0]) };
}

/// Waits until no children and no adopted orphans are left.
fn reap_all() {
    loop {
        // SAFETY: no status is requested, so the kernel writes nothing.
        let ended = unsafe { raw::call(number(libc::SYS_wait4), [word(-1), 0, word(libc::__WALL), 0, 0, 0]) };
        if raw::errno(ended).is_some_and(|errno| errno != libc::EINTR) {
            return;
        }
    }
}

/// Reaps all children, forwards signals, and returns the wait status of the command.
///
/// All signals are blocked, because process 1 would ignore them otherwise. If `ends` is set, [`END`] kills
/// all processes.
fn wait_for(command: isize, ends: bool) -> i32 {
    let every_signal = u64::MAX;
    let group = command.wrapping_neg().cast_unsigned();
    let options = word(libc::WNOHANG | libc::__WALL);
    loop {
        let mut status = 0_i32;
        loop {
            let place = ptr::from_mut(&mut status).expose_provenance();
            // SAFETY: the status is writable and outlives the call.
            let ended = unsafe { raw::call(number(libc::SYS_wait4), [word(-1), place, options, 0, 0, 0]) };
            // A process whose parent is its tracer is reported when it stops, too.
            if ended == command && !libc::WIFSTOPPED(status) {
                return status;
            }
            if ended <= 0 {
                break;
            }
        }
        let set = ptr::from_ref(&every_signal).expose_provenance();
        let arguments = [set, 0, 0, script::SIGNALS_BYTES, 0, 0];
        // SAFETY: the set has the given length and outlives the call; no details are requested.
        let signal = unsafe { raw::call(number(libc::SYS_rt_sigtimedwait), arguments) };
        if ends && signal == word(END).cast_signed() {
            end_all();
        } else if signal > 0 && signal != word(libc::SIGCHLD).cast_signed() {
            // The command's process group has its pid. If it has ended meanwhile, the next iteration finds
            // out.
            // SAFETY: the call takes no address.
            unsafe { raw::call(number(libc::SYS_kill), [group, signal.cast_unsigned(), 0, 0, 0, 0]) };
        }
    }
}

/// The command, until it calls `execve`.
unsafe extern "C" fn run_command(argument: *mut c_void) -> ! {
    // SAFETY: as in `run_init`, which passed the argument on.
    let shared = unsafe { &*argument.cast::<Shared>() };
    let refused = match shared.command.perform() {
        Ok(()) => Refused { label: shared.exec_label, errno: replace(shared) },
        Err(refused) => refused,
    };
    shared.record.refuse(refused);
    raw::exit(127)
}

/// Executes the first candidate that works. Remembers an `EACCES` while trying the others, as execvp(3) does.
fn replace(shared: &Shared) -> i32 {
    let mut reason = libc::ENOENT;
    let (argv, env) = (shared.argv.address(), shared.env.address());
    for candidate in &shared.candidates {
        let arguments = [candidate.as_ptr().expose_provenance(), argv, env, 0, 0, 0];
        // SAFETY: all three are NUL-terminated strings or null-terminated vectors of such strings. They live
        // until this process has called `execve` or ended.
        let answer = unsafe { raw::call(number(libc::SYS_execve), arguments) };
        match raw::errno(answer) {
            Some(libc::ENOENT | libc::ENOTDIR) => {}
            Some(libc::EACCES) => reason = libc::EACCES,
            other => return other.unwrap_or(libc::EINVAL),
        }
    }
    reason
}

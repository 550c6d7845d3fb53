//! Starting a command below an init of its own, both made without copying this process.
//!
//! The init shares this process's memory for good, the command until it replaces itself: nothing is copied,
//! which is what makes it fast. In exchange neither may use anything that belongs to a thread (`errno`, the
//! allocator, a panic): what they do is prepared here, as [`Script`]s of system calls.

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

/// A command and all it takes to start it.
#[derive(Debug)]
pub struct Launch<'a> {
    /// What the init does before there is a command.
    pub init: Rc<Script<'static>>,
    /// What the command does before it replaces itself.
    pub command: Script<'a>,
    /// The paths to try, in their order, as in execvp(3).
    pub candidates: Vec<CString>,
    /// The program's arguments.
    pub argv: ExecVector,
    /// The program's environment.
    pub env: ExecVector,
    /// What is written to a descriptor once the program runs.
    pub notice: (BorrowedFd<'a>, Vec<u8>),
    /// What is told when the command cannot be made.
    pub process_label: u32,
    /// What is told when the program cannot be executed.
    pub exec_label: u32,
}

/// What ends with an init all that is below it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fence {
    /// A pid namespace, of which the init is process 1, and further namespaces: the kernel ends it.
    Namespaces(CloneFlags),
    /// Landlock rules beyond which no signal goes, under which the init's script puts it: the init ends whoever is
    /// under them, in one call that nobody outruns. Its script also has it adopt orphans, and hear [`END`] when its
    /// parent ends.
    Signals,
}

/// The signal by which an init behind a fence of signals is told to end all that is below it. It has no name, so nobody
/// asks for it to be passed on.
pub const END: i32 = 62;

/// An init and what is below it; dropping it kills all of them.
///
/// Behind a fence of signals dropping it kills the init only: see [`Launched::end`].
#[derive(Debug)]
pub struct Launched {
    init: OwnedFd,
    number: u32,
    shared: Rc<Shared>,
    /// Whether the init is known to have ended, and so nobody uses `shared` any more.
    ended: bool,
}

/// How it ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    /// The program was never run.
    Refused(Refused),
    /// The init was killed, and with it, behind a fence of namespaces, all that was below it.
    Killed,
    /// The program ended.
    Ended(ExitStatus),
}

/// What this process, the init and the command all see.
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
    /// The number of the process that makes the init, behind a fence of signals; 0 in namespaces.
    maker: i32,
}

/// What the two have to say. Whoever reads it here has waited for the init's end.
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
    /// The kernel's errno: `EAGAIN` when there are too many processes, `EPERM` when namespaces are refused.
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
        // SAFETY: the stack is `shared`'s, which nobody else runs on and which lives until the init has ended,
        // as `Launched` sees to; `run_init` gets the pointer it wants and keeps to what may be done there;
        // `pidfd` outlives the call. No other thread (`_single`) and no handler of a signal (`_settled`) runs in
        // the memory. The init has a copy of the descriptor table, so the scripts' numbers mean the same there.
        let pid = unsafe { raw::clone_onto(flags, stack, ptr::from_mut(&mut pidfd), run_init, argument) };
        if let Some(errno) = raw::errno(pid) {
            return Err(io::Error::from_raw_os_error(errno));
        }
        // SAFETY: the kernel has just made this descriptor for us and nobody else owns it.
        let init = unsafe { OwnedFd::from_raw_fd(pidfd) };
        let number = u32::try_from(pid).unwrap_or_default();
        Ok(Launched { init, number, shared, ended: false })
    }
}

impl Launched {
    /// Ends all of them; [`Launched::try_end`] tells when that is done.
    pub fn end(&self) {
        let signal = if self.shared.maker == 0 { libc::SIGKILL } else { END };
        send(&self.init, signal);
    }

    /// Returns the init's pidfd, which becomes readable when nothing is left.
    pub fn pidfd(&self) -> BorrowedFd<'_> {
        self.init.as_fd()
    }

    /// Returns the init's number in the caller's pid namespace.
    pub fn number(&self) -> u32 {
        self.number
    }

    /// Returns how it ended when nothing is left, and the memory that can be used for another.
    ///
    /// # Errors
    /// Gives itself back while something is left.
    pub fn try_end(mut self) -> Result<(Outcome, Option<Stacks>), Self> {
        if !self.wait(libc::WNOHANG) {
            return Err(self);
        }
        let outcome = self.shared.record.outcome();
        // The init has ended, so this is the only one who still has it.
        let shared = Rc::clone(&self.shared);
        drop(self);
        Ok((outcome, Rc::into_inner(shared).map(|shared| shared.stacks)))
    }

    /// Waits for the init's end, which comes after the end of all below it (pid_namespaces(7)).
    fn wait(&mut self, options: libc::c_int) -> bool {
        if self.ended {
            return true;
        }
        let mut info = std::mem::MaybeUninit::<libc::siginfo_t>::zeroed();
        let pidfd = libc::id_t::try_from(self.init.as_raw_fd()).unwrap_or_default();
        let options = options | libc::WEXITED;
        // SAFETY: `info` is good to be written to and outlives the call.
        let result = unsafe { libc::waitid(libc::P_PIDFD, pidfd, info.as_mut_ptr(), options) };
        // SAFETY: the memory is zeroed, which is a valid value, and what the kernel writes is one as well.
        let info = unsafe { info.assume_init() };
        // SAFETY: waitid(2) fills in this part, or leaves it zero when nobody has ended.
        let pid = unsafe { info.si_pid() };
        // Without such a child it has ended, too: somebody wants no children reported.
        let no_child = result < 0 && io::Error::last_os_error().raw_os_error() == Some(libc::ECHILD);
        self.ended = no_child || (result == 0 && pid != 0);
        self.ended
    }
}

impl Drop for Launched {
    fn drop(&mut self) {
        // Its memory must not go before it has.
        while !self.ended {
            send(&self.init, libc::SIGKILL);
            self.wait(0);
        }
    }
}

/// Sends a signal; one that has ended in the meantime needs none.
fn send(process: &OwnedFd, signal: i32) {
    let nothing = ptr::null::<libc::siginfo_t>();
    // SAFETY: the call takes a descriptor, which is open, two numbers and no details.
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
            // By its user or for want of memory: it never ends without a word otherwise.
            false => Outcome::Killed,
        }
    }
}

// From here on: what runs in memory that is shared. Nothing may be allocated, dropped, locked or unwound.

/// The init of a command: process 1 of its pid namespace, if it has one.
unsafe extern "C" fn run_init(argument: *mut c_void) -> ! {
    // SAFETY: it is the `Shared` that `start` passed, which lives until this process has ended, and of which
    // only atomic parts are changed.
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
    // SAFETY: nobody else runs on that stack, and it lives as long as this process; the new process ends with
    // this one at the latest. `run_command` gets the pointer it wants and keeps to what may be done there.
    let command = unsafe { raw::clone_onto(flags, stack, ptr::null_mut(), run_command, argument) };
    if let Some(errno) = raw::errno(command) {
        shared.record.refuse(Refused { label: shared.process_label, errno });
    }
    if shared.record.is_refused() {
        raw::exit(0);
    }
    let (descriptor, notice) = &shared.notice;
    let notice = [word(*descriptor), notice.as_ptr().expose_provenance(), notice.len(), 0, 0, 0];
    // SAFETY: the bytes are there, as many as are given, and are only read. When nobody listens, the end is near.
    unsafe { raw::call(number(libc::SYS_write), notice) };
    // The command's pipes must not stay open here when it closes them.
    // SAFETY: this process has a table of its own, in which nothing is owned by anybody.
    unsafe { raw::call(number(libc::SYS_close_range), [0, number(i64::from(u32::MAX)), 0, 0, 0, 0]) };
    let status = wait_for(command, shared.maker != 0);
    if shared.maker != 0 {
        end_all();
        reap_all();
    }
    shared.record.end(status);
    raw::exit(0)
}

/// Makes sure, before there is anything to be ended, that the maker lives and that no signal reaches it: whoever may
/// signal it may signal all processes of the user.
fn check_fence(maker: i32) -> Result<(), i32> {
    // SAFETY: the call takes no address.
    let parent = unsafe { raw::call(number(libc::SYS_getppid), [0; 6]) };
    // SAFETY: the call takes no address, and 0 is no signal.
    let answer = unsafe { raw::call(number(libc::SYS_kill), [word(maker), 0, 0, 0, 0, 0]) };
    match raw::errno(answer) {
        Some(libc::EPERM) if parent == word(maker).cast_signed() => Ok(()),
        _ => Err(libc::EPERM),
    }
}

/// Kills every process behind the fence but this one. The kernel lets none of them make another meanwhile.
fn end_all() {
    // SAFETY: the call takes no address; it ends nobody outside the fence, which has been checked.
    unsafe { raw::call(number(libc::SYS_kill), [word(-1), word(libc::SIGKILL), 0, 0, 0, 0]) };
}

/// Waits until no child is left, nor an orphan of one.
fn reap_all() {
    loop {
        // SAFETY: no status is asked for, so nothing is written.
        let ended = unsafe { raw::call(number(libc::SYS_wait4), [word(-1), 0, word(libc::__WALL), 0, 0, 0]) };
        if raw::errno(ended).is_some_and(|errno| errno != libc::EINTR) {
            return;
        }
    }
}

/// Reaps everything, passes signals on, and returns the status with which the command ended.
///
/// All signals are blocked: process 1 would lose them otherwise. Where it ends what is below it, [`END`] has it do so.
fn wait_for(command: isize, ends: bool) -> i32 {
    let every_signal = u64::MAX;
    let group = command.wrapping_neg().cast_unsigned();
    let options = word(libc::WNOHANG | libc::__WALL);
    loop {
        let mut status = 0_i32;
        loop {
            let place = ptr::from_mut(&mut status).expose_provenance();
            // SAFETY: the status is good to be written to and outlives the call.
            let ended = unsafe { raw::call(number(libc::SYS_wait4), [word(-1), place, options, 0, 0, 0]) };
            if ended == command {
                return status;
            }
            if ended <= 0 {
                break;
            }
        }
        let set = ptr::from_ref(&every_signal).expose_provenance();
        let arguments = [set, 0, 0, script::SIGNALS_BYTES, 0, 0];
        // SAFETY: the set is as long as is said and outlives the call; no details are asked for.
        let signal = unsafe { raw::call(number(libc::SYS_rt_sigtimedwait), arguments) };
        if ends && signal == word(END).cast_signed() {
            end_all();
        } else if signal > 0 && signal != word(libc::SIGCHLD).cast_signed() {
            // The command's group has its number. It may have ended just now, which the next round finds.
            // SAFETY: the call takes no address.
            unsafe { raw::call(number(libc::SYS_kill), [group, signal.cast_unsigned(), 0, 0, 0, 0]) };
        }
    }
}

/// The command, until it replaces itself.
unsafe extern "C" fn run_command(argument: *mut c_void) -> ! {
    // SAFETY: as in `run_init`, which passed it on.
    let shared = unsafe { &*argument.cast::<Shared>() };
    let refused = match shared.command.perform() {
        Ok(()) => Refused { label: shared.exec_label, errno: replace(shared) },
        Err(refused) => refused,
    };
    shared.record.refuse(refused);
    raw::exit(127)
}

/// Tries the candidates in their order; one that may not be executed is remembered, as in execvp(3).
fn replace(shared: &Shared) -> i32 {
    let mut reason = libc::ENOENT;
    let (argv, env) = (shared.argv.address(), shared.env.address());
    for candidate in &shared.candidates {
        let arguments = [candidate.as_ptr().expose_provenance(), argv, env, 0, 0, 0];
        // SAFETY: all three are NUL-terminated strings or null-terminated vectors of such strings, which live
        // until this process has replaced itself or ended.
        let answer = unsafe { raw::call(number(libc::SYS_execve), arguments) };
        match raw::errno(answer) {
            Some(libc::ENOENT | libc::ENOTDIR) => {}
            Some(libc::EACCES) => reason = libc::EACCES,
            other => return other.unwrap_or(libc::EINVAL),
        }
    }
    reason
}

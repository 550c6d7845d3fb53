//! The threads that receive calls and answer them.

use std::cell::Cell;
use std::num::NonZero;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use portcullis_sys::memory::read_string;
use portcullis_sys::notify::{Answer, Call, Listener};
use portcullis_sys::process::{exit_now, own_file_attributes};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::Mode;
use rustix::io::{Errno, retry_on_intr};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use super::asking::{Question, Yes};
use super::calls::{At, Syscall};
use super::listener_pool::Hearing;
use super::process::Caller;
use super::{Broker, act, connect};

/// With fewer, calls would wait for one another while a command keeps all processors busy.
const THREADS_AT_LEAST: usize = 4;
/// Per processor: half of the threads wait for a disk.
const THREADS_PER_PROCESSOR: usize = 2;
/// Only the used part takes memory.
const STACK_BYTES: usize = 1024 * 1024;
/// The kernel's limit for paths, including the NUL.
const PATH_BYTES: usize = 4096;

/// The end of a call.
pub(super) enum Outcome {
    /// With this answer.
    Answer(Answer),
    /// It has been answered, or the caller has ended.
    Done,
}

/// Why a call is not carried out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Stop {
    /// A refusal or a kernel error; the caller gets the errno.
    Error(Errno),
    /// It must be tried again while holding the name order exclusively.
    NotAlone,
    /// The user must be asked.
    Ask(Box<Question>),
    /// A rule refuses it, which is reported to the host.
    Refused(Box<Refusal>),
}

/// A refusal by a rule.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct Refusal {
    pub(super) attempt: crate::Attempt,
    pub(super) path: PathBuf,
    /// The rule over names; empty for the session's own rules.
    pub(super) rule: &'static str,
}

impl From<Errno> for Stop {
    fn from(error: Errno) -> Self {
        Self::Error(error)
    }
}

pub(super) type Attempt = Result<Outcome, Stop>;

impl Outcome {
    pub(super) const LEFT_TO_THE_KERNEL: Self = Self::Answer(Answer::Continue);
    pub(super) const SUCCESS: Self = Self::Answer(Answer::Value(0));
}

/// A thread of the broker.
pub(super) struct Worker {
    pub(super) broker: &'static Broker,
    /// This thread's current umask.
    mask: Cell<u32>,
    /// Whether this call holds the name order exclusively: no other thread, sandbox or tool of the host uses names.
    alone: Cell<bool>,
}

/// A call with its caller.
#[derive(Clone)]
pub(super) struct PendingCall {
    pub(super) call: Call,
    pub(super) caller: Arc<Caller>,
    /// The operations that the user has approved.
    pub(super) allowed: Vec<Yes>,
}

/// Answers calls as long as any can arrive; calls `ready` when it starts to.
pub(super) fn run(
    broker: &'static Broker,
    ready: impl FnOnce() -> std::io::Result<()>,
) -> std::io::Result<()> {
    raise_limit()?;
    start(move || broker.asking.hear(&begin(broker)))?;
    // Calls that arrive while the other threads start wait for them; the keeper need not.
    ready()?;
    // Lives as long as the process, like the broker.
    let hearing: &'static Hearing = Box::leak(Box::default());
    for _ in 1..THREADS_AT_LEAST.max(THREADS_PER_PROCESSOR * processors()) {
        // With fewer threads it is slower, and no less safe.
        drop(start(move || serve(broker, hearing)));
    }
    serve(broker, hearing)
}

fn processors() -> usize {
    std::thread::available_parallelism().map_or(1, NonZero::get)
}

/// Returns how many threads a broker has at most.
pub(crate) fn threads() -> u64 {
    // Threads that receive answers, and one that watches the keeper.
    let others = 4;
    let serving = THREADS_AT_LEAST.max(THREADS_PER_PROCESSOR * processors());
    u64::try_from(serving).unwrap_or(u64::MAX).saturating_add(others)
}

/// Starts a thread of the broker.
pub(super) fn start(work: impl FnOnce() + Send + 'static) -> std::io::Result<()> {
    // A small stack suffices, except for walks into a moving directory, which are a few levels deep.
    drop(std::thread::Builder::new().stack_size(STACK_BYTES).spawn(work)?);
    Ok(())
}

/// Raises the limit of descriptors: callers and their directories are kept open, even if the session may have few.
fn raise_limit() -> std::io::Result<()> {
    let Rlimit { maximum, .. } = getrlimit(Resource::Nofile);
    Ok(setrlimit(Resource::Nofile, Rlimit { current: maximum, maximum })?)
}

/// Ends the process when a thread panics: when the broker ends, so does the sandbox.
struct EndsAll;

impl Drop for EndsAll {
    fn drop(&mut self) {
        exit_now(1);
    }
}

/// Prepares the calling thread for carrying out calls.
fn begin(broker: &'static Broker) -> Worker {
    if broker.one_at_a_time.is_none() && own_file_attributes().is_err() {
        exit_now(1);
    }
    rustix::process::umask(Mode::empty());
    Worker { broker, mask: Cell::new(0), alone: Cell::new(false) }
}

fn serve(broker: &'static Broker, hearing: &Hearing) -> ! {
    let _ends_all = EndsAll;
    let worker = begin(broker);
    loop {
        match hearing.hear(|| broker.listener.receive()) {
            Ok(call) => worker.take(&PendingCall {
                call,
                caller: broker.processes.caller(call.thread),
                allowed: Vec::new(),
            }),
            // Since Linux 6.11 receiving fails at once, and forever, when no calls can arrive any more.
            Err(error) if error.raw_os_error() == Some(libc::ENOENT) && is_over(&broker.listener) => {
                exit_now(0)
            }
            // The caller ended before its call was received, or a signal arrived.
            Err(error) if matches!(error.raw_os_error(), Some(libc::ENOENT | libc::EINTR)) => {}
            Err(_) => exit_now(1),
        }
    }
}

/// Without the lock the call changes nothing.
fn no_lock(error: std::io::Error) -> Errno {
    Errno::from_io_error(&error).unwrap_or(Errno::NOLCK)
}

/// Returns true if all processes under the filter have ended, the keeper included.
fn is_over(listener: &Listener) -> bool {
    let now = Timespec { tv_sec: 0, tv_nsec: 0 };
    let mut end = [PollFd::new(listener, PollFlags::empty())];
    let polled = retry_on_intr(|| poll(&mut end, Some(&now)));
    polled.is_ok() && end.iter().any(|end| end.revents().contains(PollFlags::HUP))
}

impl Worker {
    pub(super) fn take(&self, pending: &PendingCall) {
        let answer = match self.carry_out(pending) {
            Ok(Outcome::Answer(answer)) => answer,
            Ok(Outcome::Done) => return,
            Err(Stop::Error(error)) => Answer::Error(error.raw_os_error()),
            Err(Stop::Refused(refusal)) => {
                self.broker.asking.tell(&self.broker.processes, pending, *refusal);
                Answer::Error(libc::EACCES)
            }
            // The retry already held the lock exclusively.
            Err(Stop::NotAlone) => Answer::Error(libc::EDEADLK),
            Err(Stop::Ask(question)) => match self.broker.asking.ask(self.broker, pending, &question) {
                Some(()) => return,
                None => Answer::Error(libc::EACCES),
            },
        };
        // This fails if the caller has ended and needs no answer.
        drop(self.broker.listener.answer(pending.call.id, answer));
    }

    fn carry_out(&self, pending: &PendingCall) -> Attempt {
        let Some(kind) = Syscall::of(&pending.call) else { return Err(Errno::NOSYS.into()) };
        // Calls of the keeper are not judged, and it must not be inspected.
        if pending.call.thread == self.broker.processes.keeper() {
            return Ok(Outcome::LEFT_TO_THE_KERNEL);
        }
        if let Syscall::Connect { socket, address, length } = kind {
            return Ok(connect::hold(self.broker, pending, socket, address, length));
        }
        // Executing takes as long as loading the program, and changes no name.
        if let Syscall::Execute { at, flags } = kind {
            return act::execute(self, pending, at, flags);
        }
        let _the_only_one = self.broker.one_at_a_time.as_ref().map(|one| one.lock());
        if self.broker.has_staged() {
            self.broker.settle();
        }
        // The target of a path must stay the same until it has been judged and used, and nothing may appear in a moving
        // directory after it was examined. The lock is never poisoned: a panic ends the process.
        if !matches!(kind, Syscall::Rename { .. }) {
            let _others_too = self.broker.order.shared().map_err(no_lock)?;
            self.alone.set(false);
            match self.route(pending, kind) {
                Err(Stop::NotAlone) => {}
                attempt => return attempt,
            }
        }
        let _nobody_else = self.broker.order.alone().map_err(no_lock)?;
        self.alone.set(true);
        self.route(pending, kind)
    }

    /// Checks that this call holds the name order exclusively; otherwise it is retried so.
    pub(super) fn must_be_alone(&self) -> Result<(), Stop> {
        if self.alone.get() { Ok(()) } else { Err(Stop::NotAlone) }
    }

    fn route(&self, pending: &PendingCall, kind: Syscall) -> Attempt {
        match kind {
            Syscall::Open { at, flags, mode } => act::open(self, pending, at, flags, mode),
            Syscall::MakeDirectory { at, mode } => act::make_directory(self, pending, at, mode),
            Syscall::MakeNode { at, mode } => act::make_node(self, pending, at, mode),
            Syscall::MakeLink { target, at } => act::make_link(self, pending, target, at),
            Syscall::Link { from, to, flags } => act::link(self, pending, from, to, flags),
            Syscall::Rename { from, to, flags } => act::rename(self, pending, from, to, flags),
            Syscall::Remove { at, flags } => act::remove(self, pending, at, flags),
            Syscall::Truncate { at, length } => act::truncate(self, pending, at, length),
            Syscall::ChangeMode { target, mode } => act::change_mode(self, pending, target, mode),
            Syscall::ChangeOwner { target, user, group } => {
                act::change_owner(self, pending, target, user, group)
            }
            Syscall::ChangeTimes { target, times } => act::change_times(self, pending, target, times),
            Syscall::Bind { socket, address, length } => act::bind(self, pending, socket, address, length),
            // Has been carried out before.
            Syscall::Execute { .. } => Err(Errno::NOSYS.into()),
            // Concerns no name, and was dispatched before.
            Syscall::Connect { .. } => Ok(Outcome::LEFT_TO_THE_KERNEL),
            Syscall::ChangeMask => {
                self.broker.processes.masks_change();
                Ok(Outcome::LEFT_TO_THE_KERNEL)
            }
        }
    }

    /// Sets this thread's umask to the caller's, so that new files get the modes that the caller would give them.
    pub(super) fn take_mask_of(&self, pending: &PendingCall) {
        let mask = self.broker.processes.mask(&pending.caller);
        if self.mask.replace(mask) != mask || self.broker.one_at_a_time.is_some() {
            rustix::process::umask(Mode::from_raw_mode(mask));
        }
    }
}

impl PendingCall {
    /// Returns true if the user has approved this operation on this name, with this text, for this rule.
    pub(super) fn is_allowed(
        &self,
        doing: (crate::Attempt, &crate::Deed),
        path: &Path,
        rule: &str,
        text: Option<&[u8]>,
    ) -> bool {
        self.allowed.iter().any(|yes| yes.covers(doing, path, rule, text))
    }

    /// Reads a path from the caller's memory. It may change there at any time; only what was read counts.
    pub(super) fn path(&self, at: At) -> Result<std::ffi::CString, Errno> {
        self.text(at.text)
    }

    pub(super) fn text(&self, address: u64) -> Result<std::ffi::CString, Errno> {
        read_string(self.call.thread, address, PATH_BYTES).map_err(|error| match error.raw_os_error() {
            Some(libc::ENAMETOOLONG) => Errno::NAMETOOLONG,
            Some(libc::EPERM | libc::EACCES) => Errno::ACCESS,
            _ => Errno::FAULT,
        })
    }

    /// Returns true if the caller is still waiting, so that all memory read so far was its own.
    pub(super) fn is_waiting(&self, broker: &Broker) -> bool {
        broker.listener.is_waiting(self.call.id)
    }
}

//! The threads that take calls and answer them.

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
use super::calls::{At, Kind};
use super::hearing::Hearing;
use super::process::Caller;
use super::{Broker, act, connect};

/// Fewer would wait for one another while a command keeps all processors busy.
const THREADS_AT_LEAST: usize = 4;
/// Of each processor: half of them wait for a disk.
const THREADS_PER_PROCESSOR: usize = 2;
/// Only what is used of it takes memory.
const STACK_BYTES: usize = 1024 * 1024;
/// The kernel takes no longer path, the NUL counted.
const PATH_BYTES: usize = 4096;

/// How a call ends.
pub(super) enum Outcome {
    /// By this answer.
    Answer(Answer),
    /// It has been answered, or the caller has gone.
    Done,
}

/// Why a call is not carried out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Stop {
    /// A refusal, or an error of the kernel's; the caller gets the number.
    Error(Errno),
    /// It is to be tried again while nobody else does anything with names.
    NotAlone,
    /// The user is to be asked.
    Ask(Box<Question>),
    /// A rule refuses it, of which the host is told.
    Refused(Box<Refusal>),
}

/// What a rule refuses.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct Refusal {
    pub(super) attempt: crate::Attempt,
    pub(super) path: PathBuf,
    /// The rule on names, empty for the session's own rules.
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

/// One thread of the broker.
pub(super) struct Worker {
    pub(super) broker: &'static Broker,
    /// The mask that new files are made with by this thread.
    mask: Cell<u32>,
    /// Whether nobody else does anything with names: no other thread, no other sandbox, no tool of the host.
    alone: Cell<bool>,
}

/// One call, and who made it.
#[derive(Clone)]
pub(super) struct Turn {
    pub(super) call: Call,
    pub(super) caller: Arc<Caller>,
    /// What the user has said yes to.
    pub(super) allowed: Vec<Yes>,
}

/// Answers calls for as long as there are any to come; says so by `ready`.
pub(super) fn run(
    broker: &'static Broker,
    ready: impl FnOnce() -> std::io::Result<()>,
) -> std::io::Result<()> {
    raise_limit()?;
    start(move || broker.asking.hear(&begin(broker)))?;
    // What comes while the others are started waits for them, and the keeper need not.
    ready()?;
    // As the broker, it is there for as long as the process.
    let hearing: &'static Hearing = Box::leak(Box::default());
    for _ in 1..THREADS_AT_LEAST.max(THREADS_PER_PROCESSOR * processors()) {
        // Fewer are slower, and no less safe.
        drop(start(move || serve(broker, hearing)));
    }
    serve(broker, hearing)
}

fn processors() -> usize {
    std::thread::available_parallelism().map_or(1, NonZero::get)
}

/// Returns how many threads a broker has at most.
pub(crate) fn threads() -> u64 {
    // Those that hear of answers, and one that looks after the keeper, besides.
    let others = 4;
    let serving = THREADS_AT_LEAST.max(THREADS_PER_PROCESSOR * processors());
    u64::try_from(serving).unwrap_or(u64::MAX).saturating_add(others)
}

/// Starts a thread of the broker's.
pub(super) fn start(work: impl FnOnce() + Send + 'static) -> std::io::Result<()> {
    // Small: the calls go a few levels deep, but into a directory that moves.
    drop(std::thread::Builder::new().stack_size(STACK_BYTES).spawn(work)?);
    Ok(())
}

/// Callers and their directories are kept open, also where a session may have few descriptors.
fn raise_limit() -> std::io::Result<()> {
    let Rlimit { maximum, .. } = getrlimit(Resource::Nofile);
    Ok(setrlimit(Resource::Nofile, Rlimit { current: maximum, maximum })?)
}

/// A broker that has lost a thread to a fault must not go on: when it ends, everything does.
struct EndsAll;

impl Drop for EndsAll {
    fn drop(&mut self) {
        exit_now(1);
    }
}

/// Makes the calling thread one that can carry out calls.
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
            Ok(call) => {
                worker.take(&Turn { call, caller: broker.processes.caller(call.thread), allowed: Vec::new() })
            }
            // Since Linux 6.11 it says at once, and for ever, that there is nothing to come.
            Err(error) if error.raw_os_error() == Some(libc::ENOENT) && is_over(&broker.listener) => {
                exit_now(0)
            }
            // The caller has gone before it was heard, or a signal came.
            Err(error) if matches!(error.raw_os_error(), Some(libc::ENOENT | libc::EINTR)) => {}
            Err(_) => exit_now(1),
        }
    }
}

/// Without the lock nothing is changed.
fn no_lock(error: std::io::Error) -> Errno {
    Errno::from_io_error(&error).unwrap_or(Errno::NOLCK)
}

/// Whether everybody has gone whose calls are handed over, the keeper too.
fn is_over(listener: &Listener) -> bool {
    let now = Timespec { tv_sec: 0, tv_nsec: 0 };
    let mut end = [PollFd::new(listener, PollFlags::empty())];
    let polled = retry_on_intr(|| poll(&mut end, Some(&now)));
    polled.is_ok() && end.iter().any(|end| end.revents().contains(PollFlags::HUP))
}

impl Worker {
    pub(super) fn take(&self, turn: &Turn) {
        let answer = match self.carry_out(turn) {
            Ok(Outcome::Answer(answer)) => answer,
            Ok(Outcome::Done) => return,
            Err(Stop::Error(error)) => Answer::Error(error.raw_os_error()),
            Err(Stop::Refused(refusal)) => {
                self.broker.asking.tell(&self.broker.processes, turn, *refusal);
                Answer::Error(libc::EACCES)
            }
            // Nobody else was there.
            Err(Stop::NotAlone) => Answer::Error(libc::EDEADLK),
            Err(Stop::Ask(question)) => match self.broker.asking.ask(self.broker, turn, &question) {
                Some(()) => return,
                None => Answer::Error(libc::EACCES),
            },
        };
        // It fails when the caller has gone, who needs no answer then.
        drop(self.broker.listener.answer(turn.call.id, answer));
    }

    fn carry_out(&self, turn: &Turn) -> Attempt {
        let Some(kind) = Kind::of(&turn.call) else { return Err(Errno::NOSYS.into()) };
        // The keeper, of which nothing is to be judged, and which nobody looks into.
        if turn.call.thread == self.broker.processes.keeper() {
            return Ok(Outcome::LEFT_TO_THE_KERNEL);
        }
        if let Kind::Connect { socket, address, length } = kind {
            return Ok(connect::hold(self.broker, turn, socket, address, length));
        }
        // It lasts as long as the program is loaded, and changes no name.
        if let Kind::Execute { at, flags } = kind {
            return act::execute(self, turn, at, flags);
        }
        let _the_only_one = self.broker.one_at_a_time.as_ref().map(|one| one.lock());
        if self.broker.has_staged() {
            self.broker.settle();
        }
        // What a path leads to must stay the same until it has been judged and used, and nothing may appear in a
        // directory that moves after it has been looked at. Nobody has panicked with the lock and gone on.
        if !matches!(kind, Kind::Rename { .. }) {
            let _others_too = self.broker.order.shared().map_err(no_lock)?;
            self.alone.set(false);
            match self.route(turn, kind) {
                Err(Stop::NotAlone) => {}
                attempt => return attempt,
            }
        }
        let _nobody_else = self.broker.order.alone().map_err(no_lock)?;
        self.alone.set(true);
        self.route(turn, kind)
    }

    /// Makes sure that nobody else does anything with names until this call is done.
    pub(super) fn must_be_alone(&self) -> Result<(), Stop> {
        if self.alone.get() { Ok(()) } else { Err(Stop::NotAlone) }
    }

    fn route(&self, turn: &Turn, kind: Kind) -> Attempt {
        match kind {
            Kind::Open { at, flags, mode } => act::open(self, turn, at, flags, mode),
            Kind::MakeDirectory { at, mode } => act::make_directory(self, turn, at, mode),
            Kind::MakeNode { at, mode } => act::make_node(self, turn, at, mode),
            Kind::MakeLink { target, at } => act::make_link(self, turn, target, at),
            Kind::Link { from, to, flags } => act::link(self, turn, from, to, flags),
            Kind::Rename { from, to, flags } => act::rename(self, turn, from, to, flags),
            Kind::Remove { at, flags } => act::remove(self, turn, at, flags),
            Kind::Truncate { at, length } => act::truncate(self, turn, at, length),
            Kind::ChangeMode { target, mode } => act::change_mode(self, turn, target, mode),
            Kind::ChangeOwner { target, user, group } => act::change_owner(self, turn, target, user, group),
            Kind::ChangeTimes { target, times } => act::change_times(self, turn, target, times),
            Kind::Bind { socket, address, length } => act::bind(self, turn, socket, address, length),
            // Has been carried out before.
            Kind::Execute { .. } => Err(Errno::NOSYS.into()),
            // Has to do with no name, and was routed before.
            Kind::Connect { .. } => Ok(Outcome::LEFT_TO_THE_KERNEL),
            Kind::ChangeMask => {
                self.broker.processes.masks_change();
                Ok(Outcome::LEFT_TO_THE_KERNEL)
            }
        }
    }

    /// Has what this thread makes get the modes that it would get if the caller made it.
    pub(super) fn take_mask_of(&self, turn: &Turn) {
        let mask = self.broker.processes.mask(&turn.caller);
        if self.mask.replace(mask) != mask || self.broker.one_at_a_time.is_some() {
            rustix::process::umask(Mode::from_raw_mode(mask));
        }
    }
}

impl Turn {
    /// Whether the user has said yes to this being done to this name, with this text, as far as a rule is concerned.
    pub(super) fn is_allowed(
        &self,
        doing: (crate::Attempt, &crate::Deed),
        path: &Path,
        rule: &str,
        text: Option<&[u8]>,
    ) -> bool {
        self.allowed.iter().any(|yes| yes.covers(doing, path, rule, text))
    }

    /// Reads a path from the caller's memory. It may change there the next moment; what counts is what is read.
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

    /// Whether all that has been looked at so far was the caller's: it has been waiting all the time.
    pub(super) fn is_waiting(&self, broker: &Broker) -> bool {
        broker.listener.is_waiting(self.call.id)
    }
}

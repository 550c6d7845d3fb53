//! The broker: a process that performs, for commands, every call that creates, changes or removes a name where rules
//! over names can match.
//!
//! Landlock refuses those calls to commands in such places, so a call that the broker misses fails. The broker resolves
//! the name of a call itself, consults [`Names`] about it, and acts on the directory that it has opened: no name is
//! checked and then looked up again. Where no rule applies, the call is returned to the kernel, which enforces mounts
//! and Landlock as it would without a broker.
//!
//! It also makes connect(2) wait for a verdict of the host. It does not make the connection; it lets the kernel read
//! the caller's memory again. Whatever the address is by then, the connection ends at the host's listeners and is
//! judged by the address that the kernel used.
//!
//! Without mounts the broker itself knows the access of each place: see `Broker::places`. There it also changes modes
//! and times of files, for which Landlock has no rules, and it is the parent of the keeper, not its child.
//!
//! It is a child of the keeper, in the session's namespaces, without Landlock rules or a filter, and its only
//! capability is to inspect the session's own processes. When it ends, the keeper ends.

mod act;
mod asking;
mod calls;
mod connect;
mod content;
mod deferred_writes;
mod directories;
mod identity;
mod judge;
mod known;
mod listener_pool;
mod process;
mod record;
mod removed;
mod resolve;
mod resolve_for_read;
mod user_places;
mod worker;

use std::collections::HashSet;
use std::os::fd::{AsFd, IntoRawFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::sync::Mutex;

use portcullis_exec_surface::UserLink;
use portcullis_sys::descriptor;
use portcullis_sys::memory::SharedNumbers;
use portcullis_sys::notify::Listener;
use portcullis_sys::process::{CloneFlags, Cloned, SingleThread, clone, exit_now, own_file_attributes};
use rustix::event::{PollFd, PollFlags, poll};
use rustix::fs::{CWD, Mode, OFlags, openat};
use rustix::process::{Pid, PidfdFlags, pidfd_open};

use crate::layer::places::Places;
use crate::layer::{During, Failure, privileges};
use crate::names::{FileId, Names, Reads};
use crate::order::{Lock, OrderFiles};
use crate::{Stage, transport};
use asking::Asking;
use connect::Connecting;
use deferred_writes::Staging;
use directories::Linked;
use known::Known;
use process::Processes;
use record::Record;
use removed::Removed;
pub(crate) use worker::threads;

/// The pid of the keeper in its own pid namespace, if it has one.
const FIRST_PROCESS: i32 = 1;
/// The session's temporary directory; it is removed with the session, so the user's programs never use its files.
const TEMP: &str = "/tmp";

/// The keeper's handle to its broker.
pub(crate) struct Handle {
    /// The broker's pidfd; readable when the broker has ended.
    pub(crate) process: OwnedFd,
    channel: OwnedFd,
}

/// The state of a broker.
struct Broker {
    listener: Listener,
    names: Box<dyn Names>,
    /// Whether reading is judged as well.
    reads: Reads,
    /// Files that must not be read by any name.
    kept_back: HashSet<FileId>,
    /// Writable places in which names are judged, as commands see them.
    judged: Vec<PathBuf>,
    /// The access of each place, if no mounts enforce it.
    places: Option<Places>,
    /// The places among them in which names matter to the user's other programs.
    roots: Vec<PathBuf>,
    /// The user's home directories.
    homes: Vec<PathBuf>,
    /// Ids of disabled rules on such names.
    lifted: Vec<String>,
    /// Links of the user that lead to sensitive names.
    links: Vec<UserLink>,
    staging: Staging,
    asking: Asking,
    /// `None` if connections do not wait here.
    connecting: Option<Connecting>,
    processes: Processes,
    known: Known,
    removed: Removed,
    linked: Linked,
    /// Locked during every call, if threads cannot have umasks of their own (CLONE_FS): some container filters refuse
    /// unshare(2) for that together with namespaces. It is never poisoned: a panic ends the process.
    one_at_a_time: Option<Mutex<()>>,
    /// Held exclusively while something is renamed, and shared during any other operation on a name.
    order: Lock,
}

/// The configuration of a broker.
pub(crate) struct Orders {
    pub(crate) names: Box<dyn Names>,
    /// Whether reading is judged as well.
    pub(crate) reads: Reads,
    /// Files that must not be read by any name.
    pub(crate) kept_back: Vec<FileId>,
    /// Writable places in which names are judged, as commands see them.
    pub(crate) judged: Vec<PathBuf>,
    /// The project.
    pub(crate) workspace: PathBuf,
    /// The user's home directories.
    pub(crate) homes: Vec<PathBuf>,
    /// The access of each place, if no mounts enforce it.
    pub(crate) places: Option<Places>,
    /// Ids of disabled rules.
    pub(crate) lifted: Vec<String>,
    /// Links of the user that lead to sensitive names.
    pub(crate) links: Vec<UserLink>,
    /// Targets of the user's dangling links.
    pub(crate) leading_nowhere: Vec<PathBuf>,
    /// The number of the session in the record of the name order.
    pub(crate) session: u64,
    /// The sockets to the host: for waiting calls on names, and for those that connect.
    pub(crate) lines: [OwnedFd; 2],
    /// Loopback ports that stand for the host's own; `None` if connections do not wait here.
    pub(crate) host_ports: Option<Vec<u16>>,
}

/// Starts the broker; it waits until it receives its listener.
pub(crate) fn start(
    single: &SingleThread,
    orders: Orders,
    commands: SharedNumbers,
) -> Result<(Handle, SharedNumbers), Failure> {
    let (ours, theirs) = transport::pair().during(Stage::Broker)?;
    match clone(single, CloneFlags::NONE).during(Stage::Broker)? {
        Cloned::Parent { pidfd, .. } => Ok((Handle { process: pidfd, channel: ours }, commands)),
        Cloned::Child => {
            // If anything fails here: without a broker the keeper ends, and the whole sandbox with it.
            drop(run(single, theirs, orders, commands, None));
            exit_now(1)
        }
    }
}

/// Runs as the broker, without namespaces, until the keeper ends; returns only on an error.
pub(crate) fn be(
    single: &SingleThread,
    channel: OwnedFd,
    orders: Orders,
    commands: SharedNumbers,
    keeper: Pid,
) -> std::io::Result<()> {
    run(single, channel, orders, commands, Some(keeper))
}

impl Handle {
    /// Makes a handle to a broker that is already running.
    pub(crate) fn new(process: OwnedFd, channel: OwnedFd) -> Self {
        Self { process, channel }
    }

    /// Sends the broker its listener and the files of the name order, and waits until it is ready.
    pub(crate) fn begin(&self, listener: &OwnedFd, order: Option<OrderFiles>) -> Result<(), Failure> {
        let order = order.map(OrderFiles::into_list);
        let mut given = vec![listener.as_fd()];
        given.extend(order.iter().flatten().map(AsFd::as_fd));
        transport::send(&self.channel, &[], &given).during(Stage::Broker)?;
        match transport::receive(&self.channel).during(Stage::Broker)? {
            Some(_ready) => Ok(()),
            None => Err(std::io::Error::from(std::io::ErrorKind::BrokenPipe)).during(Stage::Broker),
        }
    }
}

fn run(
    single: &SingleThread,
    channel: OwnedFd,
    orders: Orders,
    commands: SharedNumbers,
    child: Option<Pid>,
) -> std::io::Result<()> {
    let Orders { names, reads, kept_back, judged, workspace, homes, places, lifted, .. } = orders;
    let Orders { links, leading_nowhere, session, lines: [asks, connects], host_ports, .. } = orders;
    let [channel, asks, connects] = keep_only(single, [channel, asks, connects])?;
    match child {
        None => privileges::enforce_on_broker()?,
        // The keeper has dropped its privileges itself. Its pid is not reused as long as this process has not reaped
        // it.
        Some(keeper) => end_with(pidfd_open(keeper, PidfdFlags::empty())?)?,
    }
    let one_at_a_time = (child.is_some() && own_file_attributes().is_err()).then(Mutex::default);
    let keeper = child.map_or(FIRST_PROCESS, |keeper| keeper.as_raw_nonzero().get());
    let processes = Processes::new(commands, keeper)?;
    let Some(message) = transport::receive(&channel)? else { return Ok(()) };
    let mut given = message.descriptors.into_iter();
    let Some(listener) = given.next() else { return Ok(()) };
    let (order, record) = match OrderFiles::from_list(given.collect())? {
        None => (None, None),
        Some(OrderFiles { names, queue, record }) => {
            (Some([names, queue]), Some(Record::open(record, session)?))
        }
    };
    let order = Lock::of(order);
    let listener = Listener::new(listener);
    // Only a performance option: without it (before Linux 6.6) notifications cost more.
    drop(listener.wake_synchronously());
    let connecting = host_ports.map(|ports| Connecting::begin(connects, ports, &listener)).transpose()?;
    // Lives as long as the process, so that all threads can use it.
    let broker: &'static Broker = Box::leak(Box::new(Broker {
        listener,
        names,
        reads,
        kept_back: kept_back.into_iter().collect(),
        roots: roots(workspace, &judged),
        judged,
        homes,
        places,
        lifted,
        links,
        staging: Staging::default(),
        asking: Asking::new(asks),
        connecting,
        processes,
        known: Known::new(record),
        removed: Removed::default(),
        linked: Linked::default(),
        one_at_a_time,
        order,
    }));
    broker.note_leading_nowhere(&leading_nowhere)?;
    worker::run(broker, || transport::send(&channel, &[], &[]))
}

/// Returns the directories in which names matter to the user's other programs: the project, even if only parts of it
/// are writable, and the other writable places.
fn roots(workspace: PathBuf, judged: &[PathBuf]) -> Vec<PathBuf> {
    let others = judged.iter().filter(|place| **place != workspace && *place != Path::new(TEMP)).cloned();
    let others = others.collect::<Vec<_>>();
    std::iter::once(workspace).chain(others).collect()
}

/// Ends this process when its keeper ends.
fn end_with(keeper: OwnedFd) -> std::io::Result<()> {
    worker::start(move || {
        let mut ended = [PollFd::new(&keeper, PollFlags::IN)];
        // Any failure to poll counts as ended.
        let _ended = rustix::io::retry_on_intr(|| poll(&mut ended, None));
        exit_now(0)
    })
}

/// Closes the keeper's file descriptors: none of them may stay open here when it ends.
fn keep_only(single: &SingleThread, kept: [OwnedFd; 3]) -> std::io::Result<[OwnedFd; 3]> {
    let [first, second, third] = kept;
    rustix::stdio::dup2_stdin(&first)?;
    rustix::stdio::dup2_stdout(&second)?;
    rustix::stdio::dup2_stderr(&third)?;
    // They are closed below by number, together with those that the keeper's code owns, to which this process never
    // returns.
    let _numbers = (first.into_raw_fd(), second.into_raw_fd(), third.into_raw_fd());
    descriptor::close_inherited(single, 3)?;
    let first = rustix::io::fcntl_dupfd_cloexec(rustix::stdio::stdin(), 3)?;
    let second = rustix::io::fcntl_dupfd_cloexec(rustix::stdio::stdout(), 3)?;
    let third = rustix::io::fcntl_dupfd_cloexec(rustix::stdio::stderr(), 3)?;
    let nothing = openat(CWD, "/dev/null", OFlags::RDWR | OFlags::CLOEXEC, Mode::empty())?;
    rustix::stdio::dup2_stdin(&nothing)?;
    rustix::stdio::dup2_stdout(&nothing)?;
    rustix::stdio::dup2_stderr(&nothing)?;
    Ok([first, second, third])
}

//! The broker: the process that carries out, for commands, every call that makes, changes or removes a name
//! where rules over names can match.
//!
//! Landlock refuses those calls to commands in such places, so what the broker misses does not happen. It finds
//! out itself which name a call means, asks the [`Names`] about that name, and acts on the directory that it has
//! opened: nothing is checked by one name and used by another. Where the rules have no say, the call is given
//! back to the kernel, which holds it to mounts and Landlock as it would without a broker.
//!
//! It also has connect(2) wait until the host has a verdict. It does not make the connection, and lets the kernel
//! look at the caller's memory again: whatever the address is by then, the connection ends at the host's listeners,
//! where it is judged by the address that the kernel used.
//!
//! Where there are no mounts, the broker itself knows what they would say: see `Broker::access`. There it also changes
//! modes and times of files, about which Landlock has no rules, and it is the keeper's parent, not its child.
//!
//! It is a child of the keeper, in the session's namespaces, under no Landlock rules and no filter, and holds no
//! capability but that to look into the session's own processes. When it ends, the keeper does.

mod act;
mod asking;
mod calls;
mod connect;
mod content;
mod directories;
mod hearing;
mod identity;
mod judge;
mod known;
mod node;
mod process;
mod record;
mod removed;
mod resolve;
mod staged;
mod user_places;
mod worker;

use std::collections::HashSet;
use std::os::fd::{AsFd, IntoRawFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::sync::Mutex;

use portcullis_names::UserLink;
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
use directories::Linked;
use known::Known;
use process::Processes;
use record::Record;
use removed::Removed;
use staged::Staging;
pub(crate) use worker::threads;

/// The number of the keeper in its own pid namespace, if it has one.
const FIRST_PROCESS: i32 = 1;
/// It goes with the session, so nobody else ever uses what is in it.
const TEMP: &str = "/tmp";

/// What the keeper has of its broker.
pub(crate) struct Handle {
    /// Readable when the broker has ended.
    pub(crate) process: OwnedFd,
    channel: OwnedFd,
}

/// What a broker works with.
struct Broker {
    listener: Listener,
    names: Box<dyn Names>,
    /// Whether reading is judged, too.
    reads: Reads,
    /// Files that are not read by any name.
    kept_back: HashSet<FileId>,
    /// Writable places in which names are judged, as commands see them.
    judged: Vec<PathBuf>,
    /// What is given where, if there are no mounts that see to it.
    places: Option<Places>,
    /// Those of them in which names mean something to the user's other programs.
    roots: Vec<PathBuf>,
    /// The user's home directories.
    homes: Vec<PathBuf>,
    /// Ids of rules on such names that do not hold.
    lifted: Vec<String>,
    /// Links of the user's at names that mean something.
    links: Vec<UserLink>,
    staging: Staging,
    asking: Asking,
    /// Nothing where connections are not held here.
    connecting: Option<Connecting>,
    processes: Processes,
    known: Known,
    removed: Removed,
    linked: Linked,
    /// Held by every call, where threads cannot have masks for new files of their own: filters of containers refuse
    /// that together with namespaces. Nobody has panicked with it and gone on.
    one_at_a_time: Option<Mutex<()>>,
    /// Held alone while something is renamed, and shared while anything else is done with a name.
    order: Lock,
}

/// What a broker is told.
pub(crate) struct Orders {
    pub(crate) names: Box<dyn Names>,
    /// Whether reading is judged, too.
    pub(crate) reads: Reads,
    /// Files that are not read by any name.
    pub(crate) kept_back: Vec<FileId>,
    /// Writable places in which names are judged, as commands see them.
    pub(crate) judged: Vec<PathBuf>,
    /// The project.
    pub(crate) workspace: PathBuf,
    /// The user's home directories.
    pub(crate) homes: Vec<PathBuf>,
    /// What is given where, if there are no mounts that see to it.
    pub(crate) places: Option<Places>,
    /// Ids of rules that do not hold.
    pub(crate) lifted: Vec<String>,
    /// Links of the user's at names that mean something.
    pub(crate) links: Vec<UserLink>,
    /// Where links of the user's lead at which nothing is.
    pub(crate) leading_nowhere: Vec<PathBuf>,
    /// The number of the session in the record of the order of names.
    pub(crate) session: u64,
    /// Where the host is told of calls that wait: of those on names, and of those that connect.
    pub(crate) lines: [OwnedFd; 2],
    /// Ports of the loopback that mean the host's own; nothing where connections are not held here.
    pub(crate) host_ports: Option<Vec<u16>>,
}

/// Starts the broker; it waits until it gets its listener.
pub(crate) fn start(
    single: &SingleThread,
    orders: Orders,
    commands: SharedNumbers,
) -> Result<(Handle, SharedNumbers), Failure> {
    let (ours, theirs) = transport::pair().during(Stage::Broker)?;
    match clone(single, CloneFlags::NONE).during(Stage::Broker)? {
        Cloned::Parent { pidfd, .. } => Ok((Handle { process: pidfd, channel: ours }, commands)),
        Cloned::Child => {
            // Whatever goes wrong in here: without a broker the keeper ends, and everything with it.
            drop(run(single, theirs, orders, commands, None));
            exit_now(1)
        }
    }
}

/// Is the broker, without namespaces, for as long as the keeper lives; it comes back only with an error.
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
    /// Takes hold of a broker that is there already.
    pub(crate) fn new(process: OwnedFd, channel: OwnedFd) -> Self {
        Self { process, channel }
    }

    /// Gives the broker its listener and the files of the order of names, and waits until it is at work.
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
        // It has given up all rights before. Its number is nobody else's as long as this process has not reaped it.
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
    // Before Linux 6.6 hand-overs cost more; nothing else changes.
    drop(listener.wake_synchronously());
    let connecting = host_ports.map(|ports| Connecting::begin(connects, ports, &listener)).transpose()?;
    // For as long as the process lives, and so for all its threads.
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

/// Where names mean something to the user's other programs: the project, also where only parts of it are writable, and
/// other writable places.
fn roots(workspace: PathBuf, judged: &[PathBuf]) -> Vec<PathBuf> {
    let others = judged.iter().filter(|place| **place != workspace && *place != Path::new(TEMP)).cloned();
    let others = others.collect::<Vec<_>>();
    std::iter::once(workspace).chain(others).collect()
}

/// Ends this process with its keeper.
fn end_with(keeper: OwnedFd) -> std::io::Result<()> {
    worker::start(move || {
        let mut ended = [PollFd::new(&keeper, PollFlags::IN)];
        // Whatever keeps us from knowing counts as ended.
        let _ended = rustix::io::retry_on_intr(|| poll(&mut ended, None));
        exit_now(0)
    })
}

/// Closes what belongs to the keeper: nothing of it may stay open here when it ends.
fn keep_only(single: &SingleThread, kept: [OwnedFd; 3]) -> std::io::Result<[OwnedFd; 3]> {
    let [first, second, third] = kept;
    rustix::stdio::dup2_stdin(&first)?;
    rustix::stdio::dup2_stdout(&second)?;
    rustix::stdio::dup2_stderr(&third)?;
    // Closed below by their numbers, as is what the keeper's own code owns, to which this process never returns.
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

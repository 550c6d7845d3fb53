//! Starts the broker, as a child of the keeper or as its parent.

use std::fmt;
use std::io;
use std::os::fd::{AsFd, IntoRawFd, OwnedFd};
use std::path::PathBuf;
use std::sync::Mutex;

use portcullis_changes::{Recorder, Store};
use portcullis_exec_surface::UserLink;
use portcullis_sandbox::{ChangesFiles, FileId, Lock, Names, OrderFiles, Places, Reads};
use portcullis_sys::descriptor;
use portcullis_sys::memory::SharedNumbers;
use portcullis_sys::notify::Listener;
use portcullis_sys::process::{CloneFlags, Cloned, SingleThread, clone, exit_now, own_file_attributes};
use rustix::event::{PollFd, PollFlags, poll};
use rustix::fs::{CWD, Mode, OFlags, openat};
use rustix::process::{Pid, PidfdFlags, pidfd_open};

use crate::broker::Broker;
use crate::change_record::{Outside, Recording};
use crate::made_files::{LinkedFiles, OwnSockets};
use crate::open_questions::OpenQuestions;
use crate::pending_connects::PendingConnects;
use crate::process::Processes;
use crate::record::Record;
use crate::removed_dot_files::RemovedDotFiles;
use crate::shared_knowledge::SharedKnowledge;
use crate::staging::Staging;
use crate::transport;

/// The pid of the keeper in its own pid namespace, if it has one.
const FIRST_PROCESS: i32 = 1;

/// The keeper's handle to its broker.
#[derive(Debug)]
pub struct Handle {
    /// The broker's pidfd; readable when the broker has ended.
    pub process: OwnedFd,
    channel: OwnedFd,
}

/// The configuration of a broker.
pub struct Config {
    /// Judges names by the session's rules.
    pub names: Box<dyn Names>,
    /// Whether reading is judged as well.
    pub reads: Reads,
    /// Files that must not be read by any name.
    pub kept_back: Vec<FileId>,
    /// Writable places in which names are judged, as commands see them.
    pub judged: Vec<PathBuf>,
    /// Those of them that are the sandbox's own: no other program of the user sees them.
    pub own: Vec<PathBuf>,
    /// Places in the sandbox's own that are the machine's, and that commands cannot change.
    pub fixed: Vec<PathBuf>,
    /// Places that masks hide; empty if no mounts enforce the places.
    pub hidden: Vec<PathBuf>,
    /// Names of closed directories among the sandbox's own places, in which commands can make nothing.
    pub closed: Vec<PathBuf>,
    /// The project.
    pub workspace: PathBuf,
    /// The user's home directories.
    pub homes: Vec<PathBuf>,
    /// The access of each place, if no mounts enforce it.
    pub places: Option<Places>,
    /// Ids of disabled rules.
    pub lifted: Vec<String>,
    /// Links of the user that lead to sensitive names.
    pub links: Vec<UserLink>,
    /// Targets of the user's dangling links.
    pub leading_nowhere: Vec<PathBuf>,
    /// The number of the session in the record of the name order.
    pub session: u64,
    /// The number of this sandbox in the record of the session's changes.
    pub view: u64,
    /// The sockets to the host: for waiting calls on names, and for those that connect.
    pub lines: [OwnedFd; 2],
    /// Loopback ports that lead to this machine; `None` if connections do not wait here.
    pub host_ports: Option<Vec<u16>>,
}

/// Starts the broker, which waits until it receives its listener.
///
/// # Errors
/// The kernel's.
pub fn start(
    single: &SingleThread,
    config: Config,
    commands: SharedNumbers,
) -> io::Result<(Handle, SharedNumbers)> {
    let (ours, theirs) = transport::pair()?;
    match clone(single, CloneFlags::NONE)? {
        Cloned::Parent { pidfd, .. } => Ok((Handle { process: pidfd, channel: ours }, commands)),
        Cloned::Child => {
            // If anything fails here: without a broker the keeper ends, and the whole sandbox with it.
            drop(run(single, theirs, config, commands, None));
            exit_now(1)
        }
    }
}

/// Runs as the broker, without namespaces, until the keeper ends; returns only on an error.
///
/// # Errors
/// The kernel's.
pub fn run_as_parent(
    single: &SingleThread,
    channel: OwnedFd,
    config: Config,
    commands: SharedNumbers,
    keeper: Pid,
) -> io::Result<()> {
    run(single, channel, config, commands, Some(keeper))
}

impl fmt::Debug for Config {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Config").field("judged", &self.judged).finish_non_exhaustive()
    }
}

impl Handle {
    /// Makes a handle to a broker that is already running.
    pub fn new(process: OwnedFd, channel: OwnedFd) -> Self {
        Self { process, channel }
    }

    /// Sends the broker its listener and the files of the name order, and waits until it is ready.
    ///
    /// # Errors
    /// The kernel's, or that the broker has ended.
    pub fn begin(&self, listener: &OwnedFd, order: Option<OrderFiles>) -> io::Result<()> {
        let order = order.map(OrderFiles::into_list);
        let mut given = vec![listener.as_fd()];
        given.extend(order.iter().flatten().map(AsFd::as_fd));
        transport::send(&self.channel, &[], &given)?;
        match transport::receive(&self.channel)? {
            Some(_ready) => Ok(()),
            None => Err(io::ErrorKind::BrokenPipe.into()),
        }
    }
}

fn run(
    single: &SingleThread,
    channel: OwnedFd,
    config: Config,
    commands: SharedNumbers,
    child: Option<Pid>,
) -> io::Result<()> {
    let Config {
        names,
        reads,
        kept_back,
        judged,
        own,
        fixed,
        hidden,
        closed,
        workspace,
        homes,
        places,
        lifted,
        ..
    } = config;
    let Config { links, leading_nowhere, session, view, lines: [asks, connects], host_ports, .. } = config;
    let [channel, asks, connects] = keep_only(single, [channel, asks, connects])?;
    match child {
        None => crate::capabilities::keep_only_inspection()?,
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
    let (order, record, changes) = match OrderFiles::from_list(given.collect())? {
        None => (None, None, None),
        Some(OrderFiles { names, queue, record, changes }) => {
            (Some([names, queue]), Some(Record::open(record, session)?), changes)
        }
    };
    let recording = changes.map(|ChangesFiles { store, project }| {
        let recorder = Recorder::bounded(Store::open_in(&store)?);
        let outside = Some(Outside::new(workspace.clone(), project));
        Ok::<_, io::Error>(Recording { recorder, view, outside })
    });
    let recording = recording.transpose()?;
    let order = Lock::from_files(order);
    let listener = Listener::new(listener);
    // Only a performance option: without it (before Linux 6.6) notifications cost more.
    drop(listener.wake_synchronously());
    let connecting =
        host_ports.map(|ports| PendingConnects::begin(connects, ports, &listener)).transpose()?;
    // Lives as long as the process, so that all threads can use it.
    let broker: &'static Broker = Box::leak(Box::new(Broker {
        listener,
        names,
        reads,
        kept_back: kept_back.into_iter().collect(),
        roots: roots(workspace, &judged, &own),
        judged,
        fixed,
        hidden,
        closed,
        homes,
        places,
        lifted,
        links,
        recording,
        staging: Staging::default(),
        asking: OpenQuestions::new(asks),
        connecting,
        processes,
        known: SharedKnowledge::new(record),
        removed: RemovedDotFiles::default(),
        linked: LinkedFiles::default(),
        own_sockets: OwnSockets::default(),
        one_at_a_time,
        order,
    }));
    broker.note_leading_nowhere(&leading_nowhere)?;
    crate::serve::run(broker, || transport::send(&channel, &[], &[]))
}

/// Returns the directories in which names matter to the user's other programs: the project, even if only parts of it
/// are writable, and the other writable places.
fn roots(workspace: PathBuf, judged: &[PathBuf], own: &[PathBuf]) -> Vec<PathBuf> {
    let others = judged.iter().filter(|place| **place != workspace && !own.contains(place));
    let others = others.cloned();
    let others = others.collect::<Vec<_>>();
    std::iter::once(workspace).chain(others).collect()
}

/// Ends this process when its keeper ends.
fn end_with(keeper: OwnedFd) -> io::Result<()> {
    crate::threads::start(move || {
        let mut ended = [PollFd::new(&keeper, PollFlags::IN)];
        // Any failure to poll counts as ended.
        let _ended = rustix::io::retry_on_intr(|| poll(&mut ended, None));
        exit_now(0)
    })
}

/// Closes the keeper's file descriptors: none of them may stay open here when it ends.
fn keep_only(single: &SingleThread, kept: [OwnedFd; 3]) -> io::Result<[OwnedFd; 3]> {
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

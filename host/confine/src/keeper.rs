//! The keeper: process 1 of a session, which owns its mounts and starts its commands.
//!
//! It is single-threaded and trusts the host. What it runs it does not trust, and hears nothing from it.

mod alone;
mod group;
mod program;
mod serve;
mod watch;

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use portcullis_sys::descriptor;
use portcullis_sys::memory::SharedNumbers;
use portcullis_sys::process::{CloneFlags, Cloned, Fenced, SingleThread, exit_now};
use portcullis_sys::signal::Settled;
use rustix::fs::{CWD, FileType, Mode, OFlags, lstat, openat};
use rustix::io::Errno;

use crate::broker;
use crate::files;
use crate::layer::landlock::Landlock;
use crate::layer::namespaces::Identity;
use crate::layer::{During, Failure, landlock, limits, mounts, namespaces, network, privileges, seccomp};
use crate::order::OrderFiles;
use crate::plan::{Plan, Step, Writable};
use crate::wire::{Event, Network, Refusal, Setup};
use crate::{Hold, Limits, MakeNames, NameRules, Reads, Stage, Walls, WayOut, transport};
pub(crate) use group::IN_GROUP;

/// The argument, after the usual one, of a keeper that is to do without namespaces.
pub(crate) const WITHOUT_NAMESPACES: &str = "without-namespaces";

/// Opens the door to the namespaces and ends; the keeper behind it is a child of the host.
pub(crate) fn main(names: MakeNames) -> ExitCode {
    let Ok(Some(single)) = SingleThread::prove() else { return ExitCode::FAILURE };
    // Whatever the host left open by mistake must not stay open for as long as the session lasts.
    let Ok(()) = descriptor::close_inherited(&single, 3) else { return ExitCode::FAILURE };
    let (Ok(control), Ok(group)) = (take_control(), group::take()) else { return ExitCode::FAILURE };
    if std::env::args_os().nth(2).is_some_and(|walls| walls == WITHOUT_NAMESPACES) {
        return alone::main(single, &control, group, names);
    }
    let identity = Identity::current();
    let flags = namespaces::of_a_session() | CloneFlags::PARENT;
    match group::clone_keeper(&single, flags, group).during(Stage::Namespaces) {
        Ok((Cloned::Parent { pidfd, .. }, _)) => tell(&control, &Event::Keeper, &[pidfd.as_fd()]),
        Ok((Cloned::Child, no_group)) => keep(single, control, identity, no_group, names),
        Err(failure) => tell(&control, &failed(&failure), &[]),
    }
    ExitCode::SUCCESS
}

/// Moves the line to the host from standard input to where no command can inherit it.
fn take_control() -> rustix::io::Result<OwnedFd> {
    let control = rustix::io::fcntl_dupfd_cloexec(rustix::stdio::stdin(), 3)?;
    let nothing = openat(CWD, "/dev/null", OFlags::RDWR | OFlags::CLOEXEC, Mode::empty())?;
    rustix::stdio::dup2_stdin(nothing)?;
    Ok(control)
}

fn keep(single: SingleThread, control: OwnedFd, identity: Identity, no_group: i32, names: MakeNames) -> ! {
    // Commands start in this process's memory, where no handler may run, and inherit what is set here.
    let settled = Settled::settle(&single).during(Stage::Process);
    match settled.and_then(|settled| Ok((settled, set_up(&single, &control, identity, names)?))) {
        Ok((settled, (ready, session))) => {
            let landlock = session.landlock.as_ref().map_or(0, Landlock::version);
            ready.tell(&control, landlock, session.processes_are_bounded, no_group);
            serve::Keeper::new((single, settled), control, session).serve()
        }
        Err(failure) => {
            tell(&control, &failed(&failure), &[]);
            // Process 1 takes everything with it.
            exit_now(0)
        }
    }
}

/// What holds for every command of the session.
struct Session {
    identity: Identity,
    limits: Limits,
    /// Whether the kernel refuses processes above the limit, for root too.
    processes_are_bounded: bool,
    /// Nothing, where the kernel has none.
    landlock: Option<Landlock>,
    /// Nothing, where there are no rules over names.
    broker: Option<broker::Handle>,
    /// The commands under way, for the broker to know whose calls it carries out.
    commands: SharedNumbers,
    /// What keeps signals in where there are no namespaces.
    fence: Option<Fence>,
}

/// What keeps signals in: those of this process, and, by further rules, those of each init.
struct Fence {
    own: Fenced,
    /// Kept as long as the process lives.
    of_inits: &'static OwnedFd,
}

impl Session {
    fn walls(&self) -> Walls {
        if self.fence.is_some() { Walls::Landlock } else { Walls::Namespaces }
    }
}

/// What the host is given, and this process keeps nothing of.
struct Ready {
    root: OwnedFd,
    mounts: OwnedFd,
    gate: Result<Option<network::Gate>, Failure>,
}

impl Ready {
    fn tell(self, control: &OwnedFd, landlock: u32, processes_are_bounded: bool, no_group: i32) {
        let no_gate = self.gate.as_ref().err().map(Failure::refusal);
        let gate = self.gate.as_ref().ok().and_then(Option::as_ref);
        let mut descriptors = vec![self.root.as_fd(), self.mounts.as_fd()];
        descriptors.extend(gate.map(network::Gate::descriptors).unwrap_or_default());
        let event = Event::Ready { landlock, processes_are_bounded, no_group, no_gate };
        tell(control, &event, &descriptors);
    }
}

fn set_up(
    single: &SingleThread,
    control: &OwnedFd,
    identity: Identity,
    make_names: MakeNames,
) -> Result<(Ready, Session), Failure> {
    let (setup, Lines { asks, connects, order }) =
        read_setup(control).ok_or(Errno::BADMSG).during(Stage::Request)?;
    if let Some(usual) = setup.open_files {
        files::take_back(usual);
    }
    // Whoever is to act as somebody else has been mapped from outside.
    if setup.acting.is_none() {
        identity.map()?;
    }
    rustix::process::setsid().during(Stage::Process)?;
    rustix::system::sethostname(setup.hostname.as_bytes()).during(Stage::HostName)?;
    network::enforce()?;
    let gate = match &setup.network {
        Network::Closed => Ok(None),
        // Without it there is no way out, which is less than wanted but no less safe.
        Network::Gated(way) => network::open_gate(&way.host_ports).map(Some),
    };
    let processes_are_bounded = setup.limits.processes.is_some_and(limits::bound_processes);
    limits::bound_watching();
    mounts::enforce(&setup.plan, setup.limits.memory_bytes)?;
    if identity.is_root() && setup.acting.is_none() {
        mounts::check_owners(&setup.plan)?;
    }
    let identity = match setup.acting {
        Some(owner) => identity.act_as(owner)?,
        None => identity,
    };
    let (root, mounts) = open_view().during(Stage::View)?;
    let commands = SharedNumbers::new().during(Stage::Process)?;
    let judged = setup.names.as_ref().map(|names| judged(&setup.plan, names)).unwrap_or_default();
    let version = landlock::usable_version();
    let prepared = version.map(|version| Landlock::prepare(&setup.plan, &judged, version));
    let landlock = prepared.transpose()?;
    let reads = setup.names.as_ref().map_or(Reads::Free, |names| names.reads);
    // What the broker gives back to the kernel must not come back as another file, cut short and open to be read.
    if reads.are_judged() && !landlock.as_ref().is_some_and(Landlock::holds_truncating) {
        return Err(Errno::OPNOTSUPP).during(Stage::Landlock);
    }
    let (broker, commands) = match &setup.names {
        None => (None, commands),
        // What the broker does not do must not happen, and nothing but Landlock sees to that.
        Some(_) if landlock.is_none() => return Err(Errno::OPNOTSUPP).during(Stage::Landlock),
        Some(rules) => {
            let names = make_names(&rules.data).ok_or(Errno::INVAL).during(Stage::Names)?;
            let lines = [asks, connects];
            let host_ports = held_ports(&setup.network, &gate);
            let orders = broker::Orders {
                names,
                reads,
                kept_back: rules.kept_back.clone(),
                judged,
                workspace: rules.workspace.clone(),
                homes: rules.homes.clone(),
                lifted: rules.lifted.clone(),
                links: rules.links.clone(),
                leading_nowhere: rules.leading_nowhere.clone(),
                session: setup.session,
                lines,
                host_ports,
                places: None,
            };
            let (broker, commands) = broker::start(single, orders, commands)?;
            (Some(broker), commands)
        }
    };
    privileges::enforce_on_keeper()?;
    match &broker {
        None => drop(seccomp::enforce(seccomp::Broker::None, Reads::Free, Walls::Namespaces)?),
        Some(broker) => {
            let is_held = held_ports(&setup.network, &gate).is_some();
            let listens = match is_held {
                true => seccomp::Broker::HoldsConnections,
                false => seccomp::Broker::Listens,
            };
            let listener = seccomp::enforce(listens, reads, Walls::Namespaces)?;
            broker.begin(&listener.ok_or(Errno::INVAL).during(Stage::Seccomp)?, order)?;
        }
    }
    let ready = Ready { root, mounts, gate };
    let limits = setup.limits;
    Ok((ready, Session { identity, limits, processes_are_bounded, landlock, broker, commands, fence: None }))
}

/// Returns the writable places in which names are judged: all but those in which no rule can match.
fn judged(plan: &Plan, names: &NameRules) -> Vec<PathBuf> {
    let writable = plan.steps().iter().filter_map(|step| match step {
        Step::Temp { .. } => Some(Path::new("/tmp")),
        Step::Show { path, writable: Writable::Yes } => Some(path),
        Step::Prepare { .. }
        | Step::Pin { .. }
        | Step::Devices
        | Step::Processes
        | Step::Show { writable: Writable::No, .. }
        | Step::HideDirectory { .. }
        | Step::HideFile { .. }
        | Step::Resolver { .. } => None,
    });
    let is_spared = |place: &&Path| names.spared.iter().any(|spared| spared == place);
    let places: Vec<PathBuf> = writable.filter(|place| !is_spared(place)).map(Path::to_owned).collect();
    // A file that is given by itself has no names in it, and is written by commands themselves. One that has other
    // names as well could be more than what was given, and is not written.
    let is_alone = |place: &PathBuf| {
        let lies_in = |other: &PathBuf| place != other && place.starts_with(other);
        let has_one_name = |status: rustix::fs::Stat| {
            FileType::from_raw_mode(status.st_mode) == FileType::RegularFile && status.st_nlink == 1
        };
        lstat(place).is_ok_and(has_one_name) && !places.iter().any(lies_in)
    };
    places.iter().filter(|place| !is_alone(place)).cloned().collect()
}

/// Returns the ports of the loopback that mean the host's own, where connections are held inside connect(2).
fn held_ports(network: &Network, gate: &Result<Option<network::Gate>, Failure>) -> Option<Vec<u16>> {
    match (network, gate) {
        (Network::Gated(WayOut { host_ports, hold: Hold::Connect }), Ok(Some(_))) => Some(host_ports.clone()),
        (Network::Gated(_) | Network::Closed, _) => None,
    }
}

/// What the host gives for the broker.
struct Lines {
    /// Where the broker tells of calls that wait.
    asks: OwnedFd,
    /// Where it tells of connections that wait.
    connects: OwnedFd,
    /// The files of the order of names, if other sandboxes share it.
    order: Option<OrderFiles>,
}

/// Returns what the host wants, and what it gives for the broker.
fn read_setup(control: &OwnedFd) -> Option<(Setup, Lines)> {
    let message = transport::receive(control).ok()??;
    let setup = Setup::decode(&message.bytes).ok()?;
    let mut given = message.descriptors.into_iter();
    let (asks, connects) = (given.next()?, given.next()?);
    let order = OrderFiles::from_list(given.collect()).ok()?;
    Some((setup, Lines { asks, connects, order }))
}

fn open_view() -> rustix::io::Result<(OwnedFd, OwnedFd)> {
    rustix::process::chdir("/")?;
    let root = openat(CWD, "/", OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty())?;
    let mounts = openat(CWD, "/proc/self/ns/mnt", OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty())?;
    Ok((root, mounts))
}

fn failed(failure: &Failure) -> Event {
    let Refusal { stage, errno } = failure.refusal();
    Event::Failed { refusal: Refusal { stage, errno }, path: PathBuf::from(&failure.path) }
}

/// Tells the host something; when the host has gone there is nobody to be told, and the end follows.
fn tell(control: &OwnedFd, event: &Event, descriptors: &[BorrowedFd<'_>]) {
    drop(transport::send(control, &event.encode(), descriptors));
}

//! The keeper: process 1 of a session, which owns its mounts and starts its commands.
//!
//! It is single-threaded and trusts the host. It does not trust the commands that it runs, and reads no input from
//! them.

mod group;
mod host;
mod landlock_only;
mod program;
mod serve;
mod session;
mod watch;

use std::collections::HashMap;
use std::os::fd::{AsFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use portcullis_sandbox::{
    Hold, IsolationMode, MakeNames, MountStep, NameRules, Network, OwnSource, Plan, Reads, Stage, WayOut,
    Writable,
};
use portcullis_sys::descriptor;
use portcullis_sys::memory::SharedNumbers;
use portcullis_sys::process::{CloneFlags, Cloned, SingleThread, exit_now};
use portcullis_sys::signal::Settled;
use portcullis_syscall_broker as broker;
use rustix::fs::{CWD, FileType, Mode, OFlags, lstat, openat};
use rustix::io::Errno;

use crate::arguments::WITHOUT_NAMESPACES;
use crate::file_limit;
use crate::layer::failure::{During, Failure};
use crate::layer::landlock::{self, Landlock};
use crate::layer::namespaces::{self, Identity};
use crate::layer::{limits, mounts, network, privileges, seccomp};
use crate::wire::Event;
use host::{HostDescriptors, Ready, failed, open_view, read_setup, take_control, tell};
use session::Session;

/// The device that swallows everything.
const NULL_PATH: &str = "/dev/null";

/// Creates the namespaces and the keeper in them, which becomes a child of the host, and ends.
pub(crate) fn main(names: MakeNames) -> ExitCode {
    let Ok(Some(single)) = SingleThread::prove() else { return ExitCode::FAILURE };
    // A descriptor that the host left open by mistake must not stay open for the whole session.
    let Ok(()) = descriptor::close_inherited(&single, 3) else { return ExitCode::FAILURE };
    let (Ok(control), Ok(group)) = (take_control(), group::take()) else { return ExitCode::FAILURE };
    if std::env::args_os().nth(2).is_some_and(|isolation| isolation == WITHOUT_NAMESPACES) {
        return landlock_only::main(single, &control, group, names);
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

fn keep(single: SingleThread, control: OwnedFd, identity: Identity, no_group: i32, names: MakeNames) -> ! {
    // Commands start in this process's memory, where no signal handler may run, and inherit the settings made here.
    let settled = Settled::block_all(&single).during(Stage::Process);
    match settled.and_then(|settled| Ok((settled, set_up(&single, &control, identity, names)?))) {
        Ok((settled, (ready, session))) => {
            let landlock = session.landlock.as_ref().map_or(0, Landlock::version);
            ready.tell(&control, landlock, session.processes_are_bounded, no_group);
            serve::Keeper::new((single, settled), control, session).serve()
        }
        Err(failure) => {
            tell(&control, &failed(&failure), &[]);
            // The end of process 1 ends all others in its namespace.
            exit_now(0)
        }
    }
}

fn set_up(
    single: &SingleThread,
    control: &OwnedFd,
    identity: Identity,
    make_names: MakeNames,
) -> Result<(Ready, Session), Failure> {
    let (setup, HostDescriptors { asks, connects, order }) =
        read_setup(control).ok_or(Errno::BADMSG).during(Stage::Request)?;
    if let Some(usual) = setup.open_files {
        file_limit::take_back(usual);
    }
    // To act as another user, the host has mapped the users from outside.
    if setup.acting.is_none() {
        identity.map()?;
    }
    rustix::process::setsid().during(Stage::Process)?;
    rustix::system::sethostname(setup.hostname.as_bytes()).during(Stage::HostName)?;
    network::enforce()?;
    let gate = match &setup.network {
        Network::Closed => Ok(None),
        // Without listeners no connection leaves the sandbox, which is less than wanted but no less safe.
        Network::Gated(way) => network::open_gate(&way.host_ports).map(Some),
    };
    let processes_are_bounded = setup.limits.processes.is_some_and(limits::bound_processes);
    limits::bound_watching();
    mounts::enforce(&setup.plan, setup.limits.memory_bytes, setup.acting)?;
    if identity.is_root() && setup.acting.is_none() {
        mounts::check_owners(&setup.plan)?;
    }
    let null = openat(CWD, NULL_PATH, OFlags::RDWR | OFlags::CLOEXEC, Mode::empty());
    let null = Some(null.during_at(Stage::OpenPlace, Path::new(NULL_PATH))?);
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
    // A call that the broker returns to the kernel must not open another file, truncated and readable.
    if reads.are_judged() && !landlock.as_ref().is_some_and(Landlock::holds_truncating) {
        return Err(Errno::OPNOTSUPP).during(Stage::Landlock);
    }
    let (broker, commands) = match &setup.names {
        None => (None, commands),
        // Calls that the broker does not perform must fail, and only Landlock ensures that.
        Some(_) if landlock.is_none() => return Err(Errno::OPNOTSUPP).during(Stage::Landlock),
        Some(rules) => {
            let names = make_names(&rules.data).ok_or(Errno::INVAL).during(Stage::Names)?;
            let lines = [asks, connects];
            let host_ports = held_ports(&setup.network, &gate);
            let broker_config = broker::Config {
                names,
                reads,
                kept_back: rules.kept_back.clone(),
                judged,
                own: own(&setup.plan),
                fixed: fixed(&setup.plan),
                hidden: hidden(&setup.plan),
                closed: closed(&setup.plan),
                workspace: rules.workspace.clone(),
                homes: rules.homes.clone(),
                lifted: rules.lifted.clone(),
                links: rules.links.clone(),
                leading_nowhere: rules.leading_nowhere.clone(),
                session: setup.session,
                view: setup.view,
                lines,
                host_ports,
                places: None,
            };
            let (broker, commands) = broker::start(single, broker_config, commands).during(Stage::Broker)?;
            (Some(broker), commands)
        }
    };
    privileges::enforce_on_keeper()?;
    match &broker {
        None => drop(seccomp::enforce(seccomp::Broker::None, Reads::Free, IsolationMode::Namespaces)?),
        Some(broker) => {
            let is_held = held_ports(&setup.network, &gate).is_some();
            let listens = match is_held {
                true => seccomp::Broker::HoldsConnections,
                false => seccomp::Broker::Listens,
            };
            let listener = seccomp::enforce(listens, reads, IsolationMode::Namespaces)?;
            let listener = listener.ok_or(Errno::INVAL).during(Stage::Seccomp)?;
            broker.begin(&listener, order).during(Stage::Broker)?;
        }
    }
    let ready = Ready { root, mounts, gate };
    let limits = setup.limits;
    let session =
        Session { identity, limits, processes_are_bounded, landlock, broker, commands, null, fence: None };
    Ok((ready, session))
}

/// Returns the writable places in which names are judged: all except those in which no rule can match.
fn judged(plan: &Plan, names: &NameRules) -> Vec<PathBuf> {
    let writable = plan.steps().iter().filter_map(|step| match step {
        MountStep::Temp { .. } => Some(Path::new("/tmp")),
        MountStep::Own { path, .. } | MountStep::Show { path, writable: Writable::Yes } => Some(path),
        MountStep::Prepare { .. }
        | MountStep::Pin { .. }
        | MountStep::Devices { .. }
        | MountStep::Processes
        | MountStep::Show { writable: Writable::No, .. }
        | MountStep::HideDirectory { .. }
        | MountStep::HideFile { .. }
        | MountStep::Resolver { .. } => None,
    });
    let is_spared = |place: &&Path| names.spared.iter().any(|spared| spared == place);
    let places: Vec<PathBuf> = writable.filter(|place| !is_spared(place)).map(Path::to_owned).collect();
    // A file that is a place by itself contains no names, and commands write it directly. One with hard links could be
    // more than the place was meant to give, and is not written.
    let is_alone = |place: &PathBuf| {
        let lies_in = |other: &PathBuf| place != other && place.starts_with(other);
        let has_one_name = |status: rustix::fs::Stat| {
            FileType::from_raw_mode(status.st_mode) == FileType::RegularFile && status.st_nlink == 1
        };
        lstat(place).is_ok_and(has_one_name) && !places.iter().any(lies_in)
    };
    places.iter().filter(|place| !is_alone(place)).cloned().collect()
}

/// Returns the places of the sandbox's own, of which the session's temporary directory is one.
fn own(plan: &Plan) -> Vec<PathBuf> {
    let own = plan.steps().iter().filter_map(|step| match step {
        // What is in a branch gets into the project later, so it is judged as if it were there.
        MountStep::Own { source: OwnSource::Branch { .. }, .. } => None,
        MountStep::Own { path, .. } => Some(path.clone()),
        MountStep::Temp { .. } => Some("/tmp".into()),
        MountStep::Prepare { .. }
        | MountStep::Pin { .. }
        | MountStep::Devices { .. }
        | MountStep::Processes
        | MountStep::HideDirectory { .. }
        | MountStep::HideFile { .. }
        | MountStep::Show { .. }
        | MountStep::Resolver { .. } => None,
    });
    own.collect()
}

/// Returns the places of the machine in the sandbox's own that commands cannot change.
fn fixed(plan: &Plan) -> Vec<PathBuf> {
    let place = |step: &'_ MountStep| match step {
        MountStep::Own { source: OwnSource::Branch { .. }, path } => Some((path.clone(), false)),
        MountStep::Own { path, .. } => Some((path.clone(), true)),
        MountStep::Show { path, .. }
        | MountStep::HideDirectory { path, .. }
        | MountStep::HideFile { path } => Some((path.clone(), false)),
        MountStep::Prepare { .. }
        | MountStep::Pin { .. }
        | MountStep::Devices { .. }
        | MountStep::Processes
        | MountStep::Temp { .. }
        | MountStep::Resolver { .. } => None,
    };
    let places: HashMap<PathBuf, bool> = plan.steps().iter().filter_map(place).collect();
    let is_in_own = |path: &Path| {
        path.ancestors().skip(1).find_map(|above| places.get(above)).is_some_and(|is_own| *is_own)
    };
    let fixed = plan.steps().iter().filter_map(|step| {
        let (MountStep::Show { path, writable: Writable::No } | MountStep::HideDirectory { path, .. }) = step
        else {
            return None;
        };
        Some(path)
    });
    fixed.filter(|path| is_in_own(path)).cloned().collect()
}

/// Returns the places that masks hide.
fn hidden(plan: &Plan) -> Vec<PathBuf> {
    let hidden = plan.steps().iter().filter_map(|step| match step {
        MountStep::HideDirectory { path, .. } | MountStep::HideFile { path } => Some(path.clone()),
        MountStep::Prepare { .. }
        | MountStep::Pin { .. }
        | MountStep::Devices { .. }
        | MountStep::Processes
        | MountStep::Temp { .. }
        | MountStep::Own { .. }
        | MountStep::Show { .. }
        | MountStep::Resolver { .. } => None,
    });
    hidden.collect()
}

/// Returns the closed directories whose names are in the sandbox's own places.
fn closed(plan: &Plan) -> Vec<PathBuf> {
    let names_in = |directory: &Path| {
        plan.steps().iter().find_map(|step| {
            let MountStep::Prepare { directory: prepared, openings } = step else { return None };
            (prepared == directory).then_some(openings)
        })
    };
    let own = plan.steps().iter().filter_map(|step| {
        let MountStep::Own { path, source: OwnSource::Plain(directory) } = step else { return None };
        Some((path, names_in(directory)?))
    });
    own.flat_map(|(path, names)| names.iter().filter(|name| name.is_closed).map(|name| path.join(&name.path)))
        .collect()
}

/// Returns the loopback ports that lead to this machine, if connections wait inside connect(2).
fn held_ports(network: &Network, gate: &Result<Option<network::Gate>, Failure>) -> Option<Vec<u16>> {
    match (network, gate) {
        (Network::Gated(WayOut { host_ports, hold: Hold::Connect }), Ok(Some(_))) => Some(host_ports.clone()),
        (Network::Gated(_) | Network::Closed, _) => None,
    }
}

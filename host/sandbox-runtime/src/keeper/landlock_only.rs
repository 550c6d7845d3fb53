//! A keeper without namespaces, confined by Landlock, the broker and a filter only.
//!
//! Here the broker is the process that the host has started, and the keeper is its child, because under a strict Yama
//! only an ancestor may inspect processes. The end of a process ends no others here: the keeper learns when the broker
//! or the host ends, each init learns when the keeper ends, and both then kill every process that they can reach, which
//! their Landlock rules bound.

use std::os::fd::{AsFd, OwnedFd};
use std::process::ExitCode;

use portcullis_sandbox::{Access, IsolationMode, MakeNames, OrderFiles, Places, Reads, Stage};
use portcullis_sys::memory::SharedNumbers;
use portcullis_sys::process::{CloneFlags, Cloned, Fenced, SingleThread, exit_now};
use portcullis_sys::signal::Settled;
use portcullis_syscall_broker as broker;
use portcullis_syscall_broker::transport;
use rustix::io::Errno;
use rustix::process::{Pid, PidfdFlags, getpid, getppid, pidfd_open, set_child_subreaper};

use super::group::clone_keeper;
use super::host::{HostDescriptors, Ready, failed, open_view, read_setup, tell};
use super::serve;
use super::session::{Session, SignalScopes};
use crate::file_limit;
use crate::layer::failure::{During, Failure};
use crate::layer::landlock::Landlock;
use crate::layer::landlock::landlock_only::{fence, scopes};
use crate::layer::namespaces::Identity;
use crate::layer::{privileges, seccomp};
use crate::wire::{Event, Setup};

/// The state that both processes need.
struct LandlockSetup {
    setup: Setup,
    identity: Identity,
    places: Places,
    reads: Reads,
    broker_config: broker::Config,
    /// The files of the name order, for the broker.
    order: Option<OrderFiles>,
    commands: SharedNumbers,
    settled: Settled,
}

/// Runs as the broker, with the keeper as a child; the keeper and all commands are in the control group.
pub(super) fn main(
    single: SingleThread,
    control: &OwnedFd,
    group: Option<OwnedFd>,
    names: MakeNames,
) -> ExitCode {
    match begin(&single, control, names).and_then(|setup_done| part(single, control, group, setup_done)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            tell(control, &failed(&failure), &[]);
            ExitCode::FAILURE
        }
    }
}

fn begin(single: &SingleThread, control: &OwnedFd, make_names: MakeNames) -> Result<LandlockSetup, Failure> {
    let own = pidfd_open(getpid(), PidfdFlags::empty()).during(Stage::Process)?;
    tell(control, &Event::Keeper, &[own.as_fd()]);
    let (setup, HostDescriptors { asks, connects, order }) =
        read_setup(control).ok_or(Errno::BADMSG).during(Stage::Request)?;
    if let Some(usual) = setup.open_files {
        file_limit::take_back(usual);
    }
    let settled = Settled::block_all(single).during(Stage::Process)?;
    rustix::process::setsid().during(Stage::Process)?;
    let identity = match setup.acting {
        Some(owner) => Identity::current().act_as(owner)?,
        None => Identity::current(),
    };
    // Neither process needs root's privileges.
    privileges::drop_all()?;
    let places = Places::from_plan(&setup.plan);
    let rules = setup.names.as_ref().ok_or(Errno::OPNOTSUPP).during(Stage::Names)?;
    // Landlock rules cannot be revoked for a part of a tree, so they cannot hide paths inside writable places.
    let reads = if places.hides_in_writable() { Reads::Judged } else { rules.reads };
    let names = make_names(&rules.data).ok_or(Errno::INVAL).during(Stage::Names)?;
    let writable =
        places.iter().filter(|(path, access)| *access == Access::ReadWrite && *path != places.temp());
    let judged = writable.map(|(path, _)| path.to_owned()).collect();
    let broker_config = broker::Config {
        names,
        reads,
        kept_back: rules.kept_back.clone(),
        judged,
        own: Vec::new(),
        fixed: Vec::new(),
        hidden: Vec::new(),
        closed: Vec::new(),
        workspace: rules.workspace.clone(),
        homes: rules.homes.clone(),
        lifted: rules.lifted.clone(),
        links: rules.links.clone(),
        leading_nowhere: rules.leading_nowhere.clone(),
        session: setup.session,
        view: setup.view,
        lines: [asks, connects],
        host_ports: None,
        places: Some(places.clone()),
    };
    let commands = SharedNumbers::new().during(Stage::Process)?;
    Ok(LandlockSetup { setup, identity, places, reads, broker_config, order, commands, settled })
}

/// Creates the keeper; this process then runs as the broker, and returns when that has ended.
fn part(
    single: SingleThread,
    control: &OwnedFd,
    group: Option<OwnedFd>,
    setup_done: LandlockSetup,
) -> Result<(), Failure> {
    let (ours, theirs) = transport::pair().during(Stage::Broker)?;
    let broker = getpid();
    match clone_keeper(&single, CloneFlags::NONE, group).during(Stage::Process)? {
        (Cloned::Parent { pid, .. }, _) => {
            let keeper = Pid::from_raw(pid).ok_or(Errno::SRCH).during(Stage::Process)?;
            // The keeper sends them when the broker is to begin; until then the broker closes all unknown descriptors.
            drop(setup_done.order);
            broker::run_as_parent(&single, theirs, setup_done.broker_config, setup_done.commands, keeper)
                .during(Stage::Broker)
        }
        (Cloned::Child, no_group) => {
            drop(theirs);
            keep(single, control, (broker, ours), no_group, setup_done)
        }
    }
}

fn keep(
    single: SingleThread,
    control: &OwnedFd,
    broker: (Pid, OwnedFd),
    no_group: i32,
    setup_done: LandlockSetup,
) -> ! {
    match control.try_clone().during(Stage::Process).and_then(|control| {
        let (settled, ready, session) = set_up(&single, broker, setup_done)?;
        Ok((control, settled, ready, session))
    }) {
        Ok((control, settled, ready, session)) => {
            let landlock = session.landlock.as_ref().map_or(0, Landlock::version);
            ready.tell(&control, landlock, false, no_group);
            serve::Keeper::new((single, settled), control, session).serve()
        }
        Err(failure) => {
            tell(control, &failed(&failure), &[]);
            exit_now(0)
        }
    }
}

fn set_up(
    single: &SingleThread,
    (broker, channel): (Pid, OwnedFd),
    setup_done: LandlockSetup,
) -> Result<(Settled, Ready, Session), Failure> {
    let LandlockSetup { setup, identity, places, reads, broker_config, order, commands, settled } =
        setup_done;
    // The broker's descriptors do not belong to this process.
    drop(broker_config);
    let process = pidfd_open(broker, PidfdFlags::empty()).during(Stage::Broker)?;
    // With another parent the broker has already ended, and its pid may have been reused.
    if getppid() != Some(broker) {
        return Err(Errno::SRCH).during(Stage::Broker);
    }
    set_child_subreaper(Some(getpid())).during(Stage::Process)?;
    let (root, mounts) = open_view().during(Stage::View)?;
    let landlock = Landlock::prepare_alone(&places)?;
    let of_inits: &'static OwnedFd = Box::leak(Box::new(scopes()?));
    let listener = seccomp::enforce(seccomp::Broker::Listens, reads, IsolationMode::Landlock)?;
    let handle = broker::Handle::new(process, channel);
    let listener = listener.ok_or(Errno::INVAL).during(Stage::Seccomp)?;
    handle.begin(&listener, order).during(Stage::Broker)?;
    let own: Fenced = fence(single, broker.as_raw_nonzero().get())?;
    let session = Session {
        identity,
        limits: setup.limits,
        processes_are_bounded: false,
        landlock: Some(landlock),
        broker: Some(handle),
        commands,
        null: None,
        fence: Some(SignalScopes { own, of_inits }),
    };
    Ok((settled, Ready { root, mounts, gate: Ok(None) }, session))
}

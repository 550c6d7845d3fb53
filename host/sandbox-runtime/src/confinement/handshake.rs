//! The handshake of host and keeper until the sandbox is ready.

use std::io;
use std::net::TcpListener;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::PathBuf;

use portcullis_sandbox::{IsolationMode, Owner, Stage};
use portcullis_syscall_broker::transport::{self, Message};

use crate::layer::failure::StepRefusal;
use crate::pidfd::process_number;
use crate::wire::{Event, Setup};
use crate::{Ends, Listeners, NoGate, StartError};

/// Sends the setup to the keeper, with the descriptors of its broker: the sockets on which it reports calls and
/// connections, and the files of the name order. Returns the keeper's pidfd with the result of the setup.
pub(super) fn set_up(
    socket: &OwnedFd,
    setup: &Setup,
    given: Vec<OwnedFd>,
    isolation: IsolationMode,
) -> Result<(OwnedFd, Result<Ready, StartError>), StartError> {
    let tell = || {
        let given: Vec<BorrowedFd<'_>> = given.iter().map(AsFd::as_fd).collect();
        transport::send(socket, &setup.encode(), &given).map_err(|_gone| StartError::Lost)
    };
    let mapped = setup.acting.filter(|_| isolation == IsolationMode::Namespaces);
    let Some(owner) = mapped else {
        // The message is queued until the keeper reads it. If the namespaces could not be created, the reply says why.
        let told = tell();
        let (keeper, ready) = both_messages(socket)?;
        return Ok((keeper, told.and(ready)));
    };
    let keeper = first_message(socket)?;
    let mapped = map_both(&keeper, owner).map_err(|source| StartError::Refused {
        stage: Stage::Identity,
        path: None,
        source,
    });
    let ready = mapped.and_then(|()| tell()).and_then(|()| wait_until_ready(socket));
    Ok((keeper, ready))
}

/// Receives the messages of the first process and the keeper; the keeper's may arrive first.
fn both_messages(socket: &OwnedFd) -> Result<(OwnedFd, Result<Ready, StartError>), StartError> {
    let (event, descriptors) = next_message(socket)?;
    if event == Event::Keeper {
        return Ok((one(descriptors)?, wait_until_ready(socket)));
    }
    let ready = ready(event, descriptors);
    // Without a keeper the first process has failed.
    match (first_message(socket), ready) {
        (Ok(keeper), ready) => Ok((keeper, ready)),
        (Err(_), Err(failure)) => Err(failure),
        (Err(error), Ok(_)) => Err(error),
    }
}

/// Maps root and the user as whom commands act in the keeper's user namespace.
///
/// The keeper itself could map one user only; mapping two requires a process outside with privileges over both.
fn map_both(keeper: &OwnedFd, owner: Owner) -> io::Result<()> {
    let pid = process_number(keeper).ok_or(io::ErrorKind::NotFound)?;
    let map =
        |name, number| std::fs::write(format!("/proc/{pid}/{name}"), format!("0 0 1\n{number} {number} 1"));
    map("uid_map", owner.uid)?;
    if owner.gid == 0 {
        return std::fs::write(format!("/proc/{pid}/gid_map"), "0 0 1");
    }
    map("gid_map", owner.gid)
}

fn first_message(socket: &OwnedFd) -> Result<OwnedFd, StartError> {
    let (event, descriptors) = next_message(socket)?;
    match event {
        Event::Keeper => one(descriptors),
        Event::Failed { refusal, path } => Err(start_error(refusal, path)),
        Event::Ready { .. }
        | Event::Started { .. }
        | Event::NotStarted { .. }
        | Event::Socket { .. }
        | Event::Ended { .. } => Err(StartError::Lost),
    }
}

fn one(descriptors: Vec<OwnedFd>) -> Result<OwnedFd, StartError> {
    let [keeper] = <[OwnedFd; 1]>::try_from(descriptors).map_err(|_wrong_count| StartError::Lost)?;
    Ok(keeper)
}

/// The report of a keeper when it is ready.
pub(super) struct Ready {
    pub(super) root: OwnedFd,
    pub(super) mounts: OwnedFd,
    pub(super) landlock: u32,
    pub(super) processes_are_bounded: bool,
    /// The errno for which the keeper is not in the group created for it; 0 if it is.
    pub(super) no_group: i32,
    pub(super) gate: Result<Vec<OwnedFd>, NoGate>,
}

fn wait_until_ready(socket: &OwnedFd) -> Result<Ready, StartError> {
    let (event, descriptors) = next_message(socket)?;
    ready(event, descriptors)
}

fn ready(event: Event, descriptors: Vec<OwnedFd>) -> Result<Ready, StartError> {
    let mut descriptors = descriptors.into_iter();
    match (event, descriptors.next(), descriptors.next()) {
        (Event::Ready { landlock, processes_are_bounded, no_group, no_gate }, Some(root), Some(mounts)) => {
            let gate = match no_gate {
                None => Ok(descriptors.collect()),
                Some(StepRefusal { stage, errno }) => {
                    Err(NoGate::Refused { stage, source: io::Error::from_raw_os_error(errno) })
                }
            };
            Ok(Ready { root, mounts, landlock, processes_are_bounded, no_group, gate })
        }
        (Event::Failed { refusal, path }, ..) => Err(start_error(refusal, path)),
        _ => Err(StartError::Lost),
    }
}

fn next_message(socket: &OwnedFd) -> Result<(Event, Vec<OwnedFd>), StartError> {
    let received = match transport::receive(socket) {
        // A first process that fails leaves its setup unread, and the kernel reports that before the process's message.
        Err(error) if error.kind() == io::ErrorKind::ConnectionReset => transport::receive(socket),
        received => received,
    };
    let Ok(Some(Message { bytes, descriptors, .. })) = received else { return Err(StartError::Lost) };
    let event = Event::decode(&bytes).map_err(|_garbled| StartError::Lost)?;
    Ok((event, descriptors))
}

fn start_error(refusal: StepRefusal, path: PathBuf) -> StartError {
    if refusal.stage == Stage::ForeignOwner {
        return StartError::ForeignOwner { path };
    }
    StartError::Refused {
        stage: refusal.stage,
        path: (!path.as_os_str().is_empty()).then_some(path),
        source: io::Error::from_raw_os_error(refusal.errno),
    }
}

/// The number of descriptors of each address family; see [`ends`].
const OF_A_FAMILY: usize = 3;

/// Gives the listeners their types, in the order in which the keeper sends them.
pub(super) fn listeners(descriptors: Vec<OwnedFd>, keeper: &OwnedFd) -> Result<Listeners, NoGate> {
    let has_diagnosis = descriptors.len() % OF_A_FAMILY == 2;
    let mut descriptors = descriptors.into_iter();
    let proxy = TcpListener::from(descriptors.next().ok_or(NoGate::Lost)?);
    let diagnosis = if has_diagnosis { descriptors.next() } else { None };
    let v4 = ends(&mut descriptors).ok_or(NoGate::Lost)?;
    let v6 = ends(&mut descriptors);
    let keeper = process_number(keeper).ok_or(NoGate::Lost)?;
    Ok(Listeners { proxy, diagnosis, v4, v6, calls: None, keeper })
}

fn ends(descriptors: &mut impl Iterator<Item = OwnedFd>) -> Option<Ends> {
    Some(Ends {
        relay: descriptors.next()?.into(),
        dns: descriptors.next()?.into(),
        dns_stream: descriptors.next()?.into(),
    })
}

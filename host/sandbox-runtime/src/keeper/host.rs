//! The keeper's end of the socket to the host.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::PathBuf;

use portcullis_sandbox::OrderFiles;
use portcullis_syscall_broker::transport;
use rustix::fs::{CWD, Mode, OFlags, openat};

use crate::layer::failure::{Failure, StepRefusal};
use crate::layer::network;
use crate::wire::{Event, Setup};

/// Descriptors for the host, of which this process keeps none.
pub(super) struct Ready {
    pub(super) root: OwnedFd,
    pub(super) mounts: OwnedFd,
    pub(super) gate: Result<Option<network::Gate>, Failure>,
}

impl Ready {
    /// Tells the host that the sandbox is ready.
    pub(super) fn tell(self, control: &OwnedFd, landlock: u32, processes_are_bounded: bool, no_group: i32) {
        let no_gate = self.gate.as_ref().err().map(Failure::refusal);
        let gate = self.gate.as_ref().ok().and_then(Option::as_ref);
        let mut descriptors = vec![self.root.as_fd(), self.mounts.as_fd()];
        descriptors.extend(gate.map(network::Gate::descriptors).unwrap_or_default());
        let event = Event::Ready { landlock, processes_are_bounded, no_group, no_gate };
        tell(control, &event, &descriptors);
    }
}

/// Moves the socket to the host from standard input to a descriptor that no command can inherit.
pub(super) fn take_control() -> rustix::io::Result<OwnedFd> {
    let control = rustix::io::fcntl_dupfd_cloexec(rustix::stdio::stdin(), 3)?;
    let nothing = openat(CWD, "/dev/null", OFlags::RDWR | OFlags::CLOEXEC, Mode::empty())?;
    rustix::stdio::dup2_stdin(nothing)?;
    Ok(control)
}

/// The host's descriptors for the broker.
pub(super) struct HostDescriptors {
    /// The socket on which the broker reports waiting calls.
    pub(super) asks: OwnedFd,
    /// The socket on which it reports waiting connections.
    pub(super) connects: OwnedFd,
    /// The files of the name order, if other sandboxes share it.
    pub(super) order: Option<OrderFiles>,
}

/// Reads the host's setup, and its descriptors for the broker.
pub(super) fn read_setup(control: &OwnedFd) -> Option<(Setup, HostDescriptors)> {
    let message = transport::receive(control).ok()??;
    let setup = Setup::decode(&message.bytes).ok()?;
    let mut given = message.descriptors.into_iter();
    let (asks, connects) = (given.next()?, given.next()?);
    let order = OrderFiles::from_list(given.collect()).ok()?;
    Some((setup, HostDescriptors { asks, connects, order }))
}

/// Opens the root directory and the mount namespace, for the host.
pub(super) fn open_view() -> rustix::io::Result<(OwnedFd, OwnedFd)> {
    rustix::process::chdir("/")?;
    let root = openat(CWD, "/", OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty())?;
    let mounts = openat(CWD, "/proc/self/ns/mnt", OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty())?;
    Ok((root, mounts))
}

/// Returns the event that reports a failed setup.
pub(super) fn failed(failure: &Failure) -> Event {
    let StepRefusal { stage, errno } = failure.refusal();
    Event::Failed { refusal: StepRefusal { stage, errno }, path: PathBuf::from(&failure.path) }
}

/// Sends an event to the host. If the host has ended the event is lost, and the keeper ends soon.
pub(super) fn tell(control: &OwnedFd, event: &Event, descriptors: &[BorrowedFd<'_>]) {
    drop(transport::send(control, &event.encode(), descriptors));
}

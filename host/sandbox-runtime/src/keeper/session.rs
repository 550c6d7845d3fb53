//! The data that all commands of a session share.

use std::os::fd::OwnedFd;

use portcullis_sandbox::{IsolationMode, Limits};
use portcullis_sys::memory::SharedNumbers;
use portcullis_sys::process::Fenced;
use portcullis_syscall_broker as broker;

use crate::layer::landlock::Landlock;
use crate::layer::namespaces::Identity;

/// The data that all commands of the session share.
pub(super) struct Session {
    pub(super) identity: Identity,
    pub(super) limits: Limits,
    /// Whether the kernel refuses processes above the limit, even to root.
    pub(super) processes_are_bounded: bool,
    /// `None` if the kernel has no usable Landlock.
    pub(super) landlock: Option<Landlock>,
    /// `None` if there are no rules over names.
    pub(super) broker: Option<broker::Handle>,
    /// The running commands, by which the broker finds the command of a caller.
    pub(super) commands: SharedNumbers,
    /// Limits the reach of signals if there are no namespaces.
    pub(super) fence: Option<SignalScopes>,
}

/// The Landlock scopes for signals: those of this process and, as further rules, those of each init.
pub(super) struct SignalScopes {
    pub(super) own: Fenced,
    /// Kept as long as the process lives.
    pub(super) of_inits: &'static OwnedFd,
}

impl Session {
    /// Returns what separates the commands from the machine.
    pub(super) fn isolation(&self) -> IsolationMode {
        if self.fence.is_some() { IsolationMode::Landlock } else { IsolationMode::Namespaces }
    }
}

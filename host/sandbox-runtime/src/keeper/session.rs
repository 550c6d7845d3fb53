//! The data that all commands of a session share.

use std::os::fd::OwnedFd;

use portcullis_sandbox::{IsolationMode, Limits};
use portcullis_sys::memory::SharedNumbers;
use portcullis_sys::process::Fenced;
use portcullis_syscall_broker as broker;
use rustix::fs::{FileType, fstat};
use rustix::io::{self, fcntl_dupfd_cloexec};

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
    /// The sandbox's own `/dev/null`, if there are mounts.
    pub(super) null: Option<OwnedFd>,
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
    /// Replaces the machine's `/dev/null` among the standard streams of a command by the sandbox's own: through the
    /// machine's, root could change the mode of the device.
    pub(super) fn with_own_null(&self, stdio: [OwnedFd; 3]) -> io::Result<[OwnedFd; 3]> {
        let Some(null) = &self.null else { return Ok(stdio) };
        let device = fstat(null)?.st_rdev;
        let [input, output, error] = stdio.map(|stream| {
            let status = fstat(&stream)?;
            let is_device = FileType::from_raw_mode(status.st_mode) == FileType::CharacterDevice;
            if is_device && status.st_rdev == device { fcntl_dupfd_cloexec(null, 3) } else { Ok(stream) }
        });
        Ok([input?, output?, error?])
    }

    /// Returns what separates the commands from the machine.
    pub(super) fn isolation(&self) -> IsolationMode {
        if self.fence.is_some() { IsolationMode::Landlock } else { IsolationMode::Namespaces }
    }
}

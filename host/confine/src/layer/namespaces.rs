//! Namespaces: what the session does not share with the host.

use std::fs;

use portcullis_sys::process::CloneFlags;
use rustix::process::{getegid, geteuid};

use super::{During, Failure};
use crate::Stage;

/// Returns what a keeper has of its own.
pub(crate) fn of_a_session() -> CloneFlags {
    CloneFlags::USER
        | CloneFlags::MOUNT
        | CloneFlags::PID
        | CloneFlags::IPC
        | CloneFlags::UTS
        | CloneFlags::NETWORK
}

/// Returns what a command has of its own besides.
pub(crate) fn of_a_command() -> CloneFlags {
    CloneFlags::PID | CloneFlags::MOUNT
}

/// Who the user is; inside a new user namespace it cannot be asked until it is mapped.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Identity {
    uid: u32,
    gid: u32,
}

impl Identity {
    pub(crate) fn current() -> Self {
        Self { uid: geteuid().as_raw(), gid: getegid().as_raw() }
    }

    pub(crate) fn is_root(self) -> bool {
        self.uid == 0
    }

    /// Makes the user the same one inside the new user namespace, and the only one.
    ///
    /// See user_namespaces(7): without `deny` a user may not map a group.
    pub(crate) fn map(self) -> Result<(), Failure> {
        fs::write("/proc/self/setgroups", "deny").during(Stage::Identity)?;
        fs::write("/proc/self/uid_map", format!("{0} {0} 1", self.uid)).during(Stage::Identity)?;
        fs::write("/proc/self/gid_map", format!("{0} {0} 1", self.gid)).during(Stage::Identity)
    }
}

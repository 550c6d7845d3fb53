//! Namespaces: what the session does not share with the host.

use std::fs;

use portcullis_sys::process::CloneFlags;
use rustix::process::{Gid, Uid, getegid, geteuid};
use rustix::thread::{
    capabilities, set_capabilities, set_keep_capabilities, set_thread_groups, set_thread_res_gid,
    set_thread_res_uid,
};

use super::{During, Failure};
use crate::{Owner, Stage};

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

    /// Lets root go and be the owner of the project, in all that this process does and starts; both are mapped.
    ///
    /// What the keeper may do to its own namespaces it keeps.
    pub(crate) fn act_as(self, owner: Owner) -> Result<Self, Failure> {
        become_owner(owner).during(Stage::Identity)?;
        Ok(Self { uid: owner.uid, gid: owner.gid })
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

/// The process has one thread, so what is set for the thread is set for all.
fn become_owner(owner: Owner) -> rustix::io::Result<()> {
    let (uid, gid) = (Uid::from_raw(owner.uid), Gid::from_raw(owner.gid));
    set_keep_capabilities(true)?;
    set_thread_groups(&[])?;
    set_thread_res_gid(gid, gid, gid)?;
    set_thread_res_uid(uid, uid, uid)?;
    set_keep_capabilities(false)?;
    // They were kept, but are not in force until that is asked for.
    let mut held = capabilities(None)?;
    held.effective = held.permitted;
    set_capabilities(None, held)
}

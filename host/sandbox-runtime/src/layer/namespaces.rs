//! Namespaces, which separate the session from the host.

use std::fs;

use portcullis_sandbox::{Owner, Stage};
use portcullis_sys::process::CloneFlags;
use rustix::process::{Gid, Uid, getegid, geteuid};
use rustix::thread::{
    capabilities, set_capabilities, set_keep_capabilities, set_thread_groups, set_thread_res_gid,
    set_thread_res_uid,
};

use super::failure::{During, Failure};

/// Returns the namespaces of a keeper.
pub(crate) fn of_a_session() -> CloneFlags {
    CloneFlags::USER
        | CloneFlags::MOUNT
        | CloneFlags::PID
        | CloneFlags::IPC
        | CloneFlags::UTS
        | CloneFlags::NETWORK
}

/// Returns the additional namespaces of a command.
pub(crate) fn of_a_command() -> CloneFlags {
    CloneFlags::PID | CloneFlags::MOUNT
}

/// The user's ids; in a new user namespace they are unknown until they are mapped.
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

    /// Switches from root to the owner of the project, for this process and all that it starts; both are mapped.
    ///
    /// The keeper keeps its capabilities over its own namespaces.
    pub(crate) fn act_as(self, owner: Owner) -> Result<Self, Failure> {
        become_owner(owner).during(Stage::Identity)?;
        Ok(Self { uid: owner.uid, gid: owner.gid })
    }

    /// Maps the user to the same ids in the new user namespace, as the only user.
    ///
    /// See user_namespaces(7): without `deny` a user may not map a group.
    pub(crate) fn map(self) -> Result<(), Failure> {
        fs::write("/proc/self/setgroups", "deny").during(Stage::Identity)?;
        fs::write("/proc/self/uid_map", format!("{0} {0} 1", self.uid)).during(Stage::Identity)?;
        fs::write("/proc/self/gid_map", format!("{0} {0} 1", self.gid)).during(Stage::Identity)
    }
}

/// The process has one thread, so settings of the thread apply to the process.
fn become_owner(owner: Owner) -> rustix::io::Result<()> {
    let (uid, gid) = (Uid::from_raw(owner.uid), Gid::from_raw(owner.gid));
    set_keep_capabilities(true)?;
    set_thread_groups(&[])?;
    set_thread_res_gid(gid, gid, gid)?;
    set_thread_res_uid(uid, uid, uid)?;
    set_keep_capabilities(false)?;
    // The capabilities were kept as permitted, and must be made effective again.
    let mut held = capabilities(None)?;
    held.effective = held.permitted;
    set_capabilities(None, held)
}

//! `/proc` of the session and of each command.

use std::path::Path;

use rustix::fs::CWD;
use rustix::mount::{MountAttrFlags, OpenTreeFlags, open_tree};

use super::mounts::{attach, new_filesystem};
use super::namespaces::Identity;
use super::{During, Failure};
use crate::Stage;

const PROC: &str = "/proc";
/// What the kernel tells about itself to root alone, also to one without capabilities.
const FOR_ROOT: [&str; 5] = ["/proc/kcore", "/proc/keys", "/proc/kallsyms", "/proc/timer_list", "/proc/kmsg"];

/// Mounts a `/proc` that knows the processes of the calling process's pid namespace.
///
/// It is read-only for everyone: root needs no capability to write below `/proc/sys` and to
/// `/proc/sysrq-trigger`. Descriptors reopened through `/proc/self/fd` keep the rights of their own mounts.
pub(crate) fn enforce() -> Result<(), Failure> {
    let attributes = MountAttrFlags::MOUNT_ATTR_RDONLY
        | MountAttrFlags::MOUNT_ATTR_NOSUID
        | MountAttrFlags::MOUNT_ATTR_NODEV
        | MountAttrFlags::MOUNT_ATTR_NOEXEC;
    let proc = new_filesystem("proc", &[], attributes).during(Stage::Proc)?;
    attach(&proc, Path::new(PROC)).during(Stage::Proc)
}

/// Covers what only root could read, for a command of root.
pub(crate) fn mask(identity: Identity) -> Result<(), Failure> {
    if !identity.is_root() {
        return Ok(());
    }
    for path in FOR_ROOT.map(Path::new).into_iter().filter(|path| path.exists()) {
        let flags = OpenTreeFlags::OPEN_TREE_CLONE | OpenTreeFlags::OPEN_TREE_CLOEXEC;
        let nothing = open_tree(CWD, "/dev/null", flags).during_at(Stage::Proc, path)?;
        attach(&nothing, path).during_at(Stage::Proc, path)?;
    }
    Ok(())
}

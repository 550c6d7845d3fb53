//! `/proc` of the session and of each command.

use std::os::fd::OwnedFd;
use std::path::Path;

use rustix::fs::{CWD, Mode, OFlags, openat};
use rustix::io;
use rustix::mount::{MountAttrFlags, OpenTreeFlags, open_tree};

use super::mounts::{attach_opened, new_filesystem};
use super::namespaces::Identity;
use super::{During, Failure};
use crate::Stage;

const PROC: &str = "/proc";
/// The user's keys, whose names are shown to everyone who may see them.
const KEYS: &str = "/proc/keys";
/// What the kernel tells about itself to root alone, also to one without capabilities.
const FOR_ROOT: [&str; 4] = ["/proc/kcore", "/proc/kallsyms", "/proc/timer_list", "/proc/kmsg"];

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
    attach_here(&proc, Path::new(PROC)).during(Stage::Proc)
}

/// Puts a mount over a path at which no command can put a link. The filter that is in force by now knows no
/// `openat2`.
fn attach_here(mount: &OwnedFd, path: &Path) -> io::Result<()> {
    let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    attach_opened(mount, &openat(CWD, path, flags, Mode::empty())?)
}

/// Covers what tells about more than the session's processes.
pub(crate) fn mask(identity: Identity) -> Result<(), Failure> {
    let for_root = if identity.is_root() { FOR_ROOT.as_slice() } else { &[] };
    let all = std::iter::once(&KEYS).chain(for_root).map(Path::new);
    for path in all.filter(|path| path.exists()) {
        let flags = OpenTreeFlags::OPEN_TREE_CLONE | OpenTreeFlags::OPEN_TREE_CLOEXEC;
        let nothing = open_tree(CWD, "/dev/null", flags).during_at(Stage::Proc, path)?;
        attach_here(&nothing, path).during_at(Stage::Proc, path)?;
    }
    Ok(())
}

//! `/proc` of the session and of each command.

use std::ffi::{CStr, OsStr};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use portcullis_sandbox::Stage;
use portcullis_sandbox::kernel_files::{FOR_ROOT, KEYS};
use portcullis_sys::launch::Script;
use rustix::fs::{CWD, Mode, OFlags, openat};
use rustix::io::Errno;
use rustix::mount::MountAttrFlags;

use super::failure::{During, Failure};
use super::mount_calls::{attach, new_filesystem};
use super::namespaces::Identity;

const PROC: &CStr = c"/proc";
const NULL: &CStr = c"/dev/null";
/// Returns mount attributes that make `/proc` read-only: root needs no capability to write below `/proc/sys` and to
/// `/proc/sysrq-trigger`. Descriptors reopened through `/proc/self/fd` keep the rights of their own mounts.
fn attributes() -> MountAttrFlags {
    MountAttrFlags::MOUNT_ATTR_RDONLY
        | MountAttrFlags::MOUNT_ATTR_NOSUID
        | MountAttrFlags::MOUNT_ATTR_NODEV
        | MountAttrFlags::MOUNT_ATTR_NOEXEC
}

/// Mounts a `/proc` of the calling process's pid namespace.
pub(crate) fn enforce() -> Result<(), Failure> {
    let proc = new_filesystem("proc", &[], attributes()).during(Stage::Proc)?;
    attach(&proc, path(PROC)).during(Stage::Proc)
}

/// Makes a command's init do the same, and mask files that tell about more than the session's processes.
pub(crate) fn prepare_for_init(script: &mut Script<'_>, identity: Identity) {
    let label = Stage::Proc.number();
    script.mount_new(label, c"proc".into(), attributes().bits(), PROC.into());
    let for_root = if identity.is_root() { FOR_ROOT.as_slice() } else { &[] };
    // Every `/proc` has the same files, so the session's shows which exist. A file that the kernel refuses to the
    // keeper is refused to commands as well, which have fewer privileges: a mask would cost time at every start and
    // hide nothing.
    let keys = std::iter::once(&KEYS).filter(|file| path(file).exists());
    let masked = keys.chain(for_root.iter().filter(|file| !is_refused(file)));
    masked.for_each(|file| script.mount_copy(label, NULL.into(), (*file).into()));
}

/// Returns true if the kernel refuses the file, or does not have it; any other error proves nothing.
fn is_refused(file: &CStr) -> bool {
    let opened = openat(CWD, file, OFlags::RDONLY | OFlags::NONBLOCK | OFlags::CLOEXEC, Mode::empty());
    matches!(opened, Err(Errno::PERM | Errno::ACCESS | Errno::NOENT))
}

fn path(name: &CStr) -> &Path {
    Path::new(OsStr::from_bytes(name.to_bytes()))
}

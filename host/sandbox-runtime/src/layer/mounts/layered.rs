//! Directories of the machine over which changes are kept elsewhere, see the kernel's overlayfs.rst.

use std::os::fd::{AsRawFd as _, OwnedFd};
use std::path::Path;

use rustix::fs::OFlags;
use rustix::io;
use rustix::mount::{
    FsMountFlags, FsOpenFlags, MountAttrFlags, fsconfig_create, fsconfig_set_flag, fsconfig_set_string,
    fsmount, fsopen,
};

use super::super::mount_calls::open;

/// Returns a mount of `lower` whose changes go to `upper`.
///
/// In a user namespace the file system keeps its own records in attributes of the user (`userxattr`, Linux 5.11).
pub(super) fn mount(lower: &Path, upper: &Path, work: &Path) -> io::Result<OwnedFd> {
    let directory = |path| open(path, OFlags::DIRECTORY);
    let layers =
        [("lowerdir", directory(lower)?), ("upperdir", directory(upper)?), ("workdir", directory(work)?)];
    let context = fsopen("overlay", FsOpenFlags::FSOPEN_CLOEXEC)?;
    fsconfig_set_flag(&context, "userxattr")?;
    for (name, layer) in &layers {
        // By descriptor, so that what was opened is what is mounted, and no character of a path means anything.
        fsconfig_set_string(&context, *name, format!("/proc/self/fd/{}", layer.as_raw_fd()))?;
    }
    fsconfig_create(&context)?;
    let harmless = MountAttrFlags::MOUNT_ATTR_NOSUID | MountAttrFlags::MOUNT_ATTR_NODEV;
    fsmount(&context, FsMountFlags::FSMOUNT_CLOEXEC, harmless)
}

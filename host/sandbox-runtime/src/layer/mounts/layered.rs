//! Overlay mounts over directories of the machine, see the kernel's overlayfs.rst.

use std::os::fd::{AsRawFd as _, OwnedFd};
use std::path::{Path, PathBuf};

use rustix::fs::OFlags;
use rustix::io;
use rustix::mount::{
    FsMountFlags, FsOpenFlags, MountAttrFlags, fsconfig_create, fsconfig_set_flag, fsconfig_set_string,
    fsmount, fsopen,
};

use super::super::mount_calls::open;

/// Returns a mount of the `lower` directories, whose changes go to `upper`.
///
/// In a user namespace the file system keeps its own records in attributes of the user (`userxattr`, Linux 5.11).
pub(super) fn mount(lower: &[PathBuf], upper: &Path, work: &Path) -> io::Result<OwnedFd> {
    let directory = |path: &Path| open(path, OFlags::DIRECTORY);
    let lower = lower.iter().map(|path| directory(path)).collect::<io::Result<Vec<OwnedFd>>>()?;
    let (upper, work) = (directory(upper)?, directory(work)?);
    // By descriptor, so that the opened directory is mounted, and no character of a path has a meaning.
    let name = |directory: &OwnedFd| format!("/proc/self/fd/{}", directory.as_raw_fd());
    let lowest: Vec<String> = lower.iter().map(name).collect();
    let context = fsopen("overlay", FsOpenFlags::FSOPEN_CLOEXEC)?;
    fsconfig_set_flag(&context, "userxattr")?;
    for (option, value) in
        [("lowerdir", lowest.join(":")), ("upperdir", name(&upper)), ("workdir", name(&work))]
    {
        fsconfig_set_string(&context, option, value)?;
    }
    fsconfig_create(&context)?;
    let harmless = MountAttrFlags::MOUNT_ATTR_NOSUID | MountAttrFlags::MOUNT_ATTR_NODEV;
    fsmount(&context, FsMountFlags::FSMOUNT_CLOEXEC, harmless)
}

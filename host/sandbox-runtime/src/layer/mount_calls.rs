//! The kernel's calls for making mounts.

use std::os::fd::{AsFd, OwnedFd};
use std::path::Path;

use rustix::fs::{CWD, Mode, OFlags, ResolveFlags, openat2};
use rustix::io;
use rustix::mount::{
    FsMountFlags, FsOpenFlags, MountAttrFlags, MoveMountFlags, OpenTreeFlags, fsconfig_create,
    fsconfig_set_string, fsmount, fsopen, move_mount, open_tree,
};

/// Opens a path with O_PATH; a symbolic link in it is refused.
pub(crate) fn open(path: &Path, kind: OFlags) -> io::Result<OwnedFd> {
    let no_links = ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_MAGICLINKS;
    openat2(CWD, path, OFlags::PATH | OFlags::CLOEXEC | kind, Mode::empty(), no_links)
}

/// Copies the mounts at and below an opened place.
///
/// Always recursively: in a less privileged mount namespace the kernel refuses to leave covering mounts out.
pub(crate) fn copy_opened(place: &OwnedFd) -> io::Result<OwnedFd> {
    let flags = OpenTreeFlags::OPEN_TREE_CLONE
        | OpenTreeFlags::OPEN_TREE_CLOEXEC
        | OpenTreeFlags::AT_EMPTY_PATH
        | OpenTreeFlags::AT_RECURSIVE;
    open_tree(place, "", flags)
}

/// Mounts over a path; a symbolic link in it is refused.
pub(crate) fn attach(mount: impl AsFd, path: &Path) -> io::Result<()> {
    let target = open(path, OFlags::empty())?;
    let both_opened = MoveMountFlags::MOVE_MOUNT_F_EMPTY_PATH | MoveMountFlags::MOVE_MOUNT_T_EMPTY_PATH;
    move_mount(mount, "", target, "", both_opened)
}

/// Creates a file system that is not attached yet.
pub(crate) fn new_filesystem(
    kind: &str,
    options: &[(&str, &str)],
    attributes: MountAttrFlags,
) -> io::Result<OwnedFd> {
    let context = fsopen(kind, FsOpenFlags::FSOPEN_CLOEXEC)?;
    for (name, value) in options {
        fsconfig_set_string(&context, *name, *value)?;
    }
    fsconfig_create(&context)?;
    fsmount(&context, FsMountFlags::FSMOUNT_CLOEXEC, attributes)
}

//! The mounts of a plan: all are opened and copied first, then attached.
//!
//! All copies are made before anything is covered, because a place that is shown inside a hidden one cannot be reached
//! once that is hidden. The new mount calls are used throughout (Linux 5.2, and mount_setattr since 5.12).

use std::os::fd::{AsFd, OwnedFd};
use std::path::Path;

use portcullis_sys::mount::{Attributes, Reach, add_attributes};
use rustix::fs::{Access, AtFlags, CWD, Mode, OFlags, ResolveFlags, accessat, openat2};
use rustix::io::{self, Errno};
use rustix::mount::{
    FsMountFlags, FsOpenFlags, MountAttrFlags, MountPropagationFlags, MoveMountFlags, OpenTreeFlags,
    fsconfig_create, fsconfig_set_string, fsmount, fsopen, mount_change, move_mount, open_tree,
};

use super::{During, Failure, devices, processes};
use crate::Stage;
use crate::plan::{Plan, Step, Writable};

mod masks;
mod reach;
use masks::Masks;
use reach::within_reach;

/// Returns the attributes of every copied mount: no set-user-id programs and no devices.
fn harmless() -> Attributes {
    Attributes::NO_SETUID | Attributes::NO_DEVICES
}

/// Makes the plan's mounts, in a mount namespace that only the caller uses; file systems in memory are limited to
/// `memory_bytes`.
pub(crate) fn enforce(plan: &Plan, memory_bytes: Option<u64>) -> Result<(), Failure> {
    let root = Path::new("/");
    let all_private = MountPropagationFlags::PRIVATE | MountPropagationFlags::REC;
    mount_change(root, all_private).during_at(Stage::MountAttributes, root)?;
    let steps = within_reach(plan.steps())?;
    let masks = Masks::prepare(&steps)?;
    let prepared = steps.iter().map(prepare).collect::<Result<Vec<_>, _>>()?;
    let system = open(root, OFlags::DIRECTORY).during_at(Stage::OpenPlace, root)?;
    add_attributes(&system, Reach::Tree, harmless() | Attributes::READ_ONLY)
        .during_at(Stage::MountAttributes, root)?;
    let mut masks = masks.into_iter();
    for (step, prepared) in steps.iter().zip(&prepared) {
        put_in_place(step, prepared, &mut masks, memory_bytes)?;
    }
    Ok(())
}

enum Prepared {
    Nothing,
    Copy(OwnedFd),
    Devices(devices::Prepared),
}

fn prepare(step: &Step) -> Result<Prepared, Failure> {
    Ok(match step {
        Step::Prepare { directory, openings } => {
            let root = open(directory, OFlags::DIRECTORY).during_at(Stage::OpenPlace, directory)?;
            masks::make_names(&root, openings).during_at(Stage::AttachMount, directory)?;
            Prepared::Nothing
        }
        Step::Pin { path }
        | Step::Temp { directory: path }
        | Step::Show { path, writable: Writable::Yes } => Prepared::Copy(copy(path, harmless())?),
        Step::Show { path, writable: Writable::No } => {
            Prepared::Copy(copy(path, harmless() | Attributes::READ_ONLY)?)
        }
        Step::Devices => Prepared::Devices(devices::prepare()?),
        Step::Processes | Step::HideDirectory { .. } | Step::HideFile { .. } | Step::Resolver { .. } => {
            Prepared::Nothing
        }
    })
}

fn put_in_place(
    step: &Step,
    prepared: &Prepared,
    masks: &mut impl Iterator<Item = OwnedFd>,
    memory_bytes: Option<u64>,
) -> Result<(), Failure> {
    let target = match step {
        Step::Temp { .. } => Path::new("/tmp"),
        Step::Pin { path }
        | Step::Show { path, .. }
        | Step::HideDirectory { path, .. }
        | Step::HideFile { path }
        | Step::Resolver { path } => path,
        Step::Prepare { .. } | Step::Devices => Path::new("/dev"),
        Step::Processes => return processes::enforce(),
    };
    let attach_here = |mount: &OwnedFd| attach(mount, target).during_at(Stage::AttachMount, target);
    match (step, prepared) {
        (_, Prepared::Copy(mount)) => attach_here(mount),
        (_, Prepared::Devices(nodes)) => devices::enforce(nodes, memory_bytes),
        (Step::HideDirectory { .. } | Step::HideFile { .. } | Step::Resolver { .. }, Prepared::Nothing) => {
            let mask = masks.next().ok_or(Errno::INVAL).during_at(Stage::AttachMount, target)?;
            attach_here(&mask)
        }
        (_, Prepared::Nothing) => Ok(()),
    }
}

/// Checks that root may write in writable places: root without capabilities is an ordinary user to other users' files,
/// and an error here is better than `EACCES` during the work. The keeper has no more privileges than commands here.
pub(crate) fn check_owners(plan: &Plan) -> Result<(), Failure> {
    for step in plan.steps() {
        if let Step::Show { path, writable: Writable::Yes } = step
            && accessat(CWD, path, Access::WRITE_OK, AtFlags::EACCESS) == Err(Errno::ACCESS)
        {
            return Err(Errno::ACCESS).during_at(Stage::ForeignOwner, path);
        }
    }
    Ok(())
}

/// Opens a path with O_PATH; a symbolic link in it is refused.
pub(crate) fn open(path: &Path, kind: OFlags) -> io::Result<OwnedFd> {
    let no_links = ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_MAGICLINKS;
    openat2(CWD, path, OFlags::PATH | OFlags::CLOEXEC | kind, Mode::empty(), no_links)
}

/// Copies the mounts at and below a path.
fn copy(path: &Path, attributes: Attributes) -> Result<OwnedFd, Failure> {
    let place = open(path, OFlags::empty()).during_at(Stage::OpenPlace, path)?;
    let mount = copy_opened(&place).during_at(Stage::CopyMounts, path)?;
    add_attributes(&mount, Reach::Tree, attributes).during_at(Stage::MountAttributes, path)?;
    Ok(mount)
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

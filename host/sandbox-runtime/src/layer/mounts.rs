//! The mounts of a plan: all are opened and copied first, then attached.
//!
//! All copies are made before anything is covered, because a place that is shown inside a hidden one cannot be reached
//! once that is hidden. The new mount calls are used throughout (Linux 5.2, and mount_setattr since 5.12).

use std::os::fd::OwnedFd;
use std::path::Path;

use portcullis_sandbox::{MountStep, OwnSource, Owner, Plan, Stage, Writable};
use portcullis_sys::mount::{Attributes, Reach, add_attributes};
use rustix::fs::{Access, AtFlags, CWD, OFlags, accessat};
use rustix::io::Errno;
use rustix::mount::{MountPropagationFlags, mount_change};

use super::failure::{During, Failure};
use super::mount_calls::{attach, copy_opened, open};
use super::{devices, processes};

mod layered;
mod masks;
mod reach;
use masks::Masks;
use reach::within_reach;

/// Returns the attributes of every copied mount: no set-user-id programs and no devices.
fn harmless() -> Attributes {
    Attributes::NO_SETUID | Attributes::NO_DEVICES
}

/// Makes the plan's mounts, in a mount namespace that only the caller uses; file systems in memory are limited to
/// `memory_bytes`. Names that are made in directories of the sandbox's own belong to the user as whom commands are
/// `acting`.
pub(crate) fn enforce(plan: &Plan, memory_bytes: Option<u64>, acting: Option<Owner>) -> Result<(), Failure> {
    let root = Path::new("/");
    let all_private = MountPropagationFlags::PRIVATE | MountPropagationFlags::REC;
    mount_change(root, all_private).during_at(Stage::MountAttributes, root)?;
    let steps = within_reach(plan.steps())?;
    let masks = Masks::prepare(&steps)?;
    let prepared = steps.iter().map(|step| prepare(step, acting)).collect::<Result<Vec<_>, _>>()?;
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

fn prepare(step: &MountStep, acting: Option<Owner>) -> Result<Prepared, Failure> {
    Ok(match step {
        MountStep::Prepare { directory, openings } => {
            let root = open(directory, OFlags::DIRECTORY).during_at(Stage::OpenPlace, directory)?;
            masks::make_own_names(&root, openings, acting).during_at(Stage::AttachMount, directory)?;
            Prepared::Nothing
        }
        MountStep::Pin { path }
        | MountStep::Temp { directory: path }
        | MountStep::Own { source: OwnSource::Plain(path), .. }
        | MountStep::Show { path, writable: Writable::Yes } => Prepared::Copy(copy(path, harmless())?),
        MountStep::Own { source: OwnSource::Layered { lower, upper, work, cold }, .. } => {
            match layered::mount(lower, upper, work) {
                Ok(mount) => Prepared::Copy(mount),
                Err(_) => match (cold, lower.last()) {
                    (Some(cold), _) => Prepared::Copy(copy(cold, harmless())?),
                    (None, Some(lower)) => Prepared::Copy(copy(lower, harmless() | Attributes::READ_ONLY)?),
                    (None, None) => Prepared::Nothing,
                },
            }
        }
        // Never the directory itself: its files must not change.
        MountStep::Own { path, source: OwnSource::Branch { upper, work } } => Prepared::Copy(
            layered::mount(std::slice::from_ref(path), upper, work).during_at(Stage::Branch, path)?,
        ),
        MountStep::Show { path, writable: Writable::No } => {
            Prepared::Copy(copy(path, harmless() | Attributes::READ_ONLY)?)
        }
        MountStep::Devices { given } => Prepared::Devices(devices::prepare(given)?),
        MountStep::Processes
        | MountStep::HideDirectory { .. }
        | MountStep::HideFile { .. }
        | MountStep::Resolver { .. } => Prepared::Nothing,
    })
}

fn put_in_place(
    step: &MountStep,
    prepared: &Prepared,
    masks: &mut impl Iterator<Item = OwnedFd>,
    memory_bytes: Option<u64>,
) -> Result<(), Failure> {
    let target = match step {
        MountStep::Temp { .. } => Path::new("/tmp"),
        MountStep::Pin { path }
        | MountStep::Own { path, .. }
        | MountStep::Show { path, .. }
        | MountStep::HideDirectory { path, .. }
        | MountStep::HideFile { path }
        | MountStep::Resolver { path } => path,
        MountStep::Prepare { .. } | MountStep::Devices { .. } => Path::new("/dev"),
        MountStep::Processes => return processes::enforce(),
    };
    let attach_here = |mount: &OwnedFd| attach(mount, target).during_at(Stage::AttachMount, target);
    match (step, prepared) {
        (_, Prepared::Copy(mount)) => attach_here(mount),
        (_, Prepared::Devices(nodes)) => devices::enforce(nodes, memory_bytes),
        (
            MountStep::HideDirectory { .. } | MountStep::HideFile { .. } | MountStep::Resolver { .. },
            Prepared::Nothing,
        ) => {
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
        if let MountStep::Show { path, writable: Writable::Yes } = step
            && accessat(CWD, path, Access::WRITE_OK, AtFlags::EACCESS) == Err(Errno::ACCESS)
        {
            return Err(Errno::ACCESS).during_at(Stage::ForeignOwner, path);
        }
    }
    Ok(())
}

/// Copies the mounts at and below a path.
fn copy(path: &Path, attributes: Attributes) -> Result<OwnedFd, Failure> {
    let place = open(path, OFlags::empty()).during_at(Stage::OpenPlace, path)?;
    let mount = copy_opened(&place).during_at(Stage::CopyMounts, path)?;
    add_attributes(&mount, Reach::Tree, attributes).during_at(Stage::MountAttributes, path)?;
    Ok(mount)
}

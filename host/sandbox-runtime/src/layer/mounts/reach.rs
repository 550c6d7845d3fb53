//! Handles hidden or read-only paths in directories that neither the keeper nor a command can search.
//!
//! In its user namespace root has no privileges over other users' files, so it cannot mount a mask in another user's
//! directory with mode 0700. Such a directory is masked as a whole, because its owner can open it to others later.

use std::path::Path;

use portcullis_sandbox::{MountStep, Stage, Writable};
use rustix::fs::OFlags;
use rustix::io::Errno;

use super::super::failure::{During, Failure};
use super::super::mount_calls::open;

/// Returns the steps, in which each unreachable path that is to be hidden or made read-only is replaced by hiding the
/// directory around it.
pub(super) fn within_reach(steps: &[MountStep]) -> Result<Vec<MountStep>, Failure> {
    let mut reachable: Vec<MountStep> = Vec::with_capacity(steps.len());
    for step in steps {
        let is_out_of_reach = |path: &Path| open(path, OFlags::empty()).err() == Some(Errno::ACCESS);
        let hidden = match (step, taken_away(step)) {
            // No command can rename anything in there, and the directory around it becomes a mount point.
            (MountStep::Pin { path }, _) if is_out_of_reach(path) => continue,
            (_, Some(path)) if is_out_of_reach(path) => Some(around(path)?),
            _ => None,
        };
        let step = hidden.unwrap_or_else(|| step.clone());
        if !matches!(step, MountStep::HideDirectory { .. }) || !reachable.contains(&step) {
            reachable.push(step);
        }
    }
    Ok(reachable)
}

/// Returns the path of a step that restricts access.
fn taken_away(step: &MountStep) -> Option<&Path> {
    match step {
        MountStep::HideDirectory { path, .. }
        | MountStep::HideFile { path }
        | MountStep::Show { path, writable: Writable::No } => Some(path),
        MountStep::Prepare { .. }
        | MountStep::Pin { .. }
        | MountStep::Devices { .. }
        | MountStep::Processes
        | MountStep::Temp { .. }
        | MountStep::Own { .. }
        | MountStep::Show { writable: Writable::Yes, .. }
        | MountStep::Resolver { .. } => None,
    }
}

/// Returns a step that hides the closest directory around a path that can be masked.
fn around(path: &Path) -> Result<MountStep, Failure> {
    let mut above = path.ancestors().skip(1).take_while(|above| *above != Path::new("/"));
    let closest = above.find(|above| open(above, OFlags::DIRECTORY).is_ok());
    let path = closest.ok_or(Errno::ACCESS).during_at(Stage::AttachMount, path)?.to_owned();
    Ok(MountStep::HideDirectory { path, openings: Vec::new() })
}

//! The ordered steps that implement a profile, computed without touching the machine.

mod nodes;
mod step;

use std::fmt;
use std::path::Path;

use crate::{PlanError, Profile};
pub use step::{MountStep, Opening, PathKind, Writable};

/// The mounts of a session's sandbox, in the order in which they are made.
///
/// There is one mount for each place that differs from the tree around it, and none for others.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Plan {
    steps: Vec<MountStep>,
}

impl Plan {
    /// Computes the steps for a profile; `kind` returns the kind of file at a path, [`PathKind::on_disk`] on a real machine.
    ///
    /// Hidden or read-only places that do not exist are left out: nothing can be mounted there.
    ///
    /// # Errors
    /// If a place is not a plain path, is a symbolic link, is writable but missing, or is reserved for the sandbox.
    pub fn new(profile: &Profile, kind: &dyn Fn(&Path) -> PathKind) -> Result<Self, PlanError> {
        let nodes = nodes::collect(profile, kind)?;
        Ok(Self { steps: nodes::steps(&nodes, &profile.devices) })
    }

    /// Returns the steps in order.
    pub fn steps(&self) -> &[MountStep] {
        &self.steps
    }

    /// Returns the plan of these steps, as another process has computed them.
    pub fn from_steps(steps: Vec<MountStep>) -> Self {
        Self { steps }
    }
}

impl fmt::Display for Plan {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.steps.iter().try_for_each(|step| writeln!(formatter, "{step}"))
    }
}

#[cfg(test)]
mod tests;

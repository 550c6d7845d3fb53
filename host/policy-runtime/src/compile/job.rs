//! A compilation job and its result.

use serde::{Deserialize, Serialize};

/// The output that the compiler produces.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) enum Job {
    /// Machine code of the unconfigured component.
    Component,
    /// Machine code of a snapshot: the component in its state after this configuration.
    Snapshot { configuration: String },
}

/// Machine code made by this host's own compiler, either here or at the other end of a private pipe.
pub(crate) struct Artifact(Vec<u8>);

impl Artifact {
    /// Wraps machine code that the compiler made, in this process or in the compiler process.
    pub(super) fn from_compiler(code: Vec<u8>) -> Self {
        Self(code)
    }

    /// Returns the machine code.
    pub(crate) fn bytes(&self) -> &[u8] {
        &self.0
    }
}

//! A pack to be judged, and the exceptions that the user agrees to.

use std::collections::BTreeSet;

use semver::Version;

use crate::signature::Signatures;

/// The source of a pack that came from a file.
pub const FROM_FILE: &str = "file";

/// The namespace of the policies that are part of the program.
pub(super) const OWN: &str = "portcullis";

/// A pack to be judged.
#[derive(Clone, Copy)]
pub struct Candidate<'a> {
    /// The component.
    pub bytes: &'a [u8],
    /// Its signatures.
    pub signatures: &'a Signatures,
    /// Runs the component and returns its description of itself.
    ///
    /// Called only for bytes that a trusted key has signed or that the user trusts.
    pub describe: &'a dyn Fn() -> Result<Described, Box<dyn std::error::Error + Send + Sync>>,
    /// The requested id. `None` accepts any.
    pub wanted: Option<&'a str>,
    /// The requested version. `None` accepts any.
    pub version: Option<&'a Version>,
    /// The requested exact digest, `sha256:...`.
    pub pinned: Option<&'a str>,
    /// The source of the pack.
    pub source: &'a str,
}

/// A component's description of itself, from running it.
#[derive(Debug, Clone)]
pub struct Described {
    /// The policy's id.
    pub id: String,
    /// The policy's version.
    pub version: String,
}

impl std::fmt::Debug for Candidate<'_> {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter
            .debug_struct("Candidate")
            .field("bytes", &self.bytes.len())
            .field("wanted", &self.wanted)
            .field("source", &self.source)
            .finish_non_exhaustive()
    }
}

/// Exceptions that the user agrees to, in addition to the files.
#[derive(Debug, Clone, Default)]
pub struct Approval {
    /// The capabilities that the user agrees to.
    pub capabilities: BTreeSet<String>,
    /// Allow unsigned bytes, for this one pack.
    pub unsigned: bool,
    /// Allow a version older than the one in use, or other bytes of the same version.
    pub older: bool,
    /// Allow a name that looks like a known one.
    pub similar: bool,
}

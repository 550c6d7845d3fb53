//! The timestamp document: which bundle is the newest.

use portcullis_packs::{Seconds, is_digest};
use serde::{Deserialize, Serialize};

use crate::document::{SignedText, read, unreadable};
use crate::refusal::TeamRefusal;
use crate::root::Root;

/// The role's name, as in the documents.
pub(crate) const TIMESTAMP: &str = "timestamp";
/// Largest number of earlier bundles that a timestamp names.
pub(crate) const EARLIER_MAX: usize = 8;

/// The timestamp.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Timestamp {
    #[serde(rename = "type")]
    pub(crate) role: String,
    /// The team.
    pub team: String,
    /// The version; every new timestamp has a higher one.
    pub version: u64,
    /// The moment from which it counts as expired.
    pub expires_at: Seconds,
    /// The newest bundle.
    pub bundle: BundleAt,
    /// Earlier bundles for machines that cannot use the newest one, the newest first. A machine never goes back to
    /// one.
    #[serde(default)]
    pub earlier: Vec<BundleAt>,
}

/// A bundle, by version and digest.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct BundleAt {
    /// The version.
    pub version: u64,
    /// `sha256:...` of the document.
    pub digest: String,
    /// The size of the document in bytes.
    pub size: u64,
}

impl Timestamp {
    /// Checks the signatures of a timestamp and reads it.
    pub(crate) fn verified(signed: &SignedText, root: &Root) -> Result<Self, TeamRefusal> {
        root.check(signed, TIMESTAMP, &root.roles.timestamp)?;
        let timestamp: Self = read(signed, TIMESTAMP, &root.team)?;
        if timestamp.earlier.len() > EARLIER_MAX {
            return Err(unreadable(TIMESTAMP, "it names more than 8 earlier bundles"));
        }
        let mut before = None;
        for bundle in timestamp.bundles() {
            if !is_digest(&bundle.digest) {
                return Err(unreadable(TIMESTAMP, "a bundle in it has no digest"));
            }
            if before.is_some_and(|before| bundle.version >= before) {
                return Err(unreadable(TIMESTAMP, "its bundles are not in the order of their versions"));
            }
            before = Some(bundle.version);
        }
        Ok(timestamp)
    }

    /// Returns the newest bundle and the earlier ones, in descending order.
    pub(crate) fn bundles(&self) -> impl Iterator<Item = &BundleAt> {
        std::iter::once(&self.bundle).chain(&self.earlier)
    }
}

//! What a machine has accepted from a team, and reading it again when a session starts.

use portcullis_packs::Seconds;
use semver::Version;
use serde::{Deserialize, Serialize};

use crate::bundle::Bundle;
use crate::document::SignedText;
use crate::refusal::TeamRefusal;
use crate::root::Root;

/// The documents that a machine has accepted, in one file: it is replaced as a whole, so no two versions mix.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Held {
    /// The roots, from the pinned one to the newest.
    pub roots: Vec<SignedText>,
    /// The newest timestamp.
    #[serde(default)]
    pub timestamp: Option<SignedText>,
    /// The bundle in force.
    #[serde(default)]
    pub bundle: Option<SignedText>,
    /// When this bundle was accepted.
    #[serde(default)]
    pub since: Seconds,
    /// The lowest acceptable version of a timestamp.
    #[serde(default)]
    pub timestamp_floor: u64,
    /// The lowest acceptable version of a bundle.
    #[serde(default)]
    pub bundle_floor: u64,
    /// The newest bundle that a timestamp has named, accepted or not.
    #[serde(default)]
    pub newest_seen: u64,
    /// When the registry or an archive last confirmed what is held. 0 if it never did.
    #[serde(default)]
    pub checked_at: Seconds,
}

/// The documents of a machine, with every signature checked again.
#[derive(Debug, Clone)]
pub struct Trusted {
    /// The documents.
    pub held: Held,
    /// The newest root.
    pub root: Root,
    /// The bundle in force.
    pub bundle: Option<HeldBundle>,
}

/// The bundle in force on a machine.
#[derive(Debug, Clone)]
pub struct HeldBundle {
    /// Its content.
    pub content: Bundle,
    /// Its digest.
    pub digest: String,
    /// The fingerprints of the keys that have signed it.
    pub signed_by: Vec<String>,
    /// Whether the newest root still names enough of these keys.
    pub is_current: bool,
}

impl HeldBundle {
    /// Returns true if the bundle has expired. What it requires stays in force.
    #[must_use]
    pub fn has_expired(&self, now: Seconds) -> bool {
        self.content.expires_at <= now
    }
}

impl Trusted {
    /// Begins with the pinned root.
    ///
    /// # Errors
    /// When the root is not the pinned one, or its own keys have not signed it.
    pub fn begin(root: SignedText, team: &str, pin: &str) -> Result<Self, TeamRefusal> {
        let read = Root::pinned(&root, team, pin)?;
        Ok(Self { held: Held { roots: vec![root], ..Held::default() }, root: read, bundle: None })
    }

    /// Checks the documents of a machine. Expiry is no reason to refuse here: what was accepted stays in force.
    ///
    /// # Errors
    /// When a document is not signed as it must be, or the pinned root is not among the roots.
    pub fn open(held: Held, team: &str, pin: &str, program: &Version) -> Result<Self, TeamRefusal> {
        let pinned = held.roots.iter().position(|root| root.digest() == pin);
        let from = held.roots.get(pinned.unwrap_or(0)..).unwrap_or_default();
        let mut roots: Vec<Root> = Vec::with_capacity(from.len());
        for signed in from {
            let next = match roots.last() {
                None => Root::pinned(signed, team, pin)?,
                Some(before) => before.next(signed)?,
            };
            roots.push(next);
        }
        let Some(root) = roots.last().cloned() else {
            return Err(TeamRefusal::Pin { wanted: pin.to_owned(), found: "none".to_owned() });
        };
        let bundle = match &held.bundle {
            None => None,
            Some(signed) => Some(opened(signed, &roots, program)?),
        };
        Ok(Self { held, root, bundle })
    }
}

/// Reads a bundle that was accepted under the newest root or an earlier one.
fn opened(signed: &SignedText, roots: &[Root], program: &Version) -> Result<HeldBundle, TeamRefusal> {
    let mut refusal = None;
    for (age, root) in roots.iter().rev().enumerate() {
        match Bundle::verified(signed, root, program) {
            Ok((content, signed_by)) => {
                let digest = signed.digest();
                return Ok(HeldBundle { content, digest, signed_by, is_current: age == 0 });
            }
            // The reason under the newest root says most.
            Err(error) => refusal = refusal.or(Some(error)),
        }
    }
    Err(refusal.unwrap_or_else(|| TeamRefusal::Pin { wanted: "a root".to_owned(), found: "none".to_owned() }))
}

//! A pack that is offered, before it is judged.

use portcullis_packs::{FROM_FILE, Locked, Pack, Signed};

/// A pack that is offered, and the request for it.
#[derive(Debug)]
pub struct Offer {
    /// The component with its signatures.
    pub signed: Signed,
    /// Its source, as in the lock file.
    pub source: String,
    /// The requested id.
    pub wanted: Option<String>,
    /// The requested version.
    pub version: Option<semver::Version>,
    /// The requested digest.
    pub pinned: Option<String>,
    /// The versions that `update` may use.
    pub requirement: Option<semver::VersionReq>,
}

impl Offer {
    /// Returns the offer of a pack from a file.
    #[must_use]
    pub fn of_file(signed: Signed) -> Self {
        Self {
            signed,
            source: FROM_FILE.to_owned(),
            wanted: None,
            version: None,
            pinned: None,
            requirement: None,
        }
    }

    /// Returns the offer of the pack that a lock file names.
    #[must_use]
    pub fn of_locked(signed: Signed, locked: &Locked) -> Self {
        Self {
            signed,
            source: locked.source.clone(),
            wanted: Some(locked.id.clone()),
            version: Some(locked.version.clone()),
            pinned: Some(locked.digest.clone()),
            requirement: locked.requirement.clone(),
        }
    }

    /// Returns a name for messages: the requested one, or the pack's own.
    #[must_use]
    pub fn name(&self) -> String {
        let own = || match Pack::read(&self.signed.bytes) {
            Ok(Some(pack)) => pack.manifest.policy.id,
            Ok(None) | Err(_) => "the file".to_owned(),
        };
        match &self.wanted {
            Some(wanted) => wanted.clone(),
            None if self.source == FROM_FILE => own(),
            None => self.source.clone(),
        }
    }
}

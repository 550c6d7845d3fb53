//! The bundle: what a team gives to its members.

use std::collections::{BTreeMap, BTreeSet};

use portcullis_packs::{COMPONENT_MAX, Seconds, Trust, is_digest, is_id};
use semver::Version;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::document::{SignedText, check_head, unreadable};
use crate::refusal::TeamRefusal;
use crate::root::Root;
use crate::stage::Stage;

/// The role's name, as in the documents.
pub(crate) const BUNDLE: &str = "bundle";
/// Largest number of packs.
const PACKS_MAX: usize = 32;

/// The content of a bundle.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Bundle {
    #[serde(rename = "type")]
    pub(crate) role: String,
    /// The team.
    pub team: String,
    /// The version; every new bundle has a higher one.
    pub version: u64,
    /// The moment from which it counts as expired.
    pub expires_at: Seconds,
    /// The oldest program that can use it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub minimum_program: Option<Version>,
    /// Settings, in the form of the machine's settings file: they only tighten.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub settings: Map<String, Value>,
    /// The texts of presets, by name.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub presets: BTreeMap<String, String>,
    /// Packs that run on every machine of the team.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub packs: Vec<BundlePack>,
    /// Publishers and revocations, in the form of `trust.toml`.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub trust: String,
    /// Earlier versions that the team has taken back.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub yanked: Vec<Yanked>,
}

/// A pack of a bundle.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct BundlePack {
    /// The id, `namespace:name`.
    pub id: String,
    /// The version.
    pub version: Version,
    /// `sha256:...` of the component.
    pub digest: String,
    /// The size of the component in bytes.
    pub size: u64,
    /// The configuration of the policy.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub config: Map<String, Value>,
    /// On which machines it runs.
    #[serde(default)]
    pub stage: Stage,
}

/// A version that was taken back.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Yanked {
    /// The version.
    pub version: u64,
    /// The reason.
    pub reason: String,
}

/// The fields that decide whether this program can read the others.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Head {
    version: u64,
    #[serde(default)]
    minimum_program: Option<Version>,
}

impl Bundle {
    /// Checks the signatures of a bundle and reads it. Returns it with the fingerprints of the keys.
    pub(crate) fn verified(
        signed: &SignedText,
        root: &Root,
        program: &Version,
    ) -> Result<(Self, Vec<String>), TeamRefusal> {
        let keys = root.check(signed, BUNDLE, &root.roles.bundle)?;
        check_head(signed, BUNDLE, &root.team)?;
        let wrong = |error: serde_json::Error| unreadable(BUNDLE, &error.to_string());
        let head: Head = serde_json::from_str(&signed.text).map_err(wrong)?;
        // A newer program may know more fields, so this comes before they are read.
        if let Some(needed) = head.minimum_program.filter(|needed| needed > program) {
            return Err(TeamRefusal::NewerProgram { version: head.version, needed, own: program.clone() });
        }
        let bundle: Self = serde_json::from_str(&signed.text).map_err(wrong)?;
        bundle.check().map_err(|reason| unreadable(BUNDLE, &reason))?;
        Ok((bundle, keys))
    }

    /// Returns the trust of the bundle. Files of signers cannot be named in it.
    ///
    /// # Errors
    /// When the text is malformed.
    pub fn trust(&self) -> Result<Trust, portcullis_packs::TrustError> {
        let none = |_: &str| Err(std::io::Error::other("a team's trust has its keys in `[[key]]`"));
        Trust::parse(&self.trust, &none)
    }

    /// Checks the values that do not depend on the machine.
    pub(crate) fn check(&self) -> Result<(), String> {
        let mut known = BTreeSet::new();
        if self.packs.len() > PACKS_MAX {
            return Err("it has more than 32 packs".to_owned());
        }
        for pack in &self.packs {
            let id = pack.id.escape_debug();
            if !is_id(&pack.id) {
                return Err(format!("`{id}` is no id of a policy"));
            }
            if !is_digest(&pack.digest) || pack.size > COMPONENT_MAX {
                return Err(format!("the pack `{id}` has no valid digest and size"));
            }
            if !known.insert(&pack.id) {
                return Err(format!("the pack `{id}` is there twice"));
            }
            pack.stage.checked()?;
        }
        self.trust().map(drop).map_err(|error| format!("its trust: {error}"))
    }
}

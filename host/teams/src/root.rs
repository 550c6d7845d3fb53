//! The root document: the keys of all roles and how many of them must sign.

use std::collections::{BTreeMap, BTreeSet};

use portcullis_packs::{Key, Seconds};
use serde::{Deserialize, Serialize};

use crate::document::{RoleKeys, SignedText, check_signatures, is_team_name, read, unreadable};
use crate::refusal::TeamRefusal;

/// The role's name, as in the documents.
pub(crate) const ROOT: &str = "root";
/// Largest number of keys of a team.
const KEYS_MAX: usize = 64;

/// The text of a root, as JSON.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct RootText {
    #[serde(rename = "type")]
    pub(crate) role: String,
    pub(crate) team: String,
    pub(crate) version: u64,
    pub(crate) expires_at: Seconds,
    /// Public keys, one line each.
    pub(crate) keys: Vec<String>,
    pub(crate) roles: Roles,
}

/// The roles and their keys.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Roles {
    pub(crate) root: RoleKeys,
    pub(crate) bundle: RoleKeys,
    pub(crate) timestamp: RoleKeys,
}

/// A root whose values were checked.
#[derive(Debug, Clone)]
pub struct Root {
    /// The version. Each new root has the next number.
    pub version: u64,
    /// The moment from which it counts as expired.
    pub expires_at: Seconds,
    /// The team.
    pub team: String,
    pub(crate) keys: BTreeMap<String, Key>,
    pub(crate) roles: Roles,
}

impl Root {
    /// Reads a root and checks its values, but no signature.
    pub(crate) fn read(signed: &SignedText, team: &str) -> Result<Self, TeamRefusal> {
        let text: RootText = read(signed, ROOT, team)?;
        if !is_team_name(&text.team) {
            return Err(unreadable(ROOT, "the name of a team has lower-case letters, digits and `-`"));
        }
        if text.keys.len() > KEYS_MAX {
            return Err(unreadable(ROOT, "it has more than 64 keys"));
        }
        let mut keys = BTreeMap::new();
        for line in &text.keys {
            let key = Key::parse(line).map_err(|error| unreadable(ROOT, &error.to_string()))?;
            if !key.fingerprint().starts_with("SHA256:") {
                return Err(unreadable(ROOT, "the keys of a team are ssh keys"));
            }
            keys.insert(key.fingerprint().to_owned(), key);
        }
        for (name, role) in
            [(ROOT, &text.roles.root), ("bundle", &text.roles.bundle), ("timestamp", &text.roles.timestamp)]
        {
            check_role(name, role, &keys)?;
        }
        Ok(Self {
            version: text.version,
            expires_at: text.expires_at,
            team: text.team,
            keys,
            roles: text.roles,
        })
    }

    /// Reads the first root, which is trusted by its digest and must be signed by its own keys.
    pub(crate) fn pinned(signed: &SignedText, team: &str, pin: &str) -> Result<Self, TeamRefusal> {
        let found = signed.digest();
        if found != pin {
            return Err(TeamRefusal::Pin { wanted: pin.to_owned(), found });
        }
        let root = Self::read(signed, team)?;
        root.check(signed, ROOT, &root.roles.root)?;
        Ok(root)
    }

    /// Reads the root that follows this one: the keys of both must have signed it.
    pub(crate) fn next(&self, signed: &SignedText) -> Result<Self, TeamRefusal> {
        // The keys of the new root count only after those of this one have vouched for it.
        self.check(signed, "new root, by the keys of the old one,", &self.roles.root)?;
        let next = Self::read(signed, &self.team)?;
        if next.version != self.version + 1 {
            let (wanted, found) = (self.version + 1, next.version);
            return Err(TeamRefusal::Version { what: ROOT, wanted, found });
        }
        next.check(signed, "new root, by its own keys,", &next.roles.root)?;
        Ok(next)
    }

    /// Checks that enough keys of a role have signed. Returns their fingerprints.
    pub(crate) fn check(
        &self,
        signed: &SignedText,
        what: &str,
        role: &RoleKeys,
    ) -> Result<Vec<String>, TeamRefusal> {
        check_signatures(signed, what, role, &self.keys)
    }

    /// Returns the fingerprints of the keys of the root role.
    #[must_use]
    pub fn owners(&self) -> &BTreeSet<String> {
        &self.roles.root.keys
    }
}

fn check_role(name: &str, role: &RoleKeys, keys: &BTreeMap<String, Key>) -> Result<(), TeamRefusal> {
    if role.threshold == 0 || role.threshold > role.keys.len() {
        let (threshold, count) = (role.threshold, role.keys.len());
        return Err(unreadable(
            ROOT,
            &format!("the role {name} has {count} keys and a threshold of {threshold}"),
        ));
    }
    match role.keys.iter().find(|key| !keys.contains_key(*key)) {
        Some(unknown) => {
            let unknown = unknown.escape_debug();
            Err(unreadable(
                ROOT,
                &format!("the role {name} names the key `{unknown}`, which is not among the keys"),
            ))
        }
        None => Ok(()),
    }
}

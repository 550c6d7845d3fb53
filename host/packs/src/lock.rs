//! `policy.lock`: the packs of a directory, with their digests.

use std::collections::BTreeSet;

use semver::Version;
use serde::{Deserialize, Serialize};

/// Largest lock, in bytes.
pub(crate) const LOCK_MAX: usize = 1 << 20;
const HEAD: &str = "# Written by `portcullis policy`. It belongs into version control.\n\n";

/// The lock file of a directory.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Lock {
    version: u32,
    /// The packs in use, by id.
    #[serde(default, rename = "policy", skip_serializing_if = "Vec::is_empty")]
    pub policies: Vec<Locked>,
    /// Packs that were removed, so that an older version of one is not accepted as a new pack.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub removed: Vec<Removed>,
}

/// A pack in use.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Locked {
    /// The id, `namespace:name`.
    pub id: String,
    /// The version.
    pub version: Version,
    /// The versions that `update` may choose. `None` allows every newer one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub requirement: Option<semver::VersionReq>,
    /// The source: `oci://...` without tag, or `file`.
    pub source: String,
    /// The digest of the component, `sha256:...`.
    pub digest: String,
    /// The size in bytes.
    pub size: u64,
    /// The capabilities that the user has agreed to.
    #[serde(default)]
    pub capabilities: BTreeSet<String>,
    /// Fingerprints of the signing keys. Empty if the pack was trusted by its digest.
    #[serde(default)]
    pub signed_by: Vec<String>,
}

/// A pack that was removed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Removed {
    /// The id, `namespace:name`.
    pub id: String,
    /// The newest version that was in use.
    pub version: Version,
}

/// The reason why a lock cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum LockError {
    /// The file is not valid TOML or has the wrong structure.
    #[error("it cannot be read")]
    Shape(#[source] Box<toml::de::Error>),
    /// The file is too long.
    #[error("it is longer than 1 MiB")]
    TooLong,
    /// A value is invalid.
    #[error("{0}")]
    Value(String),
    /// The lock cannot be serialized.
    #[error("writing it down")]
    Write(#[source] Box<toml::ser::Error>),
}

impl Default for Lock {
    fn default() -> Self {
        Self { version: 1, policies: Vec::new(), removed: Vec::new() }
    }
}

impl Lock {
    /// Parses a lock. An empty text is an empty lock.
    ///
    /// # Errors
    /// Fails when the text is malformed or contains an id twice.
    pub fn parse(text: &str) -> Result<Self, LockError> {
        if text.trim().is_empty() {
            return Ok(Self::default());
        }
        if text.len() > LOCK_MAX {
            return Err(LockError::TooLong);
        }
        let lock: Self = toml::from_str(text).map_err(|error| LockError::Shape(Box::new(error)))?;
        if lock.version != 1 {
            return Err(LockError::Value(format!("it is of version {}; update Portcullis", lock.version)));
        }
        let mut ids = BTreeSet::new();
        for policy in &lock.policies {
            if !crate::manifest::is_id(&policy.id) {
                return Err(LockError::Value(format!("`{}` is no id of a policy", policy.id)));
            }
            if !is_digest(&policy.digest) {
                return Err(LockError::Value(format!("`{}` is no digest", policy.digest)));
            }
            if !ids.insert(policy.id.as_str()) {
                return Err(LockError::Value(format!("`{}` is there twice", policy.id)));
            }
        }
        Ok(lock)
    }

    /// Returns the text of the lock, sorted by id.
    ///
    /// # Errors
    /// Fails when the lock cannot be serialized.
    pub fn text(&self) -> Result<String, LockError> {
        let text = toml::to_string(self).map_err(|error| LockError::Write(Box::new(error)))?;
        Ok(format!("{HEAD}{text}"))
    }

    /// Returns the pack in use with this id.
    #[must_use]
    pub fn find(&self, id: &str) -> Option<&Locked> {
        self.policies.iter().find(|policy| policy.id == id)
    }

    /// Returns the newest version of an id that is or was in use.
    #[must_use]
    pub fn newest(&self, id: &str) -> Option<&Version> {
        let used = self.find(id).map(|policy| &policy.version);
        used.into_iter().chain(self.removed.iter().filter(|old| old.id == id).map(|old| &old.version)).max()
    }

    /// Adds a pack, replacing any with the same id.
    pub fn put(&mut self, policy: Locked) {
        self.policies.retain(|other| other.id != policy.id);
        self.removed.retain(|old| old.id != policy.id);
        self.policies.push(policy);
        self.policies.sort_by(|one, other| one.id.cmp(&other.id));
    }

    /// Removes a pack. Returns `None` if it is not in use.
    pub fn remove(&mut self, id: &str) -> Option<Locked> {
        let place = self.policies.iter().position(|policy| policy.id == id)?;
        let version = self.newest(id)?.clone();
        let policy = self.policies.remove(place);
        self.removed.retain(|old| old.id != id);
        self.removed.push(Removed { id: id.to_owned(), version });
        self.removed.sort_by(|one, other| one.id.cmp(&other.id));
        Some(policy)
    }
}

/// Returns true if a text is `sha256:` and 64 lower-case hex digits.
#[must_use]
pub fn is_digest(text: &str) -> bool {
    let is_hex = |byte: u8| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte);
    text.strip_prefix("sha256:").is_some_and(|hex| hex.len() == 64 && hex.bytes().all(is_hex))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn locked(id: &str, version: &str) -> Locked {
        Locked {
            id: id.to_owned(),
            version: version.parse().unwrap(),
            requirement: Some("^1.2".parse().unwrap()),
            source: "oci://localhost:5000/acme/guard".to_owned(),
            digest: format!("sha256:{}", "ab".repeat(32)),
            size: 7,
            capabilities: BTreeSet::from(["rewrites".to_owned()]),
            signed_by: vec!["SHA256:x".to_owned()],
        }
    }

    #[test]
    fn a_lock_comes_back_as_it_was() {
        let mut lock = Lock::default();
        lock.put(locked("b:b", "1.2.0"));
        lock.put(locked("a:a", "1.2.0"));
        lock.put(locked("b:b", "1.3.0"));
        assert_eq!(Lock::parse(&lock.text().unwrap()).unwrap(), lock);
        assert_eq!(lock.policies.iter().map(|policy| policy.id.as_str()).collect::<Vec<_>>(), ["a:a", "b:b"]);
        assert_eq!(Lock::parse(" ").unwrap(), Lock::default());
    }

    #[test]
    fn what_was_removed_is_remembered() {
        let mut lock = Lock::default();
        lock.put(locked("a:a", "2.0.0"));
        assert_eq!(lock.remove("a:a").unwrap().version.major, 2);
        assert_eq!(lock.newest("a:a").unwrap().to_string(), "2.0.0");
        assert!(lock.find("a:a").is_none() && lock.remove("a:a").is_none());
        assert_eq!(Lock::parse(&lock.text().unwrap()).unwrap(), lock);
        lock.put(locked("a:a", "2.1.0"));
        assert!(lock.removed.is_empty());
    }

    #[test]
    fn what_cannot_be_used_is_refused() {
        let good = |change: &dyn Fn(&mut Locked)| {
            let mut policy = locked("a:a", "1.0.0");
            change(&mut policy);
            let lock = Lock { policies: vec![policy.clone(), locked("b:b", "1.0.0")], ..Lock::default() };
            Lock::parse(&lock.text().unwrap())
        };
        assert!(good(&|_| ()).is_ok());
        assert!(good(&|policy| policy.id = "b:b".to_owned()).is_err());
        assert!(good(&|policy| policy.id = "../x".to_owned()).is_err());
        assert!(good(&|policy| policy.digest = "sha256:../../x".to_owned()).is_err());
        assert!(Lock::parse("version = 2").is_err());
        assert!(Lock::parse("version = 1\nmore = 1").is_err());
    }
}

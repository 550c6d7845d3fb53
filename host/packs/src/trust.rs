//! `trust.toml`: the trusted publishers, of the user and of the machine. The machine's file takes precedence.

mod error;

use std::collections::BTreeMap;

use serde::Deserialize;

use crate::allowed_signers;
use crate::date;
use crate::key::{Key, Validity};
use crate::signature::PURPOSE;
pub use error::TrustError;

/// Largest trust file or `allowed_signers` file, in bytes.
pub const TRUST_MAX: usize = 1 << 20;

/// The trusted publishers and digests, and the revocations.
#[derive(Debug, Clone, Default)]
pub struct Trust {
    /// The publishers, in order of precedence.
    pub publishers: Vec<Publisher>,
    revoked: BTreeMap<String, String>,
    trusted: Vec<String>,
    /// Refuse unsigned bytes, even if their digest is trusted.
    pub require_signature: bool,
}

/// A publisher of packs.
#[derive(Debug, Clone)]
pub struct Publisher {
    /// The display name.
    pub name: String,
    /// The namespaces that belong to this publisher alone.
    pub namespaces: Vec<String>,
    /// The location of the packs, without scheme: `ghcr.io/acme/policies`. Empty if unknown.
    pub registry: String,
    /// The number of keys that must have signed.
    pub threshold: usize,
    /// The keys.
    pub keys: Vec<(Key, Validity)>,
}

#[derive(Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
struct File {
    #[serde(default)]
    require_signature: bool,
    #[serde(default)]
    publisher: Vec<PublisherEntry>,
    #[serde(default)]
    key: Vec<KeyEntry>,
    #[serde(default)]
    revoked: Vec<RevokedEntry>,
    #[serde(default)]
    trusted: Vec<TrustedEntry>,
}

#[derive(Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
struct PublisherEntry {
    name: String,
    namespaces: Vec<String>,
    #[serde(default)]
    registry: String,
    #[serde(default)]
    allowed_signers: Option<String>,
    #[serde(default = "one")]
    threshold: usize,
}

fn one() -> usize {
    1
}

#[derive(Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
struct KeyEntry {
    publisher: String,
    key: String,
    #[serde(default)]
    valid_after: Option<String>,
    #[serde(default)]
    valid_before: Option<String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
struct RevokedEntry {
    #[serde(default)]
    key: Option<String>,
    #[serde(default)]
    digest: Option<String>,
    #[serde(default)]
    reason: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
struct TrustedEntry {
    digest: String,
    #[serde(default, rename = "note")]
    _note: String,
}

impl Trust {
    /// Parses a trust file. `signers` reads an `allowed_signers` file by name.
    ///
    /// # Errors
    /// Fails when the text is malformed or has an invalid value. No entry is ignored silently.
    pub fn parse(text: &str, signers: &dyn Fn(&str) -> std::io::Result<String>) -> Result<Self, TrustError> {
        if text.len() > TRUST_MAX {
            return Err(TrustError::TooLong);
        }
        let file: File = toml::from_str(text).map_err(|error| TrustError::Shape(Box::new(error)))?;
        let mut trust = Self { require_signature: file.require_signature, ..Self::default() };
        for entry in file.publisher {
            trust.publishers.push(publisher(entry, signers, &trust.publishers)?);
        }
        for entry in file.key {
            let key = dated(&entry)?;
            let known = trust.publishers.iter_mut().find(|publisher| publisher.name == entry.publisher);
            let publisher =
                known.ok_or_else(|| value(format!("there is no publisher `{}`", entry.publisher)))?;
            publisher.keys.push(key);
        }
        for entry in file.revoked {
            let what = match (entry.key, entry.digest) {
                (Some(key), None) => revocable(&key)?,
                (None, Some(digest)) => whole_digest(&digest)?,
                (Some(_), Some(_)) | (None, None) => {
                    return Err(value("a `[[revoked]]` names either a `key` or a `digest`".to_owned()));
                }
            };
            trust.revoked.insert(what, entry.reason);
        }
        trust.trusted =
            file.trusted.iter().map(|entry| whole_digest(&entry.digest)).collect::<Result<_, _>>()?;
        Ok(trust)
    }

    /// Merges the user's trust with the machine's.
    ///
    /// Namespaces that the machine assigns belong to the machine's publishers, and the revocations of both
    /// apply.
    #[must_use]
    pub fn under(mut self, machine: Self) -> Self {
        let given: Vec<String> =
            machine.publishers.iter().flat_map(|publisher| publisher.namespaces.clone()).collect();
        for publisher in &mut self.publishers {
            publisher.namespaces.retain(|namespace| !given.contains(namespace));
        }
        let mut publishers = machine.publishers;
        publishers.append(&mut self.publishers);
        self.revoked.extend(machine.revoked);
        let mut trusted = machine.trusted;
        trusted.append(&mut self.trusted);
        let require_signature = self.require_signature || machine.require_signature;
        Self { publishers, revoked: self.revoked, trusted, require_signature }
    }

    /// Returns the publisher that owns a namespace.
    #[must_use]
    pub fn owner(&self, namespace: &str) -> Option<&Publisher> {
        self.publishers.iter().find(|publisher| publisher.namespaces.iter().any(|own| own == namespace))
    }

    /// Returns the reason why a key or a digest (`sha256:...`) was revoked, or `None`.
    #[must_use]
    pub fn revoked(&self, what: &str) -> Option<&str> {
        self.revoked.get(what).map(String::as_str)
    }

    /// Returns all revocations with their reasons.
    pub fn revocations(&self) -> impl Iterator<Item = (&str, &str)> {
        self.revoked.iter().map(|(what, reason)| (what.as_str(), reason.as_str()))
    }

    /// Returns true if the user trusts the digest `sha256:...`.
    #[must_use]
    pub fn trusts(&self, digest: &str) -> bool {
        !self.require_signature && self.trusted.iter().any(|known| known == digest)
    }

    /// Returns the trusted digests.
    #[must_use]
    pub fn trusted(&self) -> &[String] {
        &self.trusted
    }

    /// Returns all keys of all publishers.
    #[must_use]
    pub fn keys(&self) -> Vec<&Key> {
        self.publishers.iter().flat_map(|publisher| publisher.keys.iter().map(|(key, _)| key)).collect()
    }
}

fn publisher(
    entry: PublisherEntry,
    signers: &dyn Fn(&str) -> std::io::Result<String>,
    known: &[Publisher],
) -> Result<Publisher, TrustError> {
    let PublisherEntry { name, namespaces, registry, allowed_signers, threshold } = entry;
    if known.iter().any(|other| other.name == name) {
        return Err(value(format!("there are two publishers `{name}`")));
    }
    let taken = |namespace: &&String| known.iter().any(|other| other.namespaces.contains(namespace));
    if let Some(namespace) = namespaces.iter().find(taken) {
        return Err(value(format!("the namespace `{namespace}` is given to two publishers")));
    }
    if let Some(wrong) = namespaces.iter().find(|namespace| !crate::manifest::is_word(namespace)) {
        return Err(value(format!("`{wrong}` is no namespace: lower-case letters, digits and `-`")));
    }
    if threshold == 0 {
        return Err(value(format!("the threshold of `{name}` is 0, so nothing would need a signature")));
    }
    let keys = match allowed_signers {
        None => Vec::new(),
        Some(file) => {
            let text = signers(&file).map_err(|source| TrustError::Read { name: file, source })?;
            allowed_signers::parse(&text, PURPOSE)?
        }
    };
    Ok(Publisher { name, namespaces, registry, threshold, keys })
}

fn dated(entry: &KeyEntry) -> Result<(Key, Validity), TrustError> {
    let day = |text: &Option<String>| match text {
        None => Ok(None),
        Some(text) => match date::parse(text) {
            Some(day) => Ok(Some(day)),
            None => Err(value(format!("`{text}` is no day like `2027-01-31`"))),
        },
    };
    let key = parse_key(&entry.key)?;
    Ok((key, Validity { after: day(&entry.valid_after)?, before: day(&entry.valid_before)? }))
}

fn parse_key(text: &str) -> Result<Key, TrustError> {
    Key::parse(text).map_err(|source| TrustError::Key { text: text.to_owned(), source })
}

/// Returns a checked key to revoke: a fingerprint, or the key itself.
fn revocable(text: &str) -> Result<String, TrustError> {
    if let Some(digest) = text.strip_prefix("SHA256:") {
        let is_whole = digest.len() == 43;
        return if is_whole {
            Ok(text.to_owned())
        } else {
            Err(value(format!("`{text}` is no whole fingerprint")))
        };
    }
    Ok(parse_key(text)?.fingerprint().to_owned())
}

fn whole_digest(text: &str) -> Result<String, TrustError> {
    match crate::lock::is_digest(text) {
        true => Ok(text.to_owned()),
        false => Err(value(format!("`{text}` is no digest like `sha256:` and 64 digits"))),
    }
}

fn value(text: String) -> TrustError {
    TrustError::Value(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    const SSH: &str = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAILM+rvN+ot98qgEN796jTiQfZfG1KaT0PtFDJ/XFSqti";
    const MINISIGN: &str = "RWQf6LRCGA9i53mlYecO4IzT51TGPpvWucNSCh1CBM0QTaLn73Y7GFO3";

    fn parse(text: &str) -> Result<Trust, TrustError> {
        Trust::parse(text, &|name| match name {
            "acme.signers" => Ok(format!("a {SSH}")),
            _ => Err(std::io::ErrorKind::NotFound.into()),
        })
    }

    #[test]
    fn a_whole_file() {
        let trust = parse(&format!(
            "[[publisher]]\nname = 'acme'\nnamespaces = ['acme', 'acme-net']\nallowed-signers = 'acme.signers'\n\
             [[key]]\npublisher = 'acme'\nkey = '{MINISIGN}'\nvalid-before = '2027-01-01'\n\
             [[revoked]]\nkey = '{SSH}'\nreason = 'lost'\n[[trusted]]\ndigest = 'sha256:{}'",
            "0".repeat(64)
        ))
        .unwrap();
        let owner = trust.owner("acme-net").unwrap();
        assert_eq!((owner.keys.len(), owner.threshold), (2, 1));
        let validity = owner.keys.last().unwrap().1;
        assert!(validity.holds(0) && !validity.holds(1_798_761_600));
        assert_eq!(trust.revoked(trust.keys().first().unwrap().fingerprint()), Some("lost"));
        assert!(trust.trusts(&format!("sha256:{}", "0".repeat(64))));
    }

    #[test]
    fn what_is_wrong_is_named() {
        let publisher = "[[publisher]]\nname = 'a'\nnamespaces = ['a']\n";
        for (text, said) in [
            ("colour = 'red'".to_owned(), "cannot be read"),
            (format!("{publisher}threshold = 0"), "threshold"),
            (format!("{publisher}{}", publisher.replace("'a'\nn", "'b'\nn")), "two publishers"),
            (format!("{publisher}{publisher}"), "two publishers `a`"),
            (format!("{publisher}allowed-signers = 'missing'"), "missing"),
            ("[[key]]\npublisher = 'b'\nkey = ''".to_owned(), "the key"),
            (format!("[[key]]\npublisher = 'b'\nkey = '{SSH}'"), "no publisher `b`"),
            (format!("{publisher}[[key]]\npublisher = 'a'\nkey = '{SSH}'\nvalid-before = 'x'"), "no day"),
            ("[[revoked]]\nreason = 'x'".to_owned(), "either"),
            ("[[revoked]]\ndigest = 'sha256:12'".to_owned(), "no digest"),
            ("[[publisher]]\nname = 'a'\nnamespaces = ['a:*']".to_owned(), "no namespace"),
        ] {
            let error = parse(&text).unwrap_err().to_string();
            assert!(error.contains(said), "{text}: {error}");
        }
    }

    #[test]
    fn the_machine_outranks_the_user() {
        let one = |name: &str, more: &str| {
            parse(&format!("{more}\n[[publisher]]\nname = '{name}'\nnamespaces = ['acme', '{name}']"))
                .unwrap()
        };
        let joined = one("mine", "").under(one("theirs", "require-signature = true"));
        assert_eq!(joined.owner("acme").unwrap().name, "theirs");
        assert_eq!(joined.owner("mine").unwrap().name, "mine");
        assert!(joined.require_signature);
        let revokes = parse(&format!("[[revoked]]\nkey = '{MINISIGN}'")).unwrap();
        for joined in [revokes.clone().under(Trust::default()), Trust::default().under(revokes)] {
            assert!(joined.revoked(MINISIGN).is_some());
        }
    }
}

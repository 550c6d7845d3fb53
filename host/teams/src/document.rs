//! Signed texts, and counting the keys that have signed one.

use std::collections::{BTreeMap, BTreeSet};

use portcullis_packs::{Key, SignatureState, Signatures};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::refusal::TeamRefusal;

/// The namespace of signatures of team documents: `ssh-keygen -Y sign -n portcullis-team`.
pub const TEAM_PURPOSE: &str = "portcullis-team";
/// Largest document, in bytes.
pub(crate) const DOCUMENT_MAX: usize = 1 << 20;

/// A document as it was signed, with its signatures.
///
/// The signatures are over the exact bytes, so no canonical form of JSON is needed.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SignedText {
    /// The document, as JSON.
    pub text: String,
    /// ssh signatures, one after the other.
    pub signatures: String,
}

impl SignedText {
    /// Returns `sha256:...` of the document.
    #[must_use]
    pub fn digest(&self) -> String {
        format!("sha256:{}", portcullis_packs::digest(self.text.as_bytes()))
    }

    /// Returns the team that the document names, unchecked.
    #[must_use]
    pub fn team(&self) -> Option<String> {
        serde_json::from_str::<Head>(&self.text).ok().map(|head| head.team)
    }
}

/// The keys of a role, by fingerprint, and how many of them must sign.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct RoleKeys {
    pub(crate) threshold: usize,
    pub(crate) keys: BTreeSet<String>,
}

/// Checks that enough keys of a role have signed. Returns their fingerprints.
///
/// A key counts once, however often it has signed.
pub(crate) fn check_signatures(
    signed: &SignedText,
    what: &str,
    role: &RoleKeys,
    keys: &BTreeMap<String, Key>,
) -> Result<Vec<String>, TeamRefusal> {
    let signatures = Signatures::parse(&signed.signatures, "")
        .map_err(|error| unreadable(&format!("signatures of the {what}"), &error.to_string()))?;
    let known: Vec<&Key> =
        keys.iter().filter(|(name, _)| role.keys.contains(*name)).map(|(_, key)| key).collect();
    let (mut good, mut notes) = (BTreeSet::new(), Vec::new());
    for checked in signatures.check_for(TEAM_PURPOSE, signed.text.as_bytes(), &known) {
        let key = checked.key;
        match checked.state {
            SignatureState::Good => drop(good.insert(key)),
            SignatureState::Broken => notes.push(format!("`{key}` has signed other bytes")),
            SignatureState::OtherPurpose(purpose) => {
                notes.push(format!("`{key}` has signed for `{}`", purpose.escape_debug()));
            }
            SignatureState::Unknown => notes.push(format!("`{key}` is no key of this role")),
        }
    }
    if good.len() >= role.threshold.max(1) {
        return Ok(good.into_iter().collect());
    }
    let notes = notes.iter().map(|note| format!("; {note}")).collect();
    Err(TeamRefusal::Threshold { what: what.to_owned(), threshold: role.threshold, count: good.len(), notes })
}

/// The fields that every document has. Others are ignored.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Head {
    #[serde(rename = "type")]
    role: String,
    team: String,
}

/// Reads a document of a role and a team.
pub(crate) fn read<T: DeserializeOwned>(
    signed: &SignedText,
    role: &'static str,
    team: &str,
) -> Result<T, TeamRefusal> {
    check_head(signed, role, team)?;
    serde_json::from_str(&signed.text).map_err(|error| unreadable(role, &error.to_string()))
}

/// Checks size, role and team of a document.
pub(crate) fn check_head(signed: &SignedText, role: &'static str, team: &str) -> Result<(), TeamRefusal> {
    if signed.text.len() > DOCUMENT_MAX {
        let found = signed.text.len() as u64;
        return Err(TeamRefusal::Size { what: role.to_owned(), wanted: DOCUMENT_MAX as u64, found });
    }
    let head: Head =
        serde_json::from_str(&signed.text).map_err(|error| unreadable(role, &error.to_string()))?;
    if head.role != role {
        return Err(TeamRefusal::Role { wanted: role, found: head.role.escape_debug().to_string() });
    }
    if head.team != team {
        let found = head.team.escape_debug().to_string();
        return Err(TeamRefusal::Team { what: role.to_owned(), wanted: team.to_owned(), found });
    }
    Ok(())
}

/// Returns the error for a document that cannot be read.
pub(crate) fn unreadable(what: &str, reason: &str) -> TeamRefusal {
    TeamRefusal::Unreadable { what: what.to_owned(), reason: reason.to_owned() }
}

/// Returns true for a text that can be the name of a team.
pub(crate) fn is_team_name(text: &str) -> bool {
    let plain = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
    (1..=40).contains(&text.len()) && text.bytes().all(plain) && !text.starts_with('-')
}

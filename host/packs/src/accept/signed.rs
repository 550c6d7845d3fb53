//! Checks which trusted keys have signed a pack.

use std::collections::BTreeSet;

use super::PackRefusal;
use super::candidate::{Approval, Candidate, OWN};
use crate::date::Seconds;
use crate::lock::Lock;
use crate::pack::Pack;
use crate::signature::{Checked, SignatureState, Signatures};
use crate::trust::{Publisher, Trust};

/// The reason to trust a component that is used as a file, without a lock.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Voucher {
    /// The user trusts the digest of these exact bytes.
    Digest,
    /// The owner of the namespace has signed, with these key fingerprints.
    Keys(Vec<String>),
}

/// Returns the reason to trust a component that is used as a file.
///
/// Returns `None` if it is not trusted, or revoked.
#[must_use]
pub fn vouched(bytes: &[u8], signatures: &Signatures, trust: &Trust, now: Seconds) -> Option<Voucher> {
    let digest = format!("sha256:{}", crate::digest::digest(bytes));
    if trust.revoked(&digest).is_some() {
        return None;
    }
    if trust.trusts(&digest) {
        return Some(Voucher::Digest);
    }
    let id = Pack::read(bytes).ok()??.manifest.policy.id;
    let owner = trust.owner(id.split(':').next().unwrap_or_default())?;
    let checked = signatures.check(bytes, &trust.keys());
    of_owner(&checked, &id, owner, trust, now).ok().map(Voucher::Keys)
}

/// Returns the fingerprints of the valid signing keys. An empty list means that unsigned bytes are accepted.
pub(super) fn signers(
    candidate: &Candidate<'_>,
    id: &str,
    digest: &str,
    trust: &Trust,
    lock: &Lock,
    approval: &Approval,
    now: Seconds,
) -> Result<Vec<String>, PackRefusal> {
    let checked = candidate.signatures.check(candidate.bytes, &trust.keys());
    let namespace = id.split(':').next().unwrap_or_default();
    if let Some(owner) = trust.owner(namespace) {
        return of_owner(&checked, id, owner, trust, now);
    }
    if let Some(one) = checked.iter().find(|one| one.state == SignatureState::Good) {
        let signed =
            |publisher: &&Publisher| publisher.keys.iter().any(|(key, _)| key.fingerprint() == one.key);
        let publisher = trust.publishers.iter().find(signed);
        let (publisher, namespaces) = publisher
            .map(|publisher| (publisher.name.clone(), publisher.namespaces.clone()))
            .unwrap_or_default();
        let namespaces = listed(&namespaces);
        return Err(PackRefusal::Namespace { id: id.to_owned(), publisher, namespaces });
    }
    // The namespace of the program's own policies is reserved.
    let may_be_unsigned = namespace != OWN && !trust.require_signature;
    let had_signature = lock.find(id).is_some_and(|used| !used.signed_by.is_empty());
    if may_be_unsigned && (trust.trusts(digest) || approval.unsigned && !had_signature) {
        return Ok(Vec::new());
    }
    if !candidate.signatures.is_empty() {
        let keys: Vec<String> = checked.into_iter().map(|one| one.key).collect();
        return Err(PackRefusal::Foreign { keys: keys.join("`, `") });
    }
    let hint = if may_be_unsigned && !had_signature {
        "`--unsigned` trusts exactly these bytes"
    } else {
        "here it must be signed"
    };
    Err(PackRefusal::Unsigned { hint: hint.to_owned() })
}

fn of_owner(
    checked: &[Checked],
    id: &str,
    owner: &Publisher,
    trust: &Trust,
    now: Seconds,
) -> Result<Vec<String>, PackRefusal> {
    let mut good = BTreeSet::new();
    let mut notes = Vec::new();
    for one in checked {
        // A renewed key is listed twice. One valid entry is enough.
        let mut own = owner.keys.iter().filter(|(key, _)| key.fingerprint() == one.key).peekable();
        let is_own = own.peek().is_some();
        let holds = own.any(|(_, validity)| validity.holds(now));
        match &one.state {
            SignatureState::Unknown => notes.push(format!("the key `{}` is not theirs", one.key)),
            _ if !is_own => notes.push(format!("the key `{}` is not theirs", one.key)),
            SignatureState::Broken => {
                notes.push(format!("the signature of `{}` is not over these bytes", one.key));
            }
            SignatureState::OtherPurpose(purpose) => {
                notes.push(format!("the signature of `{}` was made for `{purpose}`", one.key));
            }
            SignatureState::Good => match trust.revoked(&one.key) {
                Some(reason) => notes.push(format!("the key `{}` was revoked: {reason}", one.key)),
                None if !holds => {
                    notes.push(format!("the key `{}` has expired, or does not count yet", one.key));
                }
                None => {
                    good.insert(one.key.clone());
                }
            },
        }
    }
    if good.len() >= owner.threshold {
        return Ok(good.into_iter().collect());
    }
    let count = match good.len() {
        0 if notes.is_empty() => "there is no signature".to_owned(),
        0 => String::new(),
        count => format!("{count} of them"),
    };
    let found = std::iter::once(count).filter(|count| !count.is_empty()).chain(notes);
    Err(PackRefusal::NotSigned {
        id: id.to_owned(),
        publisher: owner.name.clone(),
        threshold: owner.threshold,
        found: found.collect::<Vec<_>>().join("; "),
    })
}

fn listed(namespaces: &[String]) -> String {
    match namespaces {
        [] => "no namespace".to_owned(),
        names => names.iter().map(|name| format!("`{name}:`")).collect::<Vec<_>>().join(", "),
    }
}

//! Counting the signatures of a document that is not complete yet.

use std::collections::BTreeSet;

use crate::bundle::BUNDLE;
use crate::document::{RoleKeys, SignedText};
use crate::refusal::TeamRefusal;
use crate::root::Root;
use crate::source::DocumentName;
use crate::timestamp::TIMESTAMP;

/// Returns the keys of a role that have signed a document.
pub(super) fn signers(
    root: &Root,
    role: &RoleKeys,
    signed: &SignedText,
) -> Result<BTreeSet<String>, TeamRefusal> {
    // A threshold of 1 returns all good keys, and none is no error here.
    let one = RoleKeys { threshold: 1, keys: role.keys.clone() };
    match root.check(signed, "document", &one) {
        Ok(keys) => Ok(keys.into_iter().collect()),
        Err(TeamRefusal::Threshold { .. }) => Ok(BTreeSet::new()),
        Err(refusal) => Err(refusal),
    }
}

/// Returns true if a timestamp or bundle has all signatures of its role.
pub(super) fn is_complete(root: &Root, name: &DocumentName, signed: &SignedText) -> bool {
    let (what, role) = match name {
        DocumentName::Timestamp => (TIMESTAMP, &root.roles.timestamp),
        DocumentName::Bundle(_) => (BUNDLE, &root.roles.bundle),
        DocumentName::Root(_) | DocumentName::PinnedRoot(_) => return false,
    };
    root.check(signed, what, role).is_ok()
}

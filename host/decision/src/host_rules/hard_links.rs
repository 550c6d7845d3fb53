//! The ruling on files with several names (hard links).

use super::by_host::by_host;
use super::grantable::{HARD_LINKS, is_for_one_file};
use crate::{Effect, Grant, Request, Ruling};

/// Returns the ruling that the file's other names add to the decision, if any.
pub(super) fn ruling(request: &Request, grants: &[Grant]) -> Option<Ruling> {
    let names = request.other_names()?;
    let is_granted = || grants.iter().any(|grant| is_for_one_file(&grant.pattern) && grant.covers(request));
    if !names.is_denied && is_granted() {
        return None;
    }
    Some(by_host(if names.is_denied { Effect::Deny } else { Effect::Ask }, HARD_LINKS, names.reason.clone()))
}

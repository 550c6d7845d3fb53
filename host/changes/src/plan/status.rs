//! Modes and extended attributes in a plan.

use crate::state::{Attributes, FileState, is_same_attribute as is_same};

/// Returns true if two files have the same extended attributes, as far as they are known.
pub(crate) fn are_alike(one: Option<&Attributes>, other: Option<&Attributes>) -> bool {
    let Some((one, other)) = one.zip(other) else { return true };
    one.len() == other.len() && one.iter().zip(other).all(|(one, other)| is_same(one, other))
}

/// The permissions that an owner gets while a file is written.
const OPENED: u32 = 0o600;
/// The bits of a mode that files get back.
const GIVEN: u32 = 0o1777;

/// Returns true if a step that makes one file of the other may have left a file with this mode and these attributes.
pub(super) fn has_status_between(
    now: &FileState,
    earlier: Option<&FileState>,
    to: Option<&FileState>,
) -> bool {
    let states = || earlier.into_iter().chain(to);
    // Set-id bits are not given.
    let mode = now.mode & GIVEN;
    let mut modes = states().map(|state| state.mode & GIVEN);
    let has_mode = mode == OPENED || modes.any(|other| [other, other | OPENED].contains(&mode));
    let known: Vec<_> = states().filter_map(|state| state.attributes.as_ref()).collect();
    let (Some(now), false) = (&now.attributes, known.is_empty()) else { return has_mode };
    let is_tag = |(name, _): &&(String, String)| name.starts_with("user.");
    let is_of_one = now.iter().filter(is_tag).all(|tag| known.iter().any(|all| all.contains(tag)));
    let common = known.iter().flat_map(|all| all.iter()).filter(is_tag);
    let are_kept =
        common.filter(|tag| known.iter().all(|all| all.contains(tag))).all(|tag| now.contains(tag));
    has_mode && is_of_one && are_kept
}

/// Returns the former state of a file, with the mode and attributes that the user has changed since: `left` is the state
/// that the session left, `now` the present one.
pub(super) fn with_later_status(was: &FileState, left: &FileState, now: &FileState) -> FileState {
    let mut merged = was.clone();
    if now.mode != left.mode {
        merged.mode = now.mode;
    }
    if let (Some(was), Some(left), Some(now)) = (&mut merged.attributes, &left.attributes, &now.attributes) {
        merge(was, left, now);
    }
    merged
}

/// Adds the differences between `left` and `now` to `was`, for the attributes that users set.
fn merge(was: &mut Attributes, left: &Attributes, now: &Attributes) {
    let is_tag = |name: &str| name.starts_with("user.");
    let value = |all: &Attributes, name: &str| {
        all.iter().find(|(other, _)| other == name).map(|(_, value)| value.clone())
    };
    let names = left.iter().chain(now).map(|(name, _)| name).filter(|name| is_tag(name));
    for name in names.filter(|name| value(left, name) != value(now, name)) {
        was.retain(|(other, _)| other != name);
        was.extend(value(now, name).map(|value| (name.clone(), value)));
    }
    was.sort();
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all(pairs: &[(&str, &str)]) -> Attributes {
        pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
    }

    #[test]
    fn later_attributes_are_merged() {
        let left = all(&[("user.agent", "2"), ("user.both", "2"), ("user.gone", "1")]);
        let now = all(&[("user.agent", "2"), ("user.both", "3"), ("user.own", "x")]);
        let mut was = all(&[("user.agent", "1"), ("user.both", "1"), ("user.gone", "1")]);
        merge(&mut was, &left, &now);
        assert_eq!(was, all(&[("user.agent", "1"), ("user.both", "3"), ("user.own", "x")]));
    }
}

//! Modes and extended attributes in a plan.

use crate::state::{Attributes, FileState};

/// Returns true if two files have the same extended attributes, as far as they are known.
pub(super) fn are_alike(one: Option<&Attributes>, other: Option<&Attributes>) -> bool {
    one.zip(other).is_none_or(|(one, other)| one == other)
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

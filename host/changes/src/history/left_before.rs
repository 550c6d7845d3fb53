//! What calls had left at a name before one of them recorded it.

use std::collections::HashMap;

use super::times::is_of_call;
use super::traces::{Found, Left, state_in, state_left};
use crate::record::{CallKey, Record};
use crate::state::{FileId, State};

/// What the entries of a journal say up to the one that is being read.
pub(super) struct Known<'a> {
    pub(super) entries: &'a [Record],
    /// What the last call that ended left of a file, by whichever of its names.
    pub(super) files_left: &'a HashMap<FileId, Left>,
    /// The position at which each call ended.
    pub(super) ended: &'a HashMap<CallKey, usize>,
}

impl Known<'_> {
    /// Returns what calls had left at a name before one of them recorded `was` there.
    ///
    /// `by_path` is what the last call left at the name, `former` the last record of the same file by another call.
    pub(super) fn left_before(
        &self,
        by_path: Option<Left>,
        was: &State,
        former: Option<Found>,
    ) -> Option<Left> {
        let id = by_path.and_then(|left| self.id(left));
        // The user may have moved another file there.
        let Some(now) = was.file().filter(|file| by_path.is_none() || id == Some(file.id)) else {
            return by_path;
        };
        let is_it = |other: &Left| {
            by_path.is_none() || has_several_names([Some(was), state_left(self.entries, *other)])
        };
        let left = Left::newer(by_path, self.files_left.get(&now.id).copied().filter(is_it));
        let Some(Found { at, call, .. }) = former else { return left };
        let Some(Record::Ended { at: end, .. }) =
            self.ended.get(&call).and_then(|end| self.entries.get(*end))
        else {
            return left;
        };
        let Some(then) = state_in(self.entries, at).and_then(State::file) else { return left };
        if is_of_call(now, then, *end) {
            // What that call has written by a name that it removed is not the user's.
            return left.filter(|left| !left.is_before(at) || self.id(*left) != Some(now.id));
        }
        let several = now.links > 1 || then.links > 1;
        Left::newer(left, several.then_some(Left::Found(at)))
    }

    fn id(&self, left: Left) -> Option<FileId> {
        state_left(self.entries, left)?.id()
    }
}

/// Returns true if one of these states is of a file with several names. A file with one name that calls know by two was
/// moved by the user, so what calls say of one name is not about the other.
pub(super) fn has_several_names(states: [Option<&State>; 2]) -> bool {
    states.into_iter().flatten().filter_map(State::file).any(|file| file.links > 1)
}

//! A recorded move, and whether a file on the disk is the one that was moved.

use super::stuck::Names;
use super::version::is_given_back;
use crate::state::State;

/// A move that a call has made.
#[derive(Clone, Copy)]
pub(super) struct RecordedMove<'a> {
    pub(super) names: Names<'a>,
    pub(super) what: &'a State,
    /// When the call ended: seconds and nanoseconds.
    pub(super) ended: (i64, u32),
}

impl RecordedMove<'_> {
    /// Returns true if a state is that of the file or directory that was moved, or that an undo made of it.
    pub(super) fn is_of(&self, state: &State) -> bool {
        match (state, self.what) {
            (State::File(now), State::File(was)) => now.id == was.id || is_given_back(now, was),
            // The partner of an exchange is no newer than that.
            (State::Directory(now), State::Directory(was)) => {
                now.id == was.id || !self.names.exchange || now.id.born > self.ended
            }
            (now, was) => now == was,
        }
    }
}

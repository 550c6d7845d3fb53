//! The undo or whole call that is not complete.

use crate::record::{CallKey, Record};

/// The undo or whole call that is not complete: its key, the position after its first entry, and whether it is whole.
#[derive(Debug, Default)]
pub(super) struct Open(pub(super) Option<(CallKey, usize, bool)>);

impl Open {
    pub(super) fn note(&mut self, entry: &Record, position: usize) {
        match entry {
            Record::Undo { call, .. } => self.0 = Some((*call, position + 1, false)),
            Record::Whole { call } => self.0 = Some((*call, position + 1, true)),
            Record::Undone { call, .. } if self.0.is_some_and(|(of, ..)| of == *call) => self.0 = None,
            Record::Ended { call, .. } if self.0.is_some_and(|(of, _, is_whole)| of == *call && is_whole) => {
                self.0 = None;
            }
            Record::Undone { .. }
            | Record::Ended { .. }
            | Record::Moved { .. }
            | Record::Before { .. }
            | Record::Turn { .. }
            | Record::NotMoved { .. }
            | Record::Left { .. }
            | Record::LeftSoFar { .. }
            | Record::Reaches { .. }
            | Record::NotMade { .. }
            | Record::Opens { .. }
            | Record::Closes { .. } => {}
        }
    }

    /// Returns true for its call, and for the one that puts it back.
    pub(super) fn has(&self, call: CallKey) -> bool {
        self.0.is_some_and(|(of, ..)| of.view == call.view)
    }
}

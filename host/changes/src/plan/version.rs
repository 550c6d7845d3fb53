//! Versions of a name: what is on the disk, and the states that calls recorded.

use std::path::PathBuf;

use super::step::Why;
use crate::record::CallKey;
use crate::state::{Content, FileState, State};

/// A state that was recorded before a call changed it.
#[derive(Clone, Copy)]
pub(super) struct Recorded<'a> {
    pub(super) position: usize,
    pub(super) call: CallKey,
    pub(super) was: &'a State,
}

/// A version of a name: what is on the disk, or a recorded state.
#[derive(Clone)]
pub(super) struct Version {
    pub(super) state: State,
    pub(super) origin: Origin,
    /// Where it is, if it is on the disk.
    pub(super) real: Option<PathBuf>,
    /// Its text, if later edits were merged into it.
    pub(super) text: Option<Vec<u8>>,
}

impl Version {
    pub(super) fn recorded(Recorded { was, call, .. }: Recorded<'_>) -> Self {
        Self { state: was.clone(), origin: Origin::Recorded(call), real: None, text: None }
    }

    /// Returns true unless a call recorded this version itself: what it finds between its own changes is its own.
    pub(super) fn is_foreign_to(&self, call: CallKey) -> bool {
        match self.origin {
            Origin::Disk => true,
            Origin::Recorded(by) => by != call || self.text.is_some(),
            Origin::Implied => false,
        }
    }
}

/// Where a state comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Origin {
    /// It is on the disk.
    Disk,
    /// A call recorded it.
    Recorded(CallKey),
    /// It follows from other steps.
    Implied,
}

/// The result of going one recorded state back.
pub(super) enum Back {
    /// It is that state.
    Same,
    /// To that state, or to its text with later edits merged.
    To(Option<Vec<u8>>),
    /// No further, for this reason.
    Stays(Why),
}

/// Returns what is put beside a name that cannot have this state again: a file that was kept, or a link.
pub(super) fn beside(former: &State) -> Option<State> {
    match former {
        State::File(FileState { content: Content::Kept(_), .. }) | State::Link { .. } => Some(former.clone()),
        State::File(_) | State::Absent | State::Directory(_) | State::Special { .. } => None,
    }
}

/// Where a file is now that had another name before.
pub(super) struct Present {
    pub(super) path: PathBuf,
    /// Another file was moved to its name, so the path is only where it was.
    pub(super) is_replaced: bool,
}

//! Versions of a name: what is on the disk, and the states that calls recorded.

use std::collections::BTreeMap;
use std::path::PathBuf;

use super::step::Why;
use crate::state::{Content, FileState, State};

/// A state that was recorded before a call changed it.
#[derive(Clone, Copy)]
pub(super) struct Recorded<'a> {
    pub(super) position: usize,
    pub(super) was: &'a State,
}

/// The states that were recorded for each name between two moves, the newest first.
pub(super) type Pending<'a> = BTreeMap<PathBuf, Vec<Recorded<'a>>>;

/// A version of a name: what is on the disk, or a recorded state.
#[derive(Clone)]
pub(super) struct Version {
    pub(super) state: State,
    pub(super) origin: Origin,
    /// Where it is, if it is on the disk.
    pub(super) real: Option<PathBuf>,
    /// Its text, if later edits were merged into it.
    pub(super) text: Option<Vec<u8>>,
    /// What is on the disk, if that is this recorded state already.
    pub(super) on_disk: Option<State>,
    /// Whether it is a file with several names, which share what happens to it.
    pub(super) is_shared: bool,
}

impl Version {
    pub(super) fn of(state: State, origin: Origin) -> Self {
        Self { state, origin, real: None, text: None, on_disk: None, is_shared: false }
    }

    pub(super) fn recorded(Recorded { was, position }: Recorded<'_>) -> Self {
        Self::of(was.clone(), Origin::Recorded(position))
    }

    /// Somebody else has removed what was recorded.
    pub(super) fn removed(Recorded { position, .. }: Recorded<'_>) -> Self {
        Self::of(State::Absent, Origin::Removed(position))
    }
}

/// Where a state comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Origin {
    /// It is on the disk.
    Disk,
    /// A call recorded it, at this position.
    Recorded(usize),
    /// Somebody else has removed what a call recorded at this position.
    Removed(usize),
    /// It follows from other steps.
    Implied,
}

/// The result of going one recorded state back.
pub(super) enum Back {
    /// It is that state.
    Same,
    /// To that state.
    To,
    /// To that state with later edits merged: into its mode and attributes, and into its text.
    Merged(FileState, Vec<u8>),
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

/// Returns true if a state that a call or an undo has left is one that was recorded, as far as size and time tell.
pub(super) fn is_same_version(left: &State, recorded: &State) -> bool {
    match (left, recorded) {
        (State::File(left), State::File(recorded)) => {
            (left.size, left.modified) == (recorded.size, recorded.modified)
        }
        (State::Directory(_), State::Directory(_)) => true,
        (left, recorded) => left == recorded,
    }
}

/// Returns how many of the newest states of a name its file has passed already, by another name.
pub(super) fn passed(version: &Version, states: &[Recorded<'_>]) -> usize {
    let Origin::Recorded(at) = version.origin else { return 0 };
    let is_passed = |other: &&Recorded<'_>| {
        other.position >= at && other.was.file().is_some() && other.was.id() == version.state.id()
    };
    states.iter().take_while(is_passed).count()
}

/// Returns true if both are files, and not the same.
pub(super) fn is_other_file(left: &State, recorded: &State) -> bool {
    left.file().zip(recorded.file()).is_some_and(|(left, recorded)| left.id != recorded.id)
}

/// Returns true if a file has another number than a recorded one because it was given back: with its size and its time,
/// which is older than the new file. Another file can have both by chance, but then it is as old as its time.
pub(super) fn is_given_back(now: &FileState, was: &FileState) -> bool {
    let is_known = now.id.born != (0, 0);
    (now.size, now.modified) == (was.size, was.modified) && (!is_known || now.id.born > now.modified)
}

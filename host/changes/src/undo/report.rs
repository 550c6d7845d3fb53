//! What undoing has done.

use std::collections::HashSet;
use std::io;
use std::path::PathBuf;

use rustix::io::Errno;

use crate::plan::Why;
use crate::state::Lost;

/// What was done.
#[derive(Debug, Default)]
pub struct Report {
    /// The names that have their former state again.
    pub done: Vec<PathBuf>,
    /// The texts into which later edits were merged.
    pub merged: Vec<PathBuf>,
    /// What was left as it is, why, and where the former version is.
    pub left: Vec<(PathBuf, Why, Option<PathBuf>)>,
    /// What could not be done.
    pub failed: Vec<(PathBuf, io::Error)>,
    /// Whether the project directory is not there.
    pub is_project_gone: bool,
    /// What was replaced or removed and could not be kept, so that taking this back does not bring it back.
    pub lost: Vec<(PathBuf, Lost)>,
}

impl Report {
    /// Returns true if the undo can be repeated: the user can remove an obstacle, such as a closed directory, or the project
    /// can come back. What the user has changed is no obstacle: repeating would find it changed again.
    #[must_use]
    pub fn can_be_repeated(&self) -> bool {
        let is_closed = |why: &Why| matches!(why, Why::Closed | Why::Unreadable);
        let is_in_the_way = |why: &Why| matches!(why, Why::Occupied | Why::NotEmpty | Why::Missed);
        // Others would be the same again, as for an access list with a user who is not known.
        let is_error = |error: &io::Error| {
            matches!(
                Errno::from_io_error(error),
                Some(Errno::ACCESS | Errno::NOSPC | Errno::DQUOT | Errno::ROFS | Errno::BUSY | Errno::IO)
            )
        };
        let is_left = |is_reason: &dyn Fn(&Why) -> bool| self.left.iter().any(|(_, why, _)| is_reason(why));
        let is_nothing_done = self.done.is_empty() && self.merged.is_empty();
        is_nothing_done && (self.is_project_gone && !self.is_complete() || is_left(&is_in_the_way))
            || self.failed.iter().any(|(_, error)| is_error(error))
            || is_left(&is_closed)
    }

    /// Leaves each name in the lists only once: several steps can be at one name.
    pub(super) fn count_once(&mut self) {
        let mut seen = HashSet::new();
        self.merged.retain(|path| seen.insert(path.clone()));
        self.done.retain(|path| seen.insert(path.clone()));
        let mut seen = HashSet::new();
        self.left.retain(|left| seen.insert(left.clone()));
    }

    /// Returns true if everything was done.
    #[must_use]
    pub fn is_complete(&self) -> bool {
        self.left.is_empty() && self.failed.is_empty()
    }
}

/// The result of a call that is made as a whole or not at all.
#[derive(Debug)]
pub enum Whole {
    /// It was made.
    Made,
    /// It was stopped, and is taken back.
    Stopped {
        /// What stopped it.
        by: Report,
        /// How it was taken back. If that is not complete, [`recover`](super::recover) goes on with it.
        back: Box<Report>,
    },
}

//! The differences between a branch and its project.

use std::collections::BTreeMap;
use std::fmt;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

use crate::state::{FileId, State};

/// Files up to this length are searched for secrets.
pub(super) const SEARCHED: u64 = 8 << 20;

/// A time: seconds and nanoseconds since 1970.
pub type Time = (i64, u32);

/// The two directories of a branch.
#[derive(Debug, Clone, Copy)]
pub struct Layers<'a> {
    /// The project, canonical.
    pub project: &'a Path,
    /// The directory of changes.
    pub upper: &'a Path,
    /// When the branch began, by the clock of file times. A file of the project that changed then or later is a conflict.
    pub begun: Time,
    /// The state of each name after the last commit of this branch that changed it.
    pub settled: &'a BTreeMap<PathBuf, Settled>,
}

/// A name of the project as a commit left it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Settled {
    /// Identity of the file or directory; `None` for a link or a missing name.
    pub id: Option<FileId>,
    /// When its status last changed; of a directory, also when a name in it last changed.
    pub changed: Time,
}

impl Settled {
    /// The state of a missing name.
    pub(crate) const ABSENT: Self = Self { id: None, changed: (0, 0) };
}

/// A name that differs between a branch and the project.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BranchChange {
    /// The path in the project.
    pub path: PathBuf,
    /// The state of the name in the project.
    pub now: State,
    /// The state of the name in the branch.
    pub new: State,
    /// When the status of the name in the branch last changed.
    pub changed: Time,
    /// When the status of the name in the project last changed; zero for a directory or a missing name.
    pub project_changed: Time,
    /// Why it cannot be committed.
    pub obstacle: Option<Obstacle>,
    /// Notes for the review, such as set-id bits that a commit leaves off.
    pub notes: Vec<Note>,
}

impl BranchChange {
    /// Returns true if a directory of the project is removed, or replaced by something else.
    pub(super) fn takes_directory(&self) -> bool {
        matches!(self.now, State::Directory(_)) && !matches!(self.new, State::Directory(_))
    }

    /// Returns true if a directory is made.
    pub(super) fn makes_directory(&self) -> bool {
        matches!(self.new, State::Directory(_)) && !matches!(self.now, State::Directory(_))
    }

    /// Returns the word for it: `made`, `changed` or `removed`.
    #[must_use]
    pub fn word(&self) -> &'static str {
        match (&self.now, &self.new) {
            (State::Absent, _) => "made",
            (_, State::Absent) => "removed",
            _ => "changed",
        }
    }
}

/// Why a name cannot be committed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Obstacle {
    /// Somebody changed it in the project since the branch began.
    ChangedSince,
    /// Somebody removed it from the project since the branch began.
    RemovedSince,
    /// The branch has removed it, maybe by moving it to a name that is a conflict.
    MayHaveMoved,
    /// It is a pipe, a socket or a device.
    Special,
    /// It would replace a pipe, a socket or a device.
    ReplacesSpecial,
    /// It cannot be read.
    Unreadable,
    /// Its path is too long.
    TooLong,
    /// It has a mark of an overlay that this kernel's overlays do not make here.
    UnknownMark,
}

impl Obstacle {
    /// Returns true if the user can decide that the branch's version counts.
    #[must_use]
    pub fn is_conflict(self) -> bool {
        matches!(self, Self::ChangedSince | Self::RemovedSince | Self::MayHaveMoved)
    }
}

impl fmt::Display for Obstacle {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::ChangedSince => "conflict: it was changed in the project since the branch began",
            Self::RemovedSince => "conflict: it was removed from the project since the branch began",
            Self::MayHaveMoved => "conflict: the branch may have moved it to a name that is a conflict",
            Self::Special => "pipes, sockets and devices are not committed",
            Self::ReplacesSpecial => "it would replace a pipe, a socket or a device in the project",
            Self::Unreadable => "it cannot be read",
            Self::TooLong => "its path is too long",
            Self::UnknownMark => "it has a mark of an overlay that is not known",
        })
    }
}

/// Something that a commit does not carry over, or that a review cannot show.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Note {
    /// Set-id bits.
    SetId,
    /// The other names of a file of the project keep the old content.
    OtherNames,
    /// It is too long to be searched for secrets.
    NotSearched,
}

impl fmt::Display for Note {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::SetId => "set-id bits are left off",
            Self::OtherNames => "its other names in the project keep the old content",
            Self::NotSearched => "it is too long to be searched for secrets",
        })
    }
}

/// Returns an id of what a review shows: it differs after any change in the branch, or in the project at these names.
#[must_use]
pub fn review_id(changes: &[BranchChange]) -> String {
    let mut digest = Sha256::new();
    for change in changes {
        // The debug form names every field.
        digest.update(format!("{change:?}\n"));
    }
    digest.finalize().iter().take(6).map(|byte| format!("{byte:02x}")).collect()
}

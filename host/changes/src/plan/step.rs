//! The steps of a plan, and what planning looks at.

use std::ffi::OsString;
use std::io;
use std::path::{Path, PathBuf};

use crate::state::{FileState, Lost, State};

/// What planning looks at.
pub trait World {
    /// Returns the state of a path.
    ///
    /// # Errors
    /// The system's.
    fn look(&self, path: &Path) -> io::Result<State>;
    /// Returns the digest of a file that was looked at.
    ///
    /// # Errors
    /// The system's.
    fn digest(&self, path: &Path, file: &FileState) -> io::Result<Option<String>>;
    /// Returns the digest of a kept content.
    ///
    /// # Errors
    /// The system's.
    fn digest_of_kept(&self, file: &FileState) -> io::Result<Option<String>>;
    /// Returns the content of a file that was looked at, if it is short.
    ///
    /// # Errors
    /// The system's.
    fn text(&self, path: &Path, file: &FileState) -> io::Result<Option<Vec<u8>>>;
    /// Returns a kept content, if it is short.
    ///
    /// # Errors
    /// The system's.
    fn kept(&self, file: &FileState) -> io::Result<Option<Vec<u8>>>;
    /// Returns true if the content of a file that was looked at is the beginning of a kept content.
    ///
    /// # Errors
    /// The system's.
    fn is_beginning(&self, path: &Path, file: &FileState, of: &FileState) -> io::Result<bool>;
    /// Returns true if undo keeps contents of this size, in bytes, so that a redo can bring them back.
    fn keeps(&self, size: u64) -> bool;
    /// Returns when anything of a file was last changed: seconds and nanoseconds.
    ///
    /// # Errors
    /// The system's.
    fn changed_at(&self, path: &Path) -> io::Result<(i64, u32)>;
    /// Returns the names in a directory.
    ///
    /// # Errors
    /// The system's.
    fn names(&self, path: &Path) -> io::Result<Vec<OsString>>;
    /// Opens the closed directories on the way to a path that `may` allows to be opened, and runs `look` while they are
    /// open; not at all if there is none.
    fn with_open_way(&self, path: &Path, may: &dyn Fn(&Path, &State) -> bool, look: &mut dyn FnMut());
}

/// One step of an undo.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Step {
    /// The path.
    pub path: PathBuf,
    /// What must be there; `None` if an earlier step makes it.
    pub now: Option<State>,
    /// The change to make.
    pub act: Act,
    /// Whether the file has got another hard link since the session left it. Then a new file replaces it, so that the
    /// link keeps the present content.
    pub is_linked_since: bool,
    /// Whether this name becomes a file of its own, because the user has changed the file by another name since, or has
    /// put an edited copy in its place.
    pub is_separate: bool,
}

impl Step {
    pub(super) fn new(path: PathBuf, now: Option<State>, act: Act) -> Self {
        Self { path, now, act, is_linked_since: false, is_separate: false }
    }

    /// Returns true if it leaves something as it is.
    #[must_use]
    pub fn is_left(&self) -> bool {
        matches!(self.act, Act::Leave { .. })
    }
}

/// A change that a step makes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Act {
    /// Gives the name its former state.
    Restore(State),
    /// Writes a text into which the later edits were merged.
    Merge {
        /// The former state, for mode and attributes.
        was: FileState,
        /// The text.
        text: Vec<u8>,
    },
    /// Gives a file its former name, or exchanges two again.
    MoveBack {
        /// The former name.
        to: PathBuf,
        /// Whether both names change places.
        exchange: bool,
    },
    /// Leaves it as it is.
    Leave {
        /// The reason.
        why: Why,
        /// The former version, a file or a link, which is put beside it.
        beside: Option<State>,
    },
}

/// Why something is left as it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Why {
    /// Somebody else changed it since.
    Changed,
    /// The session made it, and the user or another program changed it since.
    MadeAndChanged,
    /// Somebody else removed or moved it since.
    Removed,
    /// The directory holds files that the session did not make.
    NotEmpty,
    /// Something else has the former name.
    Occupied,
    /// Its present content cannot be kept, because it cannot be read.
    Unreadable,
    /// It got another hard link since the session left it. This name was given back; its other names keep their content.
    OtherNames,
    /// Its other name was changed since. It was given back as a file of its own.
    Separate,
    /// It was given back as a file of its own, with later edits. Its other names keep what the session has written.
    OtherNamesKeep,
    /// The former content was not kept.
    Lost(Lost),
    /// The session made this file, and it may be the only copy of another file that undo cannot give back. It is too large
    /// for the record, so a redo could not bring it back.
    OnlyCopy,
    /// It is a closed directory, or one on the way to it is.
    Closed,
    /// Something in it or around it is left as it is.
    Missed,
    /// Its extended attributes cannot be set; the rest was given back.
    Attributes,
}

impl std::fmt::Display for Why {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Changed => formatter.write_str("it was changed since"),
            Self::MadeAndChanged => formatter.write_str("it was changed since, so it is not removed"),
            Self::Removed => formatter.write_str("it was removed or moved since"),
            Self::NotEmpty => formatter.write_str("it holds files that the session did not make"),
            Self::Occupied => formatter.write_str("something else has its former name now"),
            Self::Closed => formatter.write_str(
                "it or its directory is closed (`chmod u+rwx` opens it); undo again when it is open",
            ),
            Self::Missed => formatter.write_str("something in it or around it could not be undone"),
            Self::Attributes => {
                formatter.write_str("it was given back without its access list or other extended attributes")
            }
            Self::Unreadable => formatter.write_str("it cannot be read, so what it is now could not be kept"),
            Self::OtherNames => formatter.write_str(
                "it was given back under this name only: it was linked since, and its other names are as they were",
            ),
            Self::OtherNamesKeep => formatter.write_str(
                "it was given back as a file of its own; its other names (hard links) keep what the session has \
                 written",
            ),
            Self::Separate => formatter.write_str(
                "it was given back as a file of its own: its other name, to which it was linked, was changed since",
            ),
            Self::OnlyCopy => formatter.write_str(
                "the session made it, but it may be the only copy of a file that cannot be given back, and it is larger \
                 than `undo.maxFileMib`; remove it yourself if you do not need it",
            ),
            Self::Lost(lost) => write!(formatter, "its former content was not kept: {lost}"),
        }
    }
}

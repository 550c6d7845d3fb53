//! How far a collector has received the log.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{ErrorKind, Write as _};
use std::path::{Path, PathBuf};

use portcullis_audit::Mark;
use serde::{Deserialize, Serialize};

/// The version of the file; others are damaged.
const VERSION: u32 = 1;

/// Positions in the files of the log, by their names.
pub(crate) type Marks = BTreeMap<String, Mark>;

/// How far a collector has received the log.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Cursor {
    pub(crate) version: u32,
    /// The end of the accepted part of each file.
    pub(crate) accepted: Marks,
    /// The end of the part of each file that may have arrived.
    pub(crate) under_way: Marks,
    /// Removed logs that were told.
    pub(crate) missing: BTreeSet<String>,
    /// Number of records that were accepted.
    pub sent: u64,
    /// Number of records among them that may have arrived twice.
    pub repeated: u64,
    /// Number of records that the collector refused for good.
    pub refused: u64,
    /// Why the newest batch was not accepted, if it was not.
    pub failure: Option<Failure>,
}

/// Why a batch was not accepted.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Failure {
    /// The first failure after the last success, in milliseconds since 1970-01-01 UTC.
    pub since_ms: u64,
    /// The newest reason.
    pub reason: String,
}

/// Why the state of an export cannot be read or written.
#[derive(Debug, thiserror::Error)]
#[error("{doing} `{}`", path.display())]
pub struct CursorError {
    pub(crate) doing: &'static str,
    pub(crate) path: PathBuf,
    #[source]
    pub(crate) source: std::io::Error,
}

/// The content of a cursor's file.
pub(crate) enum Found {
    Whole(Cursor),
    /// There is none yet.
    Nothing,
    /// It is no cursor of this program.
    Damaged,
}

impl Cursor {
    pub(crate) fn new() -> Self {
        Self { version: VERSION, ..Self::default() }
    }

    /// Reads the cursor of a destination; the one of a new destination if there is none, or it is damaged.
    ///
    /// # Errors
    /// When the file exists and cannot be read.
    pub fn read(state: &Path, destination: &str) -> Result<Self, CursorError> {
        match Self::find(&path(state, destination))? {
            Found::Whole(cursor) => Ok(cursor),
            Found::Nothing | Found::Damaged => Ok(Self::new()),
        }
    }

    pub(crate) fn find(path: &Path) -> Result<Found, CursorError> {
        match std::fs::read(path) {
            Ok(bytes) => Ok(match serde_json::from_slice::<Self>(&bytes) {
                Ok(cursor) if cursor.version == VERSION => Found::Whole(cursor),
                Ok(_) | Err(_) => Found::Damaged,
            }),
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(Found::Nothing),
            Err(source) => Err(CursorError { doing: "reading", path: path.to_owned(), source }),
        }
    }

    /// Replaces the file; after a crash it is the old one or this one.
    pub(crate) fn write(&self, path: &Path) -> Result<(), CursorError> {
        let written = || -> std::io::Result<()> {
            let directory = path.parent().unwrap_or_else(|| Path::new("."));
            let mut file = tempfile::Builder::new().prefix(".cursor-").tempfile_in(directory)?;
            serde_json::to_writer(&mut file, self)?;
            file.flush()?;
            file.as_file().sync_data()?;
            file.persist(path)?;
            Ok(())
        };
        written().map_err(|source| CursorError { doing: "writing", path: path.to_owned(), source })
    }
}

/// Returns the file of a destination's cursor.
pub(crate) fn path(state: &Path, destination: &str) -> PathBuf {
    state.join(format!("{destination}.json"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_survives_its_file_and_a_part_of_one_is_damaged() {
        let directory = tempfile::tempdir().unwrap();
        let file = path(directory.path(), "team");
        assert!(matches!(Cursor::find(&file).unwrap(), Found::Nothing));
        let mut cursor = Cursor { sent: 3, ..Cursor::new() };
        cursor.accepted.insert("a.jsonl".to_owned(), Mark { number: 3, offset: 900 });
        cursor.write(&file).unwrap();
        assert_eq!(Cursor::read(directory.path(), "team").unwrap(), cursor);

        let whole = std::fs::read(&file).unwrap();
        for length in 0..whole.len() {
            std::fs::write(&file, &whole[..length]).unwrap();
            assert!(matches!(Cursor::find(&file).unwrap(), Found::Damaged), "{length} bytes");
        }
        std::fs::write(&file, String::from_utf8(whole).unwrap().replace("\"version\":1", "\"version\":2"))
            .unwrap();
        assert!(matches!(Cursor::find(&file).unwrap(), Found::Damaged));
    }

    #[test]
    fn what_cannot_be_written_is_told_with_its_path() {
        let error = Cursor::new().write(Path::new("/nonexistent/team.json")).unwrap_err();
        assert_eq!(error.to_string(), "writing `/nonexistent/team.json`");
    }
}

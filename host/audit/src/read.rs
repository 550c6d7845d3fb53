//! Reads and verifies the log.

use std::fs::File;
use std::io::{self, BufRead as _, BufReader, Read as _, Seek as _, SeekFrom};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::head::{self, Head};
use crate::parts;
use crate::record::{LARGEST_LINE, Line, VERSION, sha256};

/// Why a line or the log cannot be read.
#[derive(Debug, thiserror::Error)]
#[expect(missing_docs, reason = "the messages say what the fields are")]
pub enum ReadError {
    /// The file cannot be read.
    #[error("reading the audit file `{}`", file.display())]
    Io {
        file: PathBuf,
        #[source]
        source: io::Error,
    },
    /// The last line is incomplete: the host was stopped while it wrote the line.
    #[error("line {number} has no end, the host was stopped while it wrote it")]
    Partial { number: u64 },
    /// A line is longer than the limit for writing.
    #[error("line {number} is longer than {LARGEST_LINE} bytes")]
    TooLong { number: u64 },
    /// A line is not a record.
    #[error("line {number} is no record")]
    Malformed {
        number: u64,
        #[source]
        source: serde_json::Error,
    },
    /// A line has a later version of the format.
    #[error("line {number} has version {version}, this program reads up to {VERSION}")]
    Version { number: u64, version: u32 },
    /// A line does not follow from the previous one.
    #[error("line {number} does not follow from the previous one: lines were removed or changed")]
    Chain { number: u64 },
    /// Lines at the end are missing.
    #[error(
        "it has {found} of the {written} lines that were written: its end was cut off, or lost when the machine stopped"
    )]
    Cut { found: u64, written: u64 },
    /// The last line differs from the one that was written.
    #[error("line {number} is not the one that was written there: the end was cut off and replaced")]
    Replaced { number: u64 },
    /// The record of the log's end is missing.
    #[error("`{}` is missing, which says where the log ends: its end may have been cut off", head.display())]
    NoHead { head: PathBuf },
    /// The record of the log's end cannot be used.
    #[error("reading `{}`, which says where the log ends", head.display())]
    Head {
        head: PathBuf,
        #[source]
        source: io::Error,
    },
}

/// A line that cannot be read.
#[derive(Debug)]
pub struct Trouble {
    /// The file.
    pub file: PathBuf,
    /// The problem.
    pub error: ReadError,
}

/// The lines of one file. A bad line gives an error, and reading continues with the next one.
#[derive(Debug)]
pub struct Lines {
    path: PathBuf,
    reader: BufReader<File>,
    number: u64,
    /// Byte offset of the next line.
    offset: u64,
    done: bool,
}

/// Reads the log at `path`.
///
/// # Errors
/// When it cannot be opened.
pub fn read(path: &Path) -> Result<Lines, ReadError> {
    let failed = |source| ReadError::Io { file: path.to_owned(), source };
    let file = File::open(path).map_err(failed)?;
    Ok(Lines { path: path.to_owned(), reader: BufReader::new(file), number: 0, offset: 0, done: false })
}

/// Continues at the position of an earlier reader of the same file.
///
/// # Errors
/// When the file cannot be opened.
pub fn read_on(path: &Path, mark: Mark) -> Result<Lines, ReadError> {
    let mut lines = read(path)?;
    let failed = |source| ReadError::Io { file: path.to_owned(), source };
    lines.reader.seek(SeekFrom::Start(mark.offset)).map_err(failed)?;
    (lines.number, lines.offset) = (mark.number, mark.offset);
    Ok(lines)
}

/// A position between two lines of a file.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Mark {
    /// Number of lines before it.
    pub number: u64,
    /// Number of bytes before it.
    pub offset: u64,
}

/// Reads the whole log that `path` is a part of, across all its files.
///
/// # Errors
/// When one of the files cannot be opened.
pub fn read_all(path: &Path) -> Result<impl Iterator<Item = Result<Line, ReadError>> + use<>, ReadError> {
    let files = files_of(path)?.iter().map(|file| read(file)).collect::<Result<Vec<_>, _>>()?;
    Ok(files.into_iter().flatten())
}

fn files_of(path: &Path) -> Result<Vec<PathBuf>, ReadError> {
    parts::existing_parts(path).map_err(|source| ReadError::Io { file: path.to_owned(), source })
}

/// The result for an intact log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Intact {
    /// The number of lines.
    pub lines: u64,
    /// Whether its end was checked.
    pub end: End,
}

/// Whether the end of a log was checked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum End {
    /// No lines are missing at the end.
    Checked,
    /// The log is older than records of the end; lines may be missing at the end.
    Unknown,
}

/// Reads the whole log that `path` is a part of, and checks that no line was removed or changed.
///
/// It finds such lines in a file, between two files, and at the end.
///
/// An incomplete line is an error as well, since a verdict may be lost. Additional lines after the recorded end are
/// not: the host was stopped between a line and its record, or is writing at the moment.
///
/// # Errors
/// At the first line that cannot be read or does not follow from the previous one, with its file; and when the end
/// differs from the recorded one.
pub fn verify(path: &Path) -> Result<Intact, Trouble> {
    let here = |error| Trouble { file: path.to_owned(), error };
    let (head_path, head) = head_of(path).map_err(here)?;
    let mut chain = Chain { head, ..Chain::default() };
    let files = files_of(path).map_err(here)?;
    for file in files {
        let followed = chain.follow(&file);
        followed.map_err(|error| Trouble { file, error: chain.explained(error) })?;
    }
    match &chain.head {
        Some(head) if chain.count < head.lines => Err(here(chain.cut(head.lines))),
        Some(_) => Ok(Intact { lines: chain.count, end: End::Checked }),
        None if chain.has_head => Err(here(ReadError::NoHead { head: head_path })),
        None => Ok(Intact { lines: chain.count, end: End::Unknown }),
    }
}

/// Reads the head before the lines: if the host writes meanwhile, there are more lines than the head says, never fewer.
fn head_of(path: &Path) -> Result<(PathBuf, Option<Head>), ReadError> {
    let directory = path.parent().unwrap_or_else(|| Path::new(""));
    let Some((name, _)) = parts::split(path) else { return Ok((head::path(directory, "NAME"), None)) };
    let file = head::path(directory, name);
    match head::read(&file) {
        Ok(head) => Ok((file, head)),
        Err(source) => Err(ReadError::Head { head: file, source }),
    }
}

/// State of a verification.
#[derive(Default)]
struct Chain {
    count: u64,
    previous: String,
    head: Option<Head>,
    /// Whether the first line says that there is a head.
    has_head: bool,
}

impl Chain {
    fn follow(&mut self, file: &Path) -> Result<(), ReadError> {
        let mut lines = read(file)?;
        while let Some(bytes) = lines.next_bytes() {
            let bytes = bytes?;
            let line = lines.parse(&bytes)?;
            self.count = self.count.saturating_add(1);
            if line.sequence != self.count || line.previous != self.previous {
                return Err(ReadError::Chain { number: lines.number });
            }
            self.has_head |= line.head;
            self.previous = sha256(&bytes);
            if self.head.as_ref().is_some_and(|head| head.lines == self.count && head.hash != self.previous) {
                return Err(ReadError::Replaced { number: self.count });
            }
        }
        Ok(())
    }

    /// Returns the error to report.
    ///
    /// An incomplete line counts as a missing end if more lines than those before it had been written.
    fn explained(&self, error: ReadError) -> ReadError {
        match (&error, &self.head) {
            (ReadError::Partial { .. }, Some(head)) if self.count < head.lines => self.cut(head.lines),
            _ => error,
        }
    }

    fn cut(&self, written: u64) -> ReadError {
        ReadError::Cut { found: self.count, written }
    }
}

impl Lines {
    /// Returns its position, after the last complete line.
    #[must_use]
    pub fn mark(&self) -> Mark {
        Mark { number: self.number, offset: self.offset }
    }

    /// Reads up to the next line end, and at most the size limit of a line.
    fn next_bytes(&mut self) -> Option<Result<Vec<u8>, ReadError>> {
        if self.done {
            return None;
        }
        let mut bytes = Vec::new();
        let limit = u64::try_from(LARGEST_LINE).unwrap_or(u64::MAX);
        let outcome = self.reader.by_ref().take(limit).read_until(b'\n', &mut bytes);
        let number = self.number.saturating_add(1);
        match outcome {
            Err(source) => {
                self.done = true;
                Some(Err(ReadError::Io { file: self.path.clone(), source }))
            }
            Ok(0) => {
                self.done = true;
                None
            }
            Ok(read) if bytes.pop_if(|last| *last == b'\n').is_some() => {
                self.advance(read);
                Some(Ok(bytes))
            }
            Ok(read) if read == LARGEST_LINE => match self.reader.skip_until(b'\n') {
                Ok(skipped) => {
                    self.advance(read.saturating_add(skipped));
                    Some(Err(ReadError::TooLong { number }))
                }
                Err(source) => {
                    self.done = true;
                    Some(Err(ReadError::Io { file: self.path.clone(), source }))
                }
            },
            Ok(_) => {
                self.done = true;
                Some(Err(ReadError::Partial { number }))
            }
        }
    }

    fn advance(&mut self, bytes: usize) {
        self.number = self.number.saturating_add(1);
        self.offset = self.offset.saturating_add(u64::try_from(bytes).unwrap_or(u64::MAX));
    }

    fn parse(&self, bytes: &[u8]) -> Result<Line, ReadError> {
        let number = self.number;
        let line: Line =
            serde_json::from_slice(bytes).map_err(|source| ReadError::Malformed { number, source })?;
        if line.version > VERSION {
            return Err(ReadError::Version { number, version: line.version });
        }
        Ok(line)
    }
}

impl Iterator for Lines {
    type Item = Result<Line, ReadError>;

    fn next(&mut self) -> Option<Self::Item> {
        let bytes = self.next_bytes()?;
        Some(bytes.and_then(|bytes| self.parse(&bytes)))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn write(text: &[u8]) -> (tempfile::TempDir, PathBuf) {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("x.jsonl");
        std::fs::write(&path, text).unwrap();
        (directory, path)
    }

    const GOOD: &str = r#"{"version":1,"sequence":1,"session":"s","previous":"","kind":"outcome","verdict":1,"result":"done"}"#;

    fn kinds(text: &str) -> Vec<String> {
        let (_directory, path) = write(text.as_bytes());
        let kind = |line: Result<Line, ReadError>| {
            line.map_or_else(|error| error.to_string(), |_| "good".to_owned())
        };
        read(&path).unwrap().map(kind).collect()
    }

    #[test]
    fn a_bad_line_does_not_hide_the_next() {
        let long = "x".repeat(LARGEST_LINE + 5);
        let later = GOOD.replace("\"version\":1", "\"version\":2");
        let text = format!("{GOOD}\nnope\n{long}\n{later}\n{GOOD}\n{{\"version\":1");
        assert_eq!(
            kinds(&text),
            [
                "good",
                "line 2 is no record",
                "line 3 is longer than 65536 bytes",
                "line 4 has version 2, this program reads up to 1",
                "good",
                "line 6 has no end, the host was stopped while it wrote it",
            ]
        );
        assert_eq!(kinds(""), Vec::<String>::new());
    }

    proptest! {
        #[test]
        fn no_bytes_make_it_panic(bytes in proptest::collection::vec(any::<u8>(), 0..300)) {
            let (_directory, path) = write(&bytes);
            prop_assert!(read(&path).unwrap().count() <= bytes.len());
        }
    }
}

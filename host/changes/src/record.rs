//! The records of a journal, one a line: a checksum of the rest, and JSON.
//!
//! A line that was cut off or damaged is skipped, and counted. Each record begins a new line, so one whose writer was
//! killed in the middle of it, or whose disk was full, does not damage the next.

use std::io::Write as _;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use crate::state::{FileId, State};
use crate::text;

/// The longest line that is written and read, in bytes.
const LONGEST: usize = 1 << 20;
/// The length that most lines do not exceed.
const USUAL: usize = 1 << 10;
/// The beginning of a line, with room for the checksum.
const START: &[u8] = b"\n00000000 ";

/// The command or tool call that made a change: unique within a journal.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct CallKey {
    /// The sandbox, or a random number of the program that undoes.
    pub view: u64,
    /// The number of the command in it, or of the host's call.
    pub number: u64,
}

/// A name and its state.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Named {
    /// The path.
    #[serde(with = "text")]
    pub path: PathBuf,
    /// Its state.
    pub state: State,
}

/// An entry of a journal.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "record", rename_all = "kebab-case")]
pub enum Record {
    /// A turn of the user begins.
    Turn {
        /// The client's name of the turn.
        id: String,
        /// The first words of what the user said.
        label: String,
        /// Milliseconds since 1970.
        at: u64,
    },
    /// A call is about to change a name for the first time.
    Before {
        /// The call.
        call: CallKey,
        /// The name, and what it stands for.
        #[serde(flatten)]
        was: Named,
        /// When its directory was last changed, if git keeps objects in it: seconds and nanoseconds.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        around: Option<(i64, u32)>,
    },
    /// A call is about to give a file or directory another name.
    Moved {
        /// The call.
        call: CallKey,
        /// The name so far.
        #[serde(with = "text")]
        from: PathBuf,
        /// The new name.
        #[serde(with = "text")]
        to: PathBuf,
        /// What is moved.
        what: State,
        /// Whether the two names change places.
        exchange: bool,
    },
    /// The move that the call last announced did not happen.
    NotMoved {
        /// The call.
        call: CallKey,
    },
    /// What a call has left at the names that it changed.
    Left {
        /// The call.
        call: CallKey,
        /// The names.
        names: Vec<Named>,
    },
    /// What a step of an undo has left at a name. It counts only if the undo is interrupted.
    LeftSoFar {
        /// The call.
        call: CallKey,
        /// The name.
        #[serde(flatten)]
        left: Named,
    },
    /// A step of an undo, or of a whole call, is about to change a name that was recorded before. Names without this
    /// are as they were.
    Reaches {
        /// The call.
        call: CallKey,
        /// The name.
        #[serde(with = "text")]
        path: PathBuf,
        /// What the step makes of it; `None` for a name whose state does not matter if the call is interrupted.
        #[serde(default)]
        to: Option<State>,
    },
    /// A call has ended.
    Ended {
        /// The call.
        call: CallKey,
        /// The client's name of the call, if it has one.
        id: Option<String>,
        /// What it did, in one line.
        label: String,
        /// Milliseconds since 1970.
        at: u64,
    },
    /// The user takes changes back; what follows with this call is the undo.
    Undo {
        /// The call of the undo.
        call: CallKey,
        /// The position of the first entry that is taken back.
        to: usize,
        /// Whether an undo is taken back.
        redo: bool,
        /// Milliseconds since 1970.
        at: u64,
    },
    /// A call begins whose changes are made as a whole or not at all. Without its end they are taken back.
    Whole {
        /// The call.
        call: CallKey,
    },
    /// The step that was about to change a name was not made: something else was there by then.
    NotMade {
        /// The call.
        call: CallKey,
        /// The name.
        #[serde(with = "text")]
        path: PathBuf,
    },
    /// A directory or file that is closed to its owner is about to be opened for a look.
    Opens {
        /// The name.
        #[serde(with = "text")]
        path: PathBuf,
        /// Which one it is.
        id: FileId,
        /// Its permissions.
        mode: u32,
        /// The permissions that it gets for that time.
        by: u32,
    },
    /// It has its permissions again.
    Closes {
        /// The name.
        #[serde(with = "text")]
        path: PathBuf,
    },
    /// An undo is complete, or was itself taken back; a whole call was taken back.
    Undone {
        /// The call of the undo.
        call: CallKey,
        /// Whether its changes are in force.
        complete: bool,
        /// Whether something could not be given back, and can be when the user has seen to it.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        partly: bool,
    },
}

impl Record {
    /// Returns the call that it belongs to.
    #[must_use]
    pub fn call(&self) -> Option<CallKey> {
        match self {
            Self::Turn { .. } | Self::Opens { .. } | Self::Closes { .. } => None,
            Self::Before { call, .. }
            | Self::Moved { call, .. }
            | Self::NotMoved { call }
            | Self::Left { call, .. }
            | Self::LeftSoFar { call, .. }
            | Self::Reaches { call, .. }
            | Self::NotMade { call, .. }
            | Self::Ended { call, .. }
            | Self::Undo { call, .. }
            | Self::Whole { call }
            | Self::Undone { call, .. } => Some(*call),
        }
    }

    /// Returns the view of an undo that begins here.
    pub(crate) fn undo_view(&self) -> Option<u64> {
        if let Self::Undo { call, .. } = self { Some(call.view) } else { None }
    }

    /// Returns the line of this record.
    ///
    /// # Errors
    /// If it cannot be written as JSON, or would be too long to be read again.
    pub fn line(&self) -> std::io::Result<Vec<u8>> {
        let mut line = Vec::with_capacity(USUAL);
        line.extend_from_slice(START);
        serde_json::to_writer(&mut line, self).map_err(std::io::Error::other)?;
        let (start, json) = line.split_at_mut(START.len());
        if json.len() > LONGEST {
            return Err(std::io::Error::from(std::io::ErrorKind::FileTooLarge));
        }
        let sum = crc32fast::hash(json);
        write!(start.get_mut(1..).unwrap_or_default(), "{sum:08x}")?;
        line.push(b'\n');
        Ok(line)
    }

    /// Reads a line, without its end; `None` if it is damaged.
    #[must_use]
    pub fn parse(line: &[u8]) -> Option<Self> {
        let (sum, json) = line.split_at_checked(8)?;
        let json = json.strip_prefix(b" ").filter(|json| json.len() <= LONGEST)?;
        let sum = u32::from_str_radix(std::str::from_utf8(sum).ok()?, 16).ok()?;
        (crc32fast::hash(json) == sum).then(|| from_json(json).ok()).flatten()
    }
}

/// The beginning of a [`Record::Before`], as it is written.
const BEFORE: &[u8] = br#"{"record":"before","#;

/// The other fields of that record. Most records are of this kind, and serde reads a type without kinds several times as
/// fast.
#[derive(Deserialize)]
struct Before {
    call: CallKey,
    #[serde(with = "text")]
    path: PathBuf,
    state: State,
    around: Option<(i64, u32)>,
}

/// Reads a record from JSON.
fn from_json(json: &[u8]) -> serde_json::Result<Record> {
    if !json.starts_with(BEFORE) {
        return serde_json::from_slice(json);
    }
    let Before { call, path, state, around } = serde_json::from_slice(json)?;
    Ok(Record::Before { call, was: Named { path, state }, around })
}

/// Reads the lines of a journal; also returns how many are damaged.
pub(crate) fn read(bytes: &[u8]) -> (Vec<Record>, usize) {
    let mut damaged = 0;
    let mut records = Vec::new();
    for line in bytes.split(|byte| *byte == b'\n').filter(|line| !line.is_empty()) {
        match Record::parse(line) {
            Some(record) => records.push(record),
            None => damaged += 1,
        }
    }
    (records, damaged)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn turn(id: &str) -> Record {
        Record::Turn { id: id.to_owned(), label: "a\nb".to_owned(), at: 7 }
    }

    #[test]
    fn a_line_that_would_not_be_read_is_not_written() {
        let read_again = |length| turn(&"x".repeat(length)).line().map(|line| read(&line).0.len());
        assert_eq!(read_again(LONGEST - 100).expect("a line"), 1);
        read_again(LONGEST).expect_err("too long");
    }

    #[test]
    fn a_torn_line_costs_only_itself() {
        let lines = [turn("1"), turn("2"), turn("3")].map(|record| record.line().expect("a line"));
        let torn = [&lines[0][..], &lines[1][..20], &lines[2][..]].concat();
        assert_eq!(read(&torn), (vec![turn("1"), turn("3")], 1));
        let cut = [&lines[0][..], &lines[1][..20]].concat();
        assert_eq!(read(&cut), (vec![turn("1")], 1));
    }

    #[test]
    fn the_order_of_fields_does_not_matter() {
        let call = CallKey { view: 1, number: 2 };
        let was = Named { path: "/a".into(), state: State::Absent };
        let written = Record::Before { call, was, around: Some((1, 2)) };
        let json = serde_json::to_string(&written).expect("JSON");
        assert!(json.as_bytes().starts_with(BEFORE), "{json}");
        let other =
            json.replacen("\"record\":\"before\",", "", 1).replacen('}', "},\"record\":\"before\"", 1);
        for json in [json, other] {
            assert_eq!(from_json(json.as_bytes()).expect("a record"), written, "{json}");
        }
    }

    proptest! {
        #[test]
        fn a_flipped_bit_is_noticed(at in 0_usize..60, bit in 0_u32..8) {
            let mut line = turn("x").line().expect("a line");
            let length = line.len();
            if let Some(byte) = line.get_mut(1 + at % (length - 2)) {
                *byte ^= 1 << bit;
            }
            let (records, _) = read(&line);
            // The checksum is written in lower case, but read in either.
            prop_assert!(records.is_empty() || records == vec![turn("x")]);
        }

        #[test]
        fn anything_can_be_read(bytes: Vec<u8>) {
            let _any = read(&bytes);
        }
    }
}

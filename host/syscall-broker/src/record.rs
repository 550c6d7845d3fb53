//! The record of a name order: the changes of commands that all brokers must know.
//!
//! It is a file that commands cannot reach and to which every broker appends. A change that matters to others is
//! appended before it is made, or while no other broker may judge by it; a broker reads new entries before it judges.
//! If the record cannot be read or written, or has become too long, brokers grant no freedoms from it any more.

use std::ffi::OsStr;
use std::fs::File;
use std::io::{self, Write};
use std::os::fd::OwnedFd;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::FileExt;

use portcullis_sandbox::RECORD_BEGINS;

use crate::identity::Identity;
use crate::wire::codec::{DecodeError, Reader, Writer};

/// The maximum length of a record, in bytes: each new broker reads it from the beginning.
const LONGEST: u64 = 32 << 20;
/// The number of bytes that are read at once; nearly always there are none.
const PIECE: usize = 4096;
/// The maximum length of an entry, which has one identity and one name.
const LONGEST_ENTRY: usize = 8 * PIECE;

/// A fact that all brokers have to know.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Note {
    /// A command of the session has made a directory or a link.
    Made(Identity),
    /// It no longer exists.
    Gone(Identity),
    /// A name is a user's place.
    Name(Identity, Vec<u8>),
    /// A name is no user's place after all.
    NoName(Identity, Vec<u8>),
    /// Everything in a directory is in a user's place, wherever it is moved, and no command counts as its maker.
    Directory(Identity),
    /// More than can be remembered.
    TooMany,
}

/// The record, as one broker reads and writes it.
#[derive(Debug)]
pub(crate) struct Record {
    file: File,
    /// The broker's own session.
    session: u64,
    /// The offset up to which it has been read.
    read: u64,
}

impl Record {
    /// Opens the record in `file`, which stays locked for use until this is dropped.
    pub(crate) fn open(file: OwnedFd, session: u64) -> io::Result<Self> {
        let file = File::from(file);
        file.lock_shared()?;
        Ok(Self { file, session, read: 0 })
    }

    /// Appends all notes, or [`Note::TooMany`] if the record is full.
    pub(crate) fn append(&mut self, notes: &[Note]) -> io::Result<()> {
        let mut bytes = Vec::new();
        let is_too_long = self.read >= LONGEST;
        let notes = if is_too_long { &[Note::TooMany] } else { notes };
        for note in notes {
            let entry = self.encode(note);
            let length = u32::try_from(entry.len()).map_err(|_too_long| io::ErrorKind::InvalidInput)?;
            bytes.extend_from_slice(&length.to_le_bytes());
            bytes.extend_from_slice(&entry);
        }
        // The file is in append mode: notes of other brokers do not come in between.
        (&self.file).write_all(&bytes)
    }

    /// Passes on the notes added since the last call, with whether a sandbox of the same session added them.
    pub(crate) fn catch_up(&mut self, mut take: impl FnMut(Note, bool)) -> io::Result<()> {
        let mut piece = vec![0; PIECE];
        loop {
            let count = self.file.read_at(&mut piece, self.read)?;
            let mut rest = piece.get(..count).unwrap_or_default();
            while let Some((entry, after)) = split(rest) {
                if !entry.is_empty() {
                    let (note, session) = decode(entry).map_err(|DecodeError| io::ErrorKind::InvalidData)?;
                    take(note, session == self.session);
                }
                self.read += (rest.len() - after.len()) as u64;
                rest = after;
            }
            if count < piece.len() {
                // An incomplete entry is being appended by a broker whose change need not be known yet.
                return Ok(());
            }
            if rest.len() == count {
                if piece.len() >= LONGEST_ENTRY {
                    return Err(io::ErrorKind::InvalidData.into());
                }
                piece.resize(piece.len() * 2, 0);
            }
        }
    }

    fn encode(&self, note: &Note) -> Vec<u8> {
        let mut writer = Writer::default();
        writer.long(self.session);
        let (kind, identity, name) = match note {
            Note::Made(identity) => (1, Some(identity), None),
            Note::Gone(identity) => (2, Some(identity), None),
            Note::Name(holder, name) => (3, Some(holder), Some(name)),
            Note::NoName(holder, name) => (4, Some(holder), Some(name)),
            Note::Directory(identity) => (5, Some(identity), None),
            Note::TooMany => (6, None, None),
        };
        writer.number(kind);
        if let Some(identity) = identity {
            identity.encode(&mut writer);
        }
        if let Some(name) = name {
            writer.string(OsStr::from_bytes(name));
        }
        writer.finish()
    }
}

/// Returns the first entry and the rest; `None` if the entry is incomplete.
fn split(bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    let (length, rest) = bytes.split_first_chunk::<{ RECORD_BEGINS.len() }>()?;
    rest.split_at_checked(usize::try_from(u32::from_le_bytes(*length)).ok()?)
}

/// Decodes an entry to its note and session.
fn decode(entry: &[u8]) -> Result<(Note, u64), DecodeError> {
    let mut reader = Reader::new(entry);
    let session = reader.long()?;
    let kind = reader.number()?;
    if kind == 6 {
        return reader.end((Note::TooMany, session));
    }
    let identity = Identity::decode(&mut reader)?;
    let note = match kind {
        1 => Note::Made(identity),
        2 => Note::Gone(identity),
        3 => Note::Name(identity, reader.string()?.into_vec()),
        4 => Note::NoName(identity, reader.string()?.into_vec()),
        5 => Note::Directory(identity),
        _ => return Err(DecodeError),
    };
    reader.end((note, session))
}

#[cfg(test)]
mod tests {
    use std::fs::OpenOptions;

    use super::*;
    use crate::identity::identify;

    fn open(place: &std::path::Path, session: u64) -> Record {
        let file = OpenOptions::new().read(true).append(true).create(true).open(place.join("record"));
        Record::open(file.expect("a file").into(), session).expect("locked")
    }

    fn all(record: &mut Record) -> Vec<(Note, bool)> {
        let mut notes = Vec::new();
        record.catch_up(|note, is_own| notes.push((note, is_own))).expect("read");
        notes
    }

    #[test]
    fn everybody_reads_what_anybody_appends() {
        let place = tempfile::tempdir().expect("a directory");
        let top = identify(File::open(place.path()).expect("open"), c"").expect("there");
        let [mut one, mut same, mut other] = [1, 1, 2].map(|session| open(place.path(), session));
        let notes = [
            Note::Made(top.clone()),
            Note::Name(top.clone(), b"a\xff".to_vec()),
            Note::NoName(top.clone(), Vec::new()),
            Note::Directory(top.clone()),
            Note::Gone(top.clone()),
            Note::TooMany,
        ];
        one.append(&notes).expect("appended");
        let read = |is_own: bool| notes.iter().map(|note| (note.clone(), is_own)).collect::<Vec<_>>();
        assert_eq!([all(&mut one), all(&mut same), all(&mut other)], [read(true), read(true), read(false)]);
        assert!(all(&mut one).is_empty());
        // More than is read at once.
        let many = vec![Note::Made(top); 1_000];
        other.append(&many).expect("appended");
        assert_eq!(all(&mut one).len(), many.len());
        assert_eq!(all(&mut open(place.path(), 3)).len(), notes.len() + many.len());
    }

    #[test]
    fn what_is_no_note_is_an_error_and_what_does_not_end_is_none_yet() {
        let place = tempfile::tempdir().expect("a directory");
        let mut record = open(place.path(), 1);
        record.append(&[Note::TooMany]).expect("appended");
        (&record.file).write_all(&RECORD_BEGINS).expect("written");
        (&record.file).write_all(&[3, 0, 0, 0, 1]).expect("written");
        assert_eq!(all(&mut record), [(Note::TooMany, true)]);
        (&record.file).write_all(&[2, 3]).expect("written");
        assert!(record.catch_up(|_, _| ()).is_err());
    }
}

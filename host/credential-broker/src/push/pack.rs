//! The objects of a pack (gitformat-pack(5)): its commits, and credentials in its files.

use std::collections::HashMap;

use flate2::{Decompress, FlushDecompress, Status};
use sha1::{Digest as _, Sha1};

use super::commands::{Id, id};
use super::delta::{applied, literals};
use super::files::Scanner;

/// The most objects in a push.
const OBJECTS_MAX: u32 = 1_000_000;
/// The most bytes that all objects of a push may have together when they are unpacked.
const UNPACKED_MAX: u64 = 1 << 30;
/// The largest commit, in bytes.
const COMMIT_MAX: u64 = 1 << 20;
/// The most bytes that all commits of a push may have together. They are kept until its end, because later commits can be
/// differences to them: a few bytes in the push can stand for a long commit.
const COMMITS_MAX: u64 = 64 << 20;
/// The longest difference whose texts are put together for the search, in bytes.
const DELTA_MAX: u64 = COMMIT_MAX;
/// The bytes of a pack that are not objects: signature, version and number in front, the checksum at the end.
const FRONT: usize = 12;
const CHECKSUM: usize = 20;
/// The kinds of objects that matter here.
const COMMIT: u8 = 1;
const TREE: u8 = 2;
const TAG: u8 = 4;
const OFFSET_DELTA: u8 = 6;
const REFERENCE_DELTA: u8 = 7;

/// The commits of a pack with their parents.
#[derive(Debug, Default)]
pub(super) struct Commits(HashMap<Id, Vec<Id>>);

impl Commits {
    /// Returns true if a commit has another among its ancestors, as far as the pack shows.
    pub(super) fn follows(&self, commit: &Id, ancestor: &Id) -> bool {
        let (mut open, mut seen) = (vec![*commit], std::collections::HashSet::new());
        while let Some(next) = open.pop() {
            if next == *ancestor {
                return true;
            }
            if seen.insert(next) {
                open.extend(self.0.get(&next).into_iter().flatten());
            }
        }
        false
    }
}

/// Whether files may hold credentials.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Files {
    Free,
    Searched,
}

/// Reads a pack to its end; the error says what is wrong.
pub(super) fn commits(pack: &[u8], files: Files) -> Result<Commits, String> {
    let mut reading = Reading::new(pack)?;
    let mut commits = Commits::default();
    // The commits that later ones can be written as differences to, by place and by id.
    let mut texts: HashMap<usize, Vec<u8>> = HashMap::new();
    let mut places: HashMap<Id, usize> = HashMap::new();
    for _ in 0..reading.count {
        let place = reading.at;
        let (kind, size) = reading.kind_and_size()?;
        if !(COMMIT..=TAG).contains(&kind) && kind != OFFSET_DELTA && kind != REFERENCE_DELTA {
            return Err(unreadable());
        }
        let base = match kind {
            OFFSET_DELTA => place.checked_sub(reading.offset()?),
            REFERENCE_DELTA => places.get(&reading.id()?).copied(),
            _ => None,
        };
        let base = base.and_then(|base| texts.get(&base));
        let is_commit = kind == COMMIT || base.is_some();
        let mut scanner = Scanner::default();
        // A difference is read as a whole, since its instructions stand between the texts.
        let is_difference = files == Files::Searched && base.is_none() && kind > TAG && size <= DELTA_MAX;
        let is_searched = files == Files::Searched && kind != TREE;
        let text = reading.unpacked(size, is_commit || is_difference, |piece| match is_searched {
            true => scanner.take(piece),
            false => Ok(()),
        })?;
        if is_difference {
            Scanner::default().take(&literals(&text))?;
        }
        let text = match (kind, base) {
            (COMMIT, _) => text,
            (OFFSET_DELTA | REFERENCE_DELTA, Some(base)) => applied(base, &text).ok_or_else(unreadable)?,
            _ => continue,
        };
        reading.keep(text.len())?;
        let mut hash = Sha1::new_with_prefix(format!("commit {}\0", text.len()));
        hash.update(&text);
        let id = Id::from(hash.finalize());
        commits.0.insert(id, parents(&text));
        places.insert(id, place);
        texts.insert(place, text);
    }
    if reading.rest().len() == CHECKSUM { Ok(commits) } else { Err(unreadable()) }
}

fn unreadable() -> String {
    "its objects cannot be read".to_owned()
}

/// Returns the parents of a commit.
fn parents(text: &[u8]) -> Vec<Id> {
    let mut lines = text.split(|&byte| byte == b'\n');
    let is_tree = lines.next().is_some_and(|line| line.strip_prefix(b"tree ").and_then(id).is_some());
    if !is_tree {
        return Vec::new();
    }
    lines.map_while(|line| line.strip_prefix(b"parent ").and_then(id)).collect()
}

/// A place in a pack.
struct Reading<'a> {
    pack: &'a [u8],
    at: usize,
    /// How many objects there are.
    count: u32,
    /// How many bytes have been unpacked.
    unpacked: u64,
    /// How many bytes the commits have that are kept.
    kept: u64,
}

impl<'a> Reading<'a> {
    fn new(pack: &'a [u8]) -> Result<Self, String> {
        let front: [u8; FRONT] = pack.first_chunk().copied().ok_or_else(unreadable)?;
        let [b'P', b'A', b'C', b'K', 0, 0, 0, 2, count @ ..] = front else { return Err(unreadable()) };
        let count = u32::from_be_bytes(count);
        if count > OBJECTS_MAX {
            return Err(format!("it has more than {OBJECTS_MAX} objects"));
        }
        Ok(Self { pack, at: FRONT, count, unpacked: 0, kept: 0 })
    }

    fn rest(&self) -> &'a [u8] {
        self.pack.get(self.at..).unwrap_or_default()
    }

    fn byte(&mut self) -> Result<u8, String> {
        let byte = self.rest().first().copied().ok_or_else(unreadable)?;
        self.at += 1;
        Ok(byte)
    }

    fn id(&mut self) -> Result<Id, String> {
        let id = self.rest().first_chunk().copied().ok_or_else(unreadable)?;
        self.at += size_of::<Id>();
        Ok(id)
    }

    /// Reads the kind of an object, and its size when it is unpacked.
    fn kind_and_size(&mut self) -> Result<(u8, u64), String> {
        let first = self.byte()?;
        let (kind, mut size, mut shift) = (first >> 4 & 7, u64::from(first & 15), 4_u32);
        let mut more = first & 0x80 != 0;
        while more {
            let byte = self.byte()?;
            if shift > 50 {
                return Err(unreadable());
            }
            size |= u64::from(byte & 0x7f) << shift;
            shift += 7;
            more = byte & 0x80 != 0;
        }
        Ok((kind, size))
    }

    /// Reads how far in front of an object the one is that it is a difference to.
    fn offset(&mut self) -> Result<usize, String> {
        let first = self.byte()?;
        let mut offset = usize::from(first & 0x7f);
        let mut more = first & 0x80 != 0;
        while more {
            let byte = self.byte()?;
            if offset > self.pack.len() {
                return Err(unreadable());
            }
            offset = (offset + 1) << 7 | usize::from(byte & 0x7f);
            more = byte & 0x80 != 0;
        }
        Ok(offset)
    }

    /// Counts a commit that is kept.
    fn keep(&mut self, length: usize) -> Result<(), String> {
        self.kept = self.kept.saturating_add(u64::try_from(length).unwrap_or(u64::MAX));
        if self.kept > COMMITS_MAX { Err("its commits are too large".to_owned()) } else { Ok(()) }
    }

    /// Unpacks an object of this size, passes its pieces on, and returns it if it is wanted.
    fn unpacked(
        &mut self,
        size: u64,
        is_wanted: bool,
        mut seen: impl FnMut(&[u8]) -> Result<(), String>,
    ) -> Result<Vec<u8>, String> {
        self.unpacked = self.unpacked.saturating_add(size);
        if self.unpacked > UNPACKED_MAX || is_wanted && size > COMMIT_MAX {
            return Err("its objects are too large".to_owned());
        }
        let (mut kept, mut piece) = (Vec::new(), [0; 16 * 1024]);
        let mut inflate = Decompress::new(true);
        loop {
            let (read, written) = (inflate.total_in(), inflate.total_out());
            let status = inflate.decompress(self.rest(), &mut piece, FlushDecompress::None);
            let status = status.map_err(|_broken| unreadable())?;
            let taken = usize::try_from(inflate.total_in() - read).map_err(|_| unreadable())?;
            let given = usize::try_from(inflate.total_out() - written).map_err(|_| unreadable())?;
            self.at += taken;
            if inflate.total_out() > size {
                return Err(unreadable());
            }
            let given_piece = piece.get(..given).unwrap_or_default();
            seen(given_piece)?;
            if is_wanted {
                kept.extend_from_slice(given_piece);
            }
            match status {
                Status::StreamEnd if inflate.total_out() == size => return Ok(kept),
                Status::Ok | Status::BufError if taken + given > 0 => {}
                Status::StreamEnd | Status::Ok | Status::BufError => return Err(unreadable()),
            }
        }
    }
}

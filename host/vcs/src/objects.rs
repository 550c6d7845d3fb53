//! The tree of a commit, from git's store of objects.

use std::fs::File;
use std::io::Read;
use std::os::unix::fs::FileExt as _;

use flate2::read::ZlibDecoder;

use crate::directory::Directory;

/// The most bytes of a commit that are read: the tree is in its first line.
const COMMIT: u64 = 4 << 10;
/// The largest loose object that is read.
const LOOSE: usize = 1 << 20;
/// The most packs that are searched; git joins them when there are more than fifty.
const PACKS: usize = 128;
const HASH: usize = 20;
/// Start of the second version of a pack's index, and the size of its first table.
const MAGIC: [u8; 8] = [0xff, b't', b'O', b'c', 0, 0, 0, 2];
const FANOUT: u64 = 8;
const NAMES: u64 = FANOUT + 256 * 4;
/// The type of a commit in the header of a packed object.
const TYPE_COMMIT: u8 = 1;

/// Returns the id of a commit's tree; `None` if the commit is not found, or stored as a difference to another object.
pub(crate) fn tree_of_commit(common: &Directory, commit: &str) -> Option<[u8; HASH]> {
    let objects = common.child("objects")?;
    let id = bytes(commit)?;
    loose(&objects, commit).or_else(|| packed(&objects, &id))
}

fn loose(objects: &Directory, commit: &str) -> Option<[u8; HASH]> {
    let (folder, name) = commit.split_at_checked(2)?;
    let stored = objects.child(folder)?.read(name, LOOSE)?;
    let text = start(ZlibDecoder::new(stored.as_slice()))?;
    let content = text.strip_prefix(b"commit ")?;
    let end = content.iter().position(|byte| *byte == 0)?;
    tree(content.get(end + 1..)?)
}

fn packed(objects: &Directory, id: &[u8; HASH]) -> Option<[u8; HASH]> {
    let packs = objects.child("pack")?;
    packs.names(PACKS)?.iter().find_map(|name| {
        let stem = name.to_str()?.strip_suffix(".idx")?;
        let offset = offset(&packs.file(name)?, id)?;
        object(&packs.file(format!("{stem}.pack"))?, offset)
    })
}

/// Finds an object in the index of a pack.
fn offset(index: &File, id: &[u8; HASH]) -> Option<u64> {
    let mut magic = [0; 8];
    index.read_exact_at(&mut magic, 0).ok()?;
    if magic != MAGIC {
        return None;
    }
    let first = u64::from(*id.first()?);
    let number = |at: u64| {
        let mut four = [0; 4];
        index.read_exact_at(&mut four, at).ok()?;
        Some(u64::from(u32::from_be_bytes(four)))
    };
    let total = number(FANOUT + 255 * 4)?;
    let mut low = if first == 0 { 0 } else { number(FANOUT + (first - 1) * 4)? };
    let mut high = number(FANOUT + first * 4)?.min(total);
    while low < high {
        let middle = low + (high - low) / 2;
        let mut found = [0; HASH];
        index.read_exact_at(&mut found, NAMES + middle * 20).ok()?;
        match found.cmp(id) {
            std::cmp::Ordering::Less => low = middle + 1,
            std::cmp::Ordering::Greater => high = middle,
            std::cmp::Ordering::Equal => {
                // The tables of checksums and offsets follow the names. A set highest bit leads to large packs.
                let offset = number(NAMES + total * 24 + middle * 4)?;
                return (offset < 1 << 31).then_some(offset);
            }
        }
    }
    None
}

/// Reads the commit at `offset` of a pack.
fn object(pack: &File, offset: u64) -> Option<[u8; HASH]> {
    let mut stored = vec![0; usize::try_from(COMMIT).ok()?];
    let read = pack.read_at(&mut stored, offset).ok()?;
    stored.truncate(read);
    if (stored.first()? >> 4) & 7 != TYPE_COMMIT {
        return None;
    }
    let header = stored.iter().position(|byte| byte & 128 == 0)? + 1;
    tree(&start(ZlibDecoder::new(stored.get(header..)?))?)
}

/// Unpacks the start of an object. An end that is missing does not matter.
fn start(unpacking: impl Read) -> Option<Vec<u8>> {
    let mut text = Vec::new();
    let read = unpacking.take(COMMIT / 16).read_to_end(&mut text);
    (read.is_ok() || !text.is_empty()).then_some(text)
}

fn tree(commit: &[u8]) -> Option<[u8; HASH]> {
    let line = commit.strip_prefix(b"tree ")?.split(|byte| *byte == b'\n').next()?;
    bytes(std::str::from_utf8(line).ok()?)
}

fn bytes(hex: &str) -> Option<[u8; HASH]> {
    let digits = hex.as_bytes();
    let digit = |byte: u8| char::from(byte).to_digit(16).and_then(|digit| u8::try_from(digit).ok());
    let mut bytes = [0; HASH];
    if digits.len() != HASH * 2 {
        return None;
    }
    for (byte, pair) in bytes.iter_mut().zip(digits.chunks_exact(2)) {
        let [high, low] = pair else { return None };
        *byte = digit(*high)? << 4 | digit(*low)?;
    }
    Some(bytes)
}

//! Git's index: the tracked files, with the state in which git saw them last.
//!
//! Terms are those of git's `index-format`. Indexes with SHA-1 names are read, versions 2 to 4.

/// Bytes of an object name.
const HASH: usize = 20;
/// Bytes of an entry before its name, without the extended flags.
const FIXED: usize = 62;
/// The most entries that are read.
pub(crate) const ENTRIES: usize = 100_000;
const LENGTH_MASK: u16 = 0xfff;
const EXTENDED: u16 = 0x4000;
/// The bits for the stage of a conflict.
const STAGE: u16 = 0x3000;
/// Set in the extended flags for files that are to be added (`git add -N`).
const INTENT_TO_ADD: u16 = 0x2000;
/// Set in the extended flags for files that are not checked out.
const SKIP_WORKTREE: u16 = 0x4000;
/// The extension with the ids of the trees that the entries make.
const TREES: &[u8] = b"TREE";

/// A tracked file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Entry {
    pub(crate) name: Vec<u8>,
    pub(crate) modified: (u32, u32),
    pub(crate) mode: u32,
    pub(crate) size: u32,
    pub(crate) id: [u8; HASH],
    /// A conflict, or a file that is only announced: a change in any case.
    pub(crate) is_unfinished: bool,
    /// Not in the working tree, on the user's own wish.
    pub(crate) is_left_out: bool,
}

/// An index.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Index {
    pub(crate) entries: Vec<Entry>,
    /// The tree of all entries; `None` if git has not computed it since the last change.
    pub(crate) tree: Option<[u8; HASH]>,
}

/// Parses an index; `None` for one that is damaged, too long, or split into several files.
pub(crate) fn parse(text: &[u8]) -> Option<Index> {
    if text.get(..4)? != b"DIRC" {
        return None;
    }
    let version = number(text, 4)?;
    let count = usize::try_from(number(text, 8)?).ok()?;
    if !(2..=4).contains(&version) || count > ENTRIES {
        return None;
    }
    let mut entries: Vec<Entry> = Vec::new();
    let mut at = 12;
    for _ in 0..count {
        let previous = entries.last().map_or(&[][..], |entry| &entry.name);
        let (entry, end) = entry(text, at, (version == 4).then_some(previous))?;
        entries.push(entry);
        at = end;
    }
    let tree = tree(text, at)?;
    Some(Index { entries, tree })
}

fn entry(text: &[u8], at: usize, previous: Option<&[u8]>) -> Option<(Entry, usize)> {
    let flags = short(text, at + 60)?;
    let more = if flags & EXTENDED == 0 { 0 } else { short(text, at + FIXED)? };
    let mut name_at = at + if flags & EXTENDED == 0 { FIXED } else { FIXED + 2 };
    let mut name = Vec::new();
    if let Some(previous) = previous {
        let (dropped, rest) = variable(text, name_at)?;
        name.extend_from_slice(previous.get(..previous.len().checked_sub(dropped)?)?);
        name_at = rest;
    }
    let rest = text.get(name_at..)?;
    let length = rest.iter().position(|byte| *byte == 0)?;
    name.extend_from_slice(rest.get(..length)?);
    let is_long = name.len() >= usize::from(LENGTH_MASK);
    if !is_long && name.len() != usize::from(flags & LENGTH_MASK) {
        return None;
    }
    let end = match previous {
        Some(_) => name_at + length + 1,
        // Padded with NUL to a multiple of eight bytes, with at least one.
        None => at + ((name_at - at + length + 8) & !7),
    };
    let entry = Entry {
        name,
        modified: (number(text, at + 8)?, number(text, at + 12)?),
        mode: number(text, at + 24)?,
        size: number(text, at + 36)?,
        id: text.get(at + 40..at + 60)?.try_into().ok()?,
        is_unfinished: flags & STAGE != 0 || more & INTENT_TO_ADD != 0,
        is_left_out: more & SKIP_WORKTREE != 0,
    };
    (end <= text.len()).then_some((entry, end))
}

/// Reads the extensions. The outer `None` is for an index that needs one that is not known here.
fn tree(text: &[u8], mut at: usize) -> Option<Option<[u8; HASH]>> {
    let end = text.len().checked_sub(HASH).filter(|end| *end >= at)?;
    let mut tree = None;
    while at + 8 <= end {
        let (name, size) = (text.get(at..at + 4)?, usize::try_from(number(text, at + 4)?).ok()?);
        let content = text.get(at + 8..at.checked_add(8)?.checked_add(size)?.min(end))?;
        // Extensions with a lower-case letter change the meaning of the entries, as those of a split index.
        if name.first()?.is_ascii_lowercase() {
            return None;
        }
        if name == TREES {
            tree = root_tree(content);
        }
        at += 8 + size;
    }
    Some(tree)
}

/// Returns the id of the first tree in the extension, which is that of all entries; `None` if it is out of date.
fn root_tree(content: &[u8]) -> Option<[u8; HASH]> {
    // An empty path, then `COUNT SUBTREES` and a line feed. An out-of-date tree has a negative count and no id.
    let rest = content.strip_prefix(b"\0")?;
    let line_end = rest.iter().position(|byte| *byte == b'\n')?;
    let line = rest.get(..line_end)?;
    if line.starts_with(b"-") {
        return None;
    }
    rest.get(line_end + 1..line_end + 1 + HASH)?.try_into().ok()
}

fn variable(text: &[u8], mut at: usize) -> Option<(usize, usize)> {
    let mut value = 0_usize;
    loop {
        let byte = *text.get(at)?;
        at += 1;
        value = value.checked_mul(128)?.checked_add(usize::from(byte & 127))?;
        if byte & 128 == 0 {
            return Some((value, at));
        }
        value = value.checked_add(1)?;
    }
}

fn number(text: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_be_bytes(text.get(at..at.checked_add(4)?)?.try_into().ok()?))
}

fn short(text: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_be_bytes(text.get(at..at.checked_add(2)?)?.try_into().ok()?))
}

//! `index`: the names that git writes on checkout.
//!
//! Git checks a name before it adds it to an index, but not when it reads one. So a forged index makes `git checkout --
//! .` write `.git/hooks/post-checkout`, or `../../.profile`. Here every name is checked as git would have checked it,
//! and anything that makes git read other bytes than these is refused.
//!
//! Terms are those of git's `index-format`. Only indexes with SHA-1 names are read; see the limits in the threat model.

/// Bytes of an entry before the object name.
const STATUS: usize = 40;
/// Bytes of an object name.
const HASH: usize = 20;
/// The bits of an entry's flags that hold the length of its name.
const LENGTH: usize = 0xfff;
/// The flag for two more bytes of flags.
const EXTENDED: usize = 0x4000;
/// The beginning of the extension that gives the end of the entries: its name and its length, which are fixed.
const END_TABLE: &[u8] = b"EOIE\0\0\0\x18";
const OTHER_ENTRIES: &str = "it leads to other entries than those it begins with";
/// The longest name of one file or directory, in bytes: no file system of Linux takes a longer one. So of the part that
/// an entry shares with the previous one, only the last component, which is short, must be checked again.
const LONGEST_PART: usize = 255;
/// The maximum length of a name in a refusal.
const SHOWN: usize = 80;
/// The size of the shortest extension: its name and its length.
const EXTENSION_HEAD: usize = 8;

/// Returns why git must not read the index; `None` if it is harmless.
pub(crate) fn fault(text: &[u8]) -> Option<String> {
    if text.is_empty() {
        return None;
    }
    read(text).err()
}

fn read(text: &[u8]) -> Result<(), String> {
    let entries = entries(text)?;
    extensions(text, &entries)
}

/// The positions of the entries.
struct Entries {
    /// The start of each, and whether it shares a prefix with the previous name.
    starts: Vec<(usize, bool)>,
    end: usize,
}

fn entries(text: &[u8]) -> Result<Entries, String> {
    if text.get(..4) != Some(b"DIRC") {
        return Err("it is no index of git's".to_owned());
    }
    let version = number(text, 4)?;
    if !(2..=4).contains(&version) {
        return Err(format!("it is an index of the unknown version {version}"));
    }
    let count = number(text, 8)?;
    let mut entries = Entries { starts: Vec::new(), end: 12 };
    let mut name: Vec<u8> = Vec::new();
    for index in 1..=count {
        let start = entries.end;
        let entry = Entry::read(text, start, (version == 4).then_some(name.len()))
            .ok_or_else(|| format!("entry {index} is not whole"))?;
        name.truncate(entry.kept);
        let looked_at = name.iter().rposition(|byte| *byte == b'/').map_or(0, |slash| slash + 1);
        name.extend_from_slice(entry.rest);
        if !is_of_a_working_tree(name.get(looked_at..).unwrap_or_default()) {
            let shown = String::from_utf8_lossy(name.get(..SHOWN).unwrap_or(&name));
            return Err(format!("entry {index} would have git write `{}`", shown.escape_debug()));
        }
        entries.starts.push((start, entry.kept > 0));
        entries.end = entry.end;
    }
    Ok(entries)
}

struct Entry<'a> {
    /// The number of bytes that it shares with the previous name.
    kept: usize,
    /// The rest of its name.
    rest: &'a [u8],
    end: usize,
}

impl<'a> Entry<'a> {
    /// Reads the entry at `start`. In version 4 a name shares a prefix with the previous one, which has the length
    /// `previous`.
    fn read(text: &'a [u8], start: usize, previous: Option<usize>) -> Option<Self> {
        let flags_at = start.checked_add(STATUS + HASH)?;
        let flags = short(text, flags_at)?;
        let name_at = flags_at + if flags & EXTENDED == 0 { 2 } else { 4 };
        let Some(previous) = previous else {
            let name = string(text, name_at, flags & LENGTH)?;
            // Padded with NUL to a multiple of eight bytes, with at least one.
            let end = start + ((name_at - start + name.len() + 8) & !7);
            return (end <= text.len()).then_some(Self { kept: 0, rest: name, end });
        };
        let (dropped, rest_at) = variable(text, name_at)?;
        let kept = previous.checked_sub(dropped)?;
        let rest_length = match flags & LENGTH {
            LENGTH => LENGTH,
            length => length.checked_sub(kept)?,
        };
        let rest = string(text, rest_at, rest_length)?;
        Some(Self { kept, rest, end: rest_at + rest.len() + 1 })
    }
}

/// Returns the text at `at` up to its NUL, which must come after `length` bytes, or later if that is the maximum.
fn string(text: &[u8], at: usize, length: usize) -> Option<&[u8]> {
    let rest = text.get(at..)?;
    let end = rest.iter().position(|byte| *byte == 0)?;
    let is_as_long = if length == LENGTH { end >= LENGTH } else { end == length };
    if is_as_long { rest.get(..end) } else { None }
}

/// Returns a number of variable width, and its end.
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

/// Checks the data after the entries: they must not make git read the entries differently.
fn extensions(text: &[u8], entries: &Entries) -> Result<(), String> {
    let end = text.len().checked_sub(HASH).filter(|end| *end >= entries.end).ok_or("it is cut short")?;
    // Git looks for this extension at its fixed position, whatever surrounds it, and follows it.
    let table = end.saturating_sub(END_TABLE.len() + 4 + HASH);
    let leads_elsewhere = || Ok::<_, String>(number(text, table + END_TABLE.len())? != entries.end);
    if text.get(table..table + END_TABLE.len()) == Some(END_TABLE) && leads_elsewhere()? {
        return Err(OTHER_ENTRIES.to_owned());
    }
    let mut at = entries.end;
    while at + EXTENSION_HEAD <= end {
        let length = number(text, at + 4)?;
        let data = at + EXTENSION_HEAD;
        let next = data.checked_add(length).filter(|next| *next <= end).ok_or("an extension is cut short")?;
        let content = text.get(data..next).unwrap_or_default();
        match text.get(at..at + 4).unwrap_or_default() {
            // Git's caches of trees, conflicts, untracked files, and of a file system monitor.
            b"TREE" | b"REUC" | b"UNTR" | b"FSMN" | b"sdir" | b"EOIE" => {}
            b"IEOT" if is_table_of(content, entries)? => {}
            b"IEOT" => return Err(OTHER_ENTRIES.to_owned()),
            b"link" => return Err("its entries stand in another file (a split index)".to_owned()),
            other => {
                return Err(format!(
                    "it has an unknown extension `{}`",
                    String::from_utf8_lossy(other).escape_debug()
                ));
            }
        }
        at = next;
    }
    Ok(())
}

/// Returns true if a table of blocks lists exactly the entries, and each block can be read by itself.
fn is_table_of(content: &[u8], entries: &Entries) -> Result<bool, String> {
    let mut first = 0;
    for block in content.get(4..).unwrap_or_default().chunks_exact(8) {
        let (start, count) = (number(block, 0)?, number(block, 4)?);
        if count == 0 || entries.starts.get(first) != Some(&(start, false)) {
            return Ok(false);
        }
        first += count;
    }
    let is_whole = content.len() % 8 == 4 && number(content, 0)? == 1;
    Ok(is_whole && first == entries.starts.len())
}

/// Returns true if git would add the name to an index: relative, and neither upwards nor into a git directory.
fn is_of_a_working_tree(name: &[u8]) -> bool {
    // A directory in a sparse index ends with a slash.
    let name = name.strip_suffix(b"/").unwrap_or(name);
    let is_taken =
        |part: &[u8]| part.len() <= LONGEST_PART && !matches!(part, b"" | b"." | b"..") && !is_git(part);
    name.split(|byte| *byte == b'/').all(is_taken)
}

/// Returns true if some file system treats the name as `.git`.
fn is_git(part: &[u8]) -> bool {
    let stem = part.split(|byte| matches!(byte, b':' | b'\\')).next().unwrap_or_default();
    let kept = stem.iter().rposition(|byte| !matches!(byte, b' ' | b'.')).map_or(0, |last| last + 1);
    let stem = stem.get(..kept).unwrap_or_default();
    stem.eq_ignore_ascii_case(b".git") || stem.eq_ignore_ascii_case(b"git~1")
}

fn number(text: &[u8], at: usize) -> Result<usize, String> {
    let bytes = text.get(at..).and_then(|rest| rest.first_chunk::<4>()).ok_or("it is cut short")?;
    usize::try_from(u32::from_be_bytes(*bytes)).map_err(|error| error.to_string())
}

fn short(text: &[u8], at: usize) -> Option<usize> {
    let bytes = text.get(at..)?.first_chunk::<2>()?;
    Some(usize::from(u16::from_be_bytes(*bytes)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_working_trees() {
        for name in ["a", "a/b", ".gitignore", "x.git/config", "a/.github/b", "..a", "a/", "git"] {
            assert!(is_of_a_working_tree(name.as_bytes()), "{name}");
        }
        for name in [
            "",
            "/a",
            "a//b",
            "./a",
            "a/..",
            "../a",
            ".git",
            "a/.GIT/hooks/x",
            "GIT~1/x",
            ".git. /x",
            ".git::$I",
        ] {
            assert!(!is_of_a_working_tree(name.as_bytes()), "{name}");
        }
    }

    #[test]
    fn numbers_of_variable_width() {
        assert_eq!(variable(&[5], 0), Some((5, 1)));
        assert_eq!(variable(&[0x80, 0], 0), Some((128, 2)));
        assert_eq!(variable(&[0x80], 0), None);
        assert_eq!(variable(&[0xff; 40], 0), None);
    }
}

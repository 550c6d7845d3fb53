//! Whether there are uncommitted changes, without git and without reading the content of files that look unchanged.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt as _;

use rustix::fs::{FileType, Stat};

use crate::directory::Directory;
use crate::find::GitDirectory;
use crate::index::{self, Entry};
use crate::objects;

/// The largest index; 100,000 entries have about 12 MB.
const INDEX: usize = 32 << 20;
/// The mode of a submodule, whose own changes are not looked for.
const SUBMODULE: u32 = 0o160_000;
const KIND: u32 = 0o170_000;

/// Returns whether a tracked file differs from the commit; `None` if that cannot be told.
///
/// Files that git does not track do not count. A file whose size and time are those that git saw last is unchanged.
pub(crate) fn any(git: &GitDirectory) -> Option<bool> {
    let index = index::parse(&git.own.read("index", INDEX)?)?;
    let written = git.own.state("index").map(|state| modified(&state))?;
    let root = Directory::open(&git.root)?;
    let mut is_sure = true;
    for entry in &index.entries {
        match state(&root, entry, written) {
            State::Same => {}
            State::Unknown => is_sure = false,
            State::Changed => return Some(true),
        }
    }
    let commit = crate::head::read(git, true, &mut crate::stamp::Stamps::default()).commit;
    // Without a commit, every tracked file is new.
    let Some(commit) = commit else { return (!index.entries.is_empty()).then_some(true) };
    let committed = objects::tree_of_commit(&git.common, &commit)?;
    match index.tree {
        Some(tree) if tree != committed => Some(true),
        Some(_) if is_sure => Some(false),
        Some(_) | None => None,
    }
}

#[derive(Debug, PartialEq, Eq)]
enum State {
    Same,
    Changed,
    Unknown,
}

fn state(root: &Directory, entry: &Entry, index_written: (i64, i64)) -> State {
    if entry.is_unfinished {
        return State::Changed;
    }
    if entry.is_left_out || entry.mode & KIND == SUBMODULE {
        return State::Same;
    }
    if !is_inside(&entry.name) {
        return State::Unknown;
    }
    let Some(found) = root.state(OsStr::from_bytes(&entry.name)) else { return State::Changed };
    let is_link = entry.mode & KIND == 0o120_000;
    let kind = if is_link { FileType::Symlink } else { FileType::RegularFile };
    let is_executable = found.st_mode & 0o100 != 0;
    if FileType::from_raw_mode(found.st_mode) != kind
        || (!is_link && is_executable != (entry.mode & 0o100 != 0))
    {
        return State::Changed;
    }
    let size = u32::try_from(found.st_size.rem_euclid(1 << 32)).unwrap_or(0);
    if size != entry.size {
        // Git writes zero for a file that it wants to look at again.
        return if entry.size == 0 { State::Unknown } else { State::Changed };
    }
    let (seconds, fraction) = modified(&found);
    let is_same_time = seconds == i64::from(entry.modified.0)
        && (entry.modified.1 == 0 || fraction == i64::from(entry.modified.1));
    // A file of the same size with another time may have the same content. One that is as new as the index may have
    // changed again without another time.
    if is_same_time && (seconds, fraction) < index_written { State::Same } else { State::Unknown }
}

/// Returns true for a name that stays in the working tree.
fn is_inside(name: &[u8]) -> bool {
    name.split(|byte| *byte == b'/').all(|part| !matches!(part, b"" | b"." | b".."))
}

#[allow(
    clippy::cast_possible_wrap,
    clippy::unnecessary_cast,
    clippy::cast_sign_loss,
    clippy::allow_attributes,
    reason = "the types differ between systems"
)]
fn modified(state: &Stat) -> (i64, i64) {
    (state.st_mtime as i64, state.st_mtime_nsec as i64)
}

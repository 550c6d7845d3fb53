//! Shows a change of a text.

use std::io;

use crate::history::points::Change;
use crate::plan::World as _;
use crate::state::State;
use crate::store::Store;
use crate::world::Disk;

/// Returns the difference between a file before a call and the file now, if both are short texts that can be read.
///
/// # Errors
/// If one of them cannot be read.
pub fn diff(store: &Store, change: &Change) -> io::Result<Option<String>> {
    let disk = Disk(store);
    let before = match &change.was {
        State::File(file) => disk.kept(file)?,
        State::Absent => Some(Vec::new()),
        State::Directory(_) | State::Link { .. } | State::Special { .. } => None,
    };
    let now = match disk.look(&change.path) {
        // Its directory is closed.
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => return Ok(None),
        now => now?,
    };
    let after = match now {
        State::File(file) => disk.text(&change.path, &file)?,
        State::Absent => Some(Vec::new()),
        State::Directory(_) | State::Link { .. } | State::Special { .. } => None,
    };
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).ok().filter(|text| !text.contains('\0'));
    let (Some(before), Some(after)) = (before.and_then(text), after.and_then(text)) else { return Ok(None) };
    Ok((before != after).then(|| diffy::create_patch(&before, &after).to_string()))
}

//! The texts of a changed file.

use std::ffi::CString;
use std::io;
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;

use super::change::{BranchChange, Layers, SEARCHED};
use super::compare::open_top;
use super::mark::below;
use crate::disk;
use crate::state::State;
use crate::store::read_all;

/// Texts up to this length are shown.
const LONGEST: u64 = 1 << 20;

/// Returns the content in the project and in the branch, if both are short texts. A missing file is an empty one.
///
/// # Errors
/// If one of them cannot be read.
pub fn texts(layers: Layers<'_>, change: &BranchChange) -> io::Result<Option<(String, String)>> {
    let now = text(layers.project, &change.path, &change.now)?;
    let new = text(layers.upper, &change.path, &change.new)?;
    Ok(now.zip(new))
}

/// Returns the difference between the two, if both are short texts.
///
/// # Errors
/// If one of them cannot be read.
pub fn diff(layers: Layers<'_>, change: &BranchChange) -> io::Result<Option<String>> {
    let texts = texts(layers, change)?.filter(|(now, new)| now != new);
    Ok(texts.map(|(now, new)| diffy::create_patch(&now, &new).to_string()))
}

/// Returns the content of a file in the branch, if it is short.
///
/// # Errors
/// If it cannot be read.
pub fn content(layers: Layers<'_>, change: &BranchChange) -> io::Result<Option<Vec<u8>>> {
    bytes(layers.upper, (&change.path, &change.new), LONGEST)
}

/// Returns the content of a file in the project and in the branch, text or not, unless the one in the branch is too long
/// to be searched. A missing one, and one of the project that is too long, is empty.
///
/// # Errors
/// If one of them cannot be read.
pub fn searched(layers: Layers<'_>, change: &BranchChange) -> io::Result<Option<(Vec<u8>, Vec<u8>)>> {
    if change.new.file().is_none() {
        return Ok(None);
    }
    let Some(new) = bytes(layers.upper, (&change.path, &change.new), SEARCHED)? else { return Ok(None) };
    let now = bytes(layers.project, (&change.path, &change.now), SEARCHED)?;
    Ok(Some((now.unwrap_or_default(), new)))
}

fn text(top: &Path, path: &Path, state: &State) -> io::Result<Option<String>> {
    let text = bytes(top, (path, state), LONGEST)?.and_then(|bytes| String::from_utf8(bytes).ok());
    Ok(text.filter(|text| !text.contains('\0')))
}

fn bytes(top: &Path, (path, state): (&Path, &State), longest: u64) -> io::Result<Option<Vec<u8>>> {
    let file = match state {
        State::Absent => return Ok(Some(Vec::new())),
        State::File(file) if file.size <= longest => file,
        State::File(_) | State::Directory(_) | State::Link { .. } | State::Special { .. } => return Ok(None),
    };
    let (Some(parent), Some(name)) = (path.parent(), path.file_name()) else { return Ok(None) };
    let directory = below(&open_top(top)?, parent)?;
    // One that cannot be read is not shown.
    let Ok(open) = disk::open_same(&directory, &CString::new(name.as_bytes())?, file.id) else {
        return Ok(None);
    };
    read_all(open).map(Some)
}

//! Files of a branch that were copied up, and whose names the project does not have: a command has moved or linked them
//! in the branch, or somebody has removed them from the project since.
//!
//! The mark of the origin tells which, if it has a handle. An overlay in a user namespace leaves that empty. Then a file
//! counts as moved if it is like one of the project at a name that the branch has changed: in size and time, or, if the
//! branch has removed that, for the most part in content.

use std::collections::BTreeMap;
use std::ffi::CString;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

use super::change::BranchChange;
use super::compare::open_in_project;
use super::mark;
use crate::disk::{self, look};
use crate::state::{FileState, State};

/// Files up to this length are compared by content.
const COMPARED_BYTES: u64 = 1 << 20;
/// How many pairs of files are compared by content.
const COMPARED: usize = 10_000;

/// The two directories of a branch, open.
pub(super) struct Tops<'a> {
    pub(super) upper: &'a OwnedFd,
    pub(super) project: &'a OwnedFd,
}

impl Tops<'_> {
    /// Returns those of the files that are a file of the project no longer: by their handles, where they have some.
    pub(super) fn removed(
        &self,
        mut moved: Vec<(PathBuf, Vec<u8>)>,
        met: &[PathBuf],
        found: &BTreeMap<PathBuf, BranchChange>,
    ) -> io::Result<Vec<PathBuf>> {
        let mut left = COMPARED;
        for path in met {
            if moved.is_empty() {
                break;
            }
            let Some((there, name)) = place(self.project, path)? else { continue };
            let Some(file) = look(&there, &name)?.file().cloned() else { continue };
            let at_former = found.get(path).map(|change| &change.new);
            let is_gone = at_former.is_some_and(State::is_absent);
            let mut content = None;
            let mut still = Vec::new();
            for (path, origin) in moved {
                let new = found.get(&path).and_then(|change| change.new.file());
                let is_it = match (origin.is_empty(), new) {
                    (false, _) => mark::has_handle(&there, &name, &origin),
                    (true, None) => false,
                    (true, Some(new)) if (new.size, new.modified) == (file.size, file.modified) => true,
                    // Both are names of one file in the branch.
                    (true, Some(new)) if at_former.and_then(State::id) == Some(new.id) => true,
                    (true, Some(_)) if !is_gone => false,
                    (true, Some(new)) => {
                        left = left.saturating_sub(1);
                        let content = content.get_or_insert_with(|| read(&there, &name, &file));
                        left > 0 && are_like(content.as_deref(), self.read(&path, new)?.as_deref())
                    }
                };
                if !is_it {
                    still.push((path, origin));
                }
            }
            moved = still;
        }
        Ok(moved.into_iter().map(|(path, _)| path).collect())
    }

    fn read(&self, path: &Path, file: &FileState) -> io::Result<Option<Vec<u8>>> {
        let Some((here, name)) = place(self.upper, path)? else { return Ok(None) };
        Ok(read(&here, &name, file))
    }
}

fn place(top: &OwnedFd, path: &Path) -> io::Result<Option<(OwnedFd, CString)>> {
    let (Some(parent), Some(name)) = (path.parent(), path.file_name()) else { return Ok(None) };
    let Some(directory) = open_in_project(top, parent)? else { return Ok(None) };
    Ok(Some((directory, CString::new(name.as_bytes())?)))
}

/// Returns the content of a file, if it is short and can be read.
fn read(directory: &OwnedFd, name: &CString, file: &FileState) -> Option<Vec<u8>> {
    if file.size > COMPARED_BYTES {
        return None;
    }
    disk::read_up_to(&disk::open_same(directory, name, file.id).ok()?, file.size).ok()
}

/// Returns true if two contents have the same beginning and end, which together are half of the shorter one at least.
fn are_like(one: Option<&[u8]>, other: Option<&[u8]>) -> bool {
    let (Some(one), Some(other)) = (one, other) else { return false };
    let shorter = one.len().min(other.len());
    if shorter == 0 {
        return one == other;
    }
    let beginning = one.iter().zip(other).take_while(|(one, other)| one == other).count();
    let ends = one.iter().rev().zip(other.iter().rev());
    let end = ends.take(shorter - beginning).take_while(|(one, other)| one == other).count();
    2 * (beginning + end) >= shorter
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_edit_leaves_contents_alike() {
        let like = |one: &str, other: &str| are_like(Some(one.as_bytes()), Some(other.as_bytes()));
        assert!(like("one\ntwo\nthree\n", "one\ntwo\nthree\nfour\n"));
        assert!(like("one\ntwo\nthree\n", "one\n2\nthree\n"));
        assert!(like("one\ntwo\nthree\n", "zero\none\ntwo\nthree\n"));
        assert!(like("aaaa", "aaaaaa") && like("", ""));
        assert!(!like("one\ntwo\nthree\n", "quite another text\n"));
        assert!(!like("", "something") && !like("something", ""));
        assert!(!are_like(None, Some(b"")));
    }
}

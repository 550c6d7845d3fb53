//! Files of a branch that were copied up, and whose names the project does not have: a command has moved or linked them
//! in the branch, or the user has removed them from the project since the branch began.
//!
//! If no name of the project's directory has changed since, it is the first. Otherwise the mark of the origin tells which,
//! if it has a handle. An overlay in a user namespace leaves that empty. Then a file counts as moved if of all of these it
//! is most like a file of the project at a name that the branch has changed: in size and time, or, in a directory that the
//! project does not have, for the most part in content, if the branch has removed that file.

use std::collections::BTreeMap;
use std::ffi::{CStr, CString};
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

use super::change::BranchChange;
use super::mark::{self, open_in_project};
use crate::disk::{self, look};
use crate::state::{FileId, FileState};

/// Files up to this length are compared by content.
const COMPARED_BYTES: u64 = 1 << 20;
/// The likeness of a file with the same size and time.
const SAME: usize = usize::MAX;
/// How many pairs of files are compared by content.
const COMPARED: usize = 10_000;

/// The two directories of a branch, open.
pub(super) struct Tops<'a> {
    pub(super) upper: &'a OwnedFd,
    pub(super) project: &'a OwnedFd,
}

/// A file of the branch whose name the project does not have.
pub(super) struct Moved {
    pub(super) path: PathBuf,
    /// The handle of what it was copied from; empty if that is not known.
    pub(super) origin: Vec<u8>,
    /// Whether names have changed in its directory of the project since the branch began.
    pub(super) is_in_changed: bool,
    /// The name that it may have had before.
    pub(super) maybe_from: Option<PathBuf>,
}

/// A file of the project at a name that the branch has changed.
struct Former {
    directory: OwnedFd,
    name: CString,
    file: FileState,
    /// The file of the branch at its name.
    new: Option<FileId>,
}

impl Tops<'_> {
    /// Returns those of the files that no command has moved: by their handles, where they have some.
    pub(super) fn removed(
        &self,
        mut moved: Vec<Moved>,
        met: &[PathBuf],
        found: &BTreeMap<PathBuf, BranchChange>,
    ) -> io::Result<Vec<Moved>> {
        let new = |path: &PathBuf| found.get(path).and_then(|change| change.new.file());
        let mut pairs = COMPARED;
        for path in met {
            if moved.is_empty() {
                break;
            }
            let Some(former) = self.former(path)? else { continue };
            moved.retain(|moved| match moved.origin.is_empty() {
                false => !mark::has_handle(&former.directory, &former.name, &moved.origin),
                // Both are names of one file in the branch.
                true => new(&moved.path).is_none_or(|new| former.new != Some(new.id)),
            });
            let mut likest = None;
            let is_open = |moved: &Moved| moved.origin.is_empty() && moved.maybe_from.is_none();
            for (at, moved) in moved.iter().enumerate().filter(|(_, moved)| is_open(moved)) {
                let Some(new) = new(&moved.path) else { continue };
                let likeness = self.likeness(&former, (moved, new), &mut pairs)?;
                if likeness > likest.map_or(0, |(_, other)| other) {
                    likest = Some((at, likeness));
                }
            }
            // A file is moved to one name.
            let Some((at, likeness)) = likest else { continue };
            match moved.get_mut(at) {
                // Where the user may have removed names, one that is only like another may be the user's.
                Some(other) if other.is_in_changed && likeness != SAME => {
                    other.maybe_from = Some(path.clone());
                }
                _ => drop(moved.remove(at)),
            }
        }
        Ok(moved)
    }

    fn former(&self, path: &Path) -> io::Result<Option<Former>> {
        let Some((directory, name)) = place(self.project, path)? else { return Ok(None) };
        let Some(file) = look(&directory, &name)?.file().cloned() else { return Ok(None) };
        let new = match place(self.upper, path)? {
            Some((here, name)) => look(&here, &name)?.file().map(|file| file.id),
            None => None,
        };
        Ok(Some(Former { directory, name, file, new }))
    }

    /// Returns how many bytes of a file are as in the former one; 0 if it is another one.
    fn likeness(
        &self,
        former: &Former,
        (moved, new): (&Moved, &FileState),
        pairs: &mut usize,
    ) -> io::Result<usize> {
        if (new.size, new.modified) == (former.file.size, former.file.modified) {
            return Ok(SAME);
        }
        // Only the name of a file that was moved is free.
        if former.new.is_some() || *pairs == 0 {
            return Ok(0);
        }
        *pairs -= 1;
        let Some(one) = read(&former.directory, &former.name, &former.file) else { return Ok(0) };
        Ok(self.read(&moved.path, new)?.map_or(0, |other| likeness(&one, &other)))
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
fn read(directory: &OwnedFd, name: &CStr, file: &FileState) -> Option<Vec<u8>> {
    if file.size > COMPARED_BYTES {
        return None;
    }
    disk::read_up_to(&disk::open_same(directory, name, file.id).ok()?, file.size).ok()
}

/// Returns how long the common beginning and end of two contents are; 0 if that is less than half of the shorter one.
fn likeness(one: &[u8], other: &[u8]) -> usize {
    let shorter = one.len().min(other.len());
    let beginning = one.iter().zip(other).take_while(|(one, other)| one == other).count();
    let ends = one.iter().rev().zip(other.iter().rev());
    let end = ends.take(shorter - beginning).take_while(|(one, other)| one == other).count();
    if 2 * (beginning + end) >= shorter { beginning + end } else { 0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_edit_leaves_contents_alike() {
        let like = |one: &str, other: &str| likeness(one.as_bytes(), other.as_bytes());
        assert_eq!(like("one\ntwo\nthree\n", "one\ntwo\nthree\nfour\n"), 14);
        assert_eq!(like("one\ntwo\nthree\n", "zero\none\ntwo\nthree\n"), 14);
        assert_eq!(like("one\ntwo\nthree\n", "one\n2\nthree\n"), 11);
        assert_eq!(like("aaaa", "aaaaaa"), 4);
        assert_eq!(like("one\ntwo\nthree\n", "quite another text\n"), 0);
        assert!(like("", "something") == 0 && like("something", "") == 0);
    }
}

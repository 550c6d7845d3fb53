//! The mount points that sandboxes leave in a private home, for directories that commands see or that are closed to them.
//!
//! They stay when the sandbox ends, and would look like directories that the user no longer has.

use std::fs::{self, DirEntry};
use std::path::Path;

use portcullis_decision::rules::{OwnHome, Tops};

/// Maximum depth of directories to look into.
const DEPTH: usize = 32;

/// Whether a path of a home is, or lies in, a mount point: all that is not the state of tools. Commands can make nothing
/// there.
pub(super) fn is_one(home: &Path, path: &Path) -> bool {
    let state = OwnHome::new(home.to_owned(), Tops::default());
    path.starts_with(home) && path != home && !state.is_state(path)
}

/// Removes those that are empty from a home that no sandbox uses.
pub(super) fn remove(home: &Path) {
    for entry in entries(home).filter(|entry| is_one(home, &entry.path())) {
        remove_empty(&entry, DEPTH);
    }
}

/// Removes an entry if nothing but directories is in it. What cannot be removed stays.
fn remove_empty(entry: &DirEntry, depth: usize) {
    let path = entry.path();
    let _stays = match entry.metadata() {
        Ok(found) if found.is_dir() => {
            if depth > 0 {
                entries(&path).for_each(|entry| remove_empty(&entry, depth - 1));
            }
            fs::remove_dir(&path)
        }
        Ok(found) if found.is_file() && found.len() == 0 => fs::remove_file(&path),
        Ok(_) | Err(_) => return,
    };
}

fn entries(directory: &Path) -> impl Iterator<Item = DirEntry> {
    fs::read_dir(directory).into_iter().flatten().flatten()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_is_empty_and_no_state_goes() {
        let home = tempfile::tempdir().unwrap();
        let at = |path: &str| home.path().join(path);
        for directory in ["Documents", "work/project", "kept/full", ".cache/empty", "go/pkg"] {
            fs::create_dir_all(at(directory)).unwrap();
        }
        fs::write(at("notes.txt"), "").unwrap();
        fs::write(at("kept/full/file"), "x").unwrap();
        std::os::unix::fs::symlink(at("go"), at("link")).unwrap();
        remove(home.path());
        for gone in ["Documents", "work", "notes.txt"] {
            assert!(!at(gone).exists(), "{gone}");
        }
        for stays in ["kept/full/file", ".cache/empty", "go/pkg", "link"] {
            assert!(at(stays).exists(), "{stays}");
        }
    }
}

//! Git directories that are not called `.git`, for sandboxes that know names only.

use std::path::{Path, PathBuf};

use portcullis_exec_surface::PACKAGES;

/// The most directories that are read; most projects have fewer. What lies beyond is not found.
const READ_MAX: usize = 50_000;

/// Finds the directories below `roots` that have the shape of a git directory under another name.
pub fn find(roots: &[PathBuf]) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut left: Vec<PathBuf> = roots.to_vec();
    let mut read = 0;
    while let Some(directory) = left.pop() {
        read += 1;
        if read > READ_MAX {
            break;
        }
        if is_repository(&directory) {
            found.push(directory);
            continue;
        }
        let Ok(entries) = directory.read_dir() else { continue };
        let directories = entries.flatten().filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir()));
        let is_searched =
            |entry: &std::fs::DirEntry| entry.file_name() != ".git" && entry.file_name() != PACKAGES;
        left.extend(directories.filter(is_searched).map(|entry| entry.path()));
    }
    found.sort();
    found.dedup();
    found
}

/// Returns true for a directory with what git requires of one.
fn is_repository(directory: &Path) -> bool {
    let has = |name: &str| directory.join(name).symlink_metadata().is_ok();
    has("HEAD") && has("objects") && has("refs")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_shape_counts_and_not_the_name() {
        let root = tempfile::tempdir().unwrap();
        let make = |name: &str| {
            for directory in ["objects", "refs"] {
                std::fs::create_dir_all(root.path().join(name).join(directory)).unwrap();
            }
            std::fs::write(root.path().join(name).join("HEAD"), "").unwrap();
        };
        ["deep/bare", "lib.git", ".git", "node_modules/x"].into_iter().for_each(make);
        std::fs::create_dir_all(root.path().join("half/objects")).unwrap();
        let expected = ["deep/bare", "lib.git"].map(|name| root.path().join(name));
        assert_eq!(find(&[root.path().to_owned()]), expected);
    }
}

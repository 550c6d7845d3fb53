//! What a directory holds, for comparing.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fs;
use std::io::ErrorKind;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};

use rustix::fs::{lgetxattr, llistxattr};

/// Each name with its kind, mode, content, attributes, and which names are the same file; without what is in directories
/// that are closed to this user.
pub(crate) type Tree = BTreeMap<PathBuf, String>;

pub(crate) fn tree(top: &Path) -> Tree {
    let mut found = Tree::new();
    let mut first: BTreeMap<u64, PathBuf> = BTreeMap::new();
    walk(top, top, &mut found, &mut first);
    found
}

fn walk(top: &Path, directory: &Path, found: &mut Tree, first: &mut BTreeMap<u64, PathBuf>) {
    let entries = match fs::read_dir(directory) {
        Err(error) if error.kind() == ErrorKind::PermissionDenied => return,
        entries => entries.expect("read"),
    };
    let mut names: Vec<_> = entries.map(|entry| entry.expect("entry").path()).collect();
    names.sort();
    for path in names {
        // It can be listed, and not be searched.
        let Ok(status) = fs::symlink_metadata(&path) else { continue };
        let name = path.strip_prefix(top).expect("below").to_owned();
        let mode = status.permissions().mode();
        let what = if status.is_symlink() {
            format!("link {}", fs::read_link(&path).expect("target").display())
        } else if status.is_dir() {
            format!("directory {mode:o} {:?}", attributes(&path))
        } else if status.is_file() {
            let same = first.entry(status.ino()).or_insert_with(|| name.clone());
            let content = match fs::read(&path) {
                Err(error) if error.kind() == ErrorKind::PermissionDenied => "closed".to_owned(),
                content => String::from_utf8_lossy(&content.expect("content")).into_owned(),
            };
            format!("file {mode:o} {:?} as {} {content:?}", attributes(&path), same.display())
        } else {
            format!("special {mode:o}")
        };
        found.insert(name, what);
        if status.is_dir() {
            walk(top, &path, found, first);
        }
    }
}

fn attributes(path: &Path) -> Vec<(String, String)> {
    let mut list = vec![0; 4096];
    let Ok(count) = llistxattr(path, list.as_mut_slice()) else { return Vec::new() };
    let names = list[..count].split(|byte| *byte == 0).filter(|name| name.starts_with(b"user."));
    let value = |name: &[u8]| {
        let mut value = vec![0; 4096];
        let count =
            lgetxattr(path, OsStr::new(std::str::from_utf8(name).expect("text")), value.as_mut_slice())
                .expect("value");
        String::from_utf8_lossy(&value[..count]).into_owned()
    };
    names.map(|name| (String::from_utf8_lossy(name).into_owned(), value(name))).collect()
}

/// All files' contents together.
pub(crate) fn contents(top: &Path) -> String {
    tree(top).into_values().collect::<Vec<_>>().join("\n")
}

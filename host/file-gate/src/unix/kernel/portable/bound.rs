//! The bound of a walk name by name: what another program's renames between two steps can do, and what they cannot.

use std::fs::{self, File};
use std::io::Read as _;
use std::os::fd::OwnedFd;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use rustix::fs::{CWD, Mode, OFlags, RenameFlags};

use super::handle::Handle;
use super::place::confirmed;
use super::walk::{Links, Walk};
use crate::system::kernel::Last;

/// A permitted directory `p`, and `secret` beside it with the same names.
struct Tree(tempfile::TempDir);

impl Tree {
    fn new() -> Self {
        let tree = Self(tempfile::Builder::new().prefix("portcullis-test-").tempdir_in("/var/tmp").unwrap());
        for (directory, content) in [("p/d/e", "public"), ("p/other/e", "public"), ("secret/e", "TOPSECRET")]
        {
            fs::create_dir_all(tree.path(directory)).unwrap();
            fs::write(tree.path(directory).join("f"), content).unwrap();
        }
        tree
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn rename(&self, from: &str, to: &str) {
        fs::rename(self.path(from), self.path(to)).unwrap();
    }
}

/// What a program does that may rename and link in `p`, and read `secret` by links only.
const RENAMES: [fn(&Tree); 7] = [
    |_| {},
    |tree| replace_by_link(tree, "p/d", "secret"),
    |tree| replace_by_link(tree, "p/d/e", "secret/e"),
    |tree| replace_by_link(tree, "p/d/e/f", "secret/e/f"),
    |tree| exchange(tree, "p/d", "p/other"),
    |tree| drop(fs::rename(tree.path("p/d"), tree.path("p/other/d"))),
    |tree| drop(fs::rename(tree.path("p/d/e"), tree.path("p/e"))),
];

fn replace_by_link(tree: &Tree, name: &str, target: &str) {
    // An earlier rename may have moved it away.
    if fs::rename(tree.path(name), tree.path("p/old")).is_ok() {
        symlink(tree.path(target), tree.path(name)).unwrap();
    }
}

fn exchange(tree: &Tree, one: &str, other: &str) {
    let (one, other) = (tree.path(one), tree.path(other));
    // The same.
    let _ = rustix::fs::renameat_with(CWD, one, CWD, other, RenameFlags::EXCHANGE);
}

/// The number of names in `p/d/e/f` from `d` on, and one more for a rename after the last.
const MOMENTS: usize = 4;

/// Walks `path` with a rename before the step that leaves `moment` names.
fn walk(path: &Path, links: Links, last: Last, moment: usize, rename: impl FnOnce()) -> Option<Handle> {
    let mut walk = Walk::start(path, last, links).ok()?;
    let steps = path.components().count() - 1;
    for _ in moment..steps {
        walk.advance().ok()?;
    }
    rename();
    while walk.advance().ok()? {}
    walk.end().ok()
}

/// Locates `path` as the gate does, with a rename in each of its two walks.
fn located(tree: &Tree, path: &str, last: Last, renames: [(usize, usize); 2]) -> Option<Handle> {
    let [one, other] = renames.map(|(moment, rename)| (moment, RENAMES[rename]));
    let found = walk(&tree.path(path), Links::Followed, last, one.0, || one.1(tree))?;
    let status = found.status().ok()?;
    let again = walk(&found.path, Links::Refused, Last::Itself, other.0, || other.1(tree))?;
    (again.path == found.path && again.status.is_same_file(&status)).then_some(found)
}

fn content(handle: Handle) -> String {
    let mut content = String::new();
    File::from(handle.file.unwrap()).read_to_string(&mut content).unwrap();
    content
}

/// Returns the renames to try, as moment and number. A normal run takes those of both walks at the same moment; with
/// `PORTCULLIS_EVERY_TASK` (`cargo xtask test --full`), every two are tried.
fn pairs() -> impl Iterator<Item = [(usize, usize); 2]> {
    let tries_all = std::env::var_os("PORTCULLIS_EVERY_TASK").is_some();
    let one = || (0..MOMENTS).flat_map(|moment| (0..RENAMES.len()).map(move |rename| (moment, rename)));
    let pairs = one().flat_map(move |first| one().map(move |second| [first, second]));
    pairs.filter(move |[first, second]| tries_all || first.0 == second.0)
}

#[test]
fn renames_in_a_permitted_directory_never_lead_out_of_it() {
    let (mut read, mut refused, mut led_out) = (0, 0, 0);
    for renames in pairs() {
        let tree = Tree::new();
        match located(&tree, "p/d/e/f", Last::Followed, renames) {
            Some(found) if found.path.starts_with(tree.path("p")) => {
                assert_eq!(content(found), "public", "{renames:?}");
                read += 1;
            }
            // The decision is about the secret itself.
            Some(found) => {
                assert_eq!(found.path, tree.path("secret/e/f"), "{renames:?}");
                assert_eq!(content(found), "TOPSECRET", "{renames:?}");
                led_out += 1;
            }
            None => refused += 1,
        }
    }
    assert!(read > 10 && led_out > 10 && refused > 10, "{read} {led_out} {refused}");
}

#[test]
fn control_a_name_that_is_checked_and_then_opened_leads_out() {
    let tree = Tree::new();
    let checked = fs::canonicalize(tree.path("p/d/e/f")).unwrap();
    assert!(checked.starts_with(tree.path("p")));
    RENAMES[1](&tree);
    assert_eq!(fs::read_to_string(checked).unwrap(), "TOPSECRET");
}

#[test]
fn writes_stay_in_a_permitted_directory() {
    let mut written = 0;
    for renames in pairs() {
        let tree = Tree::new();
        let Some(found) = located(&tree, "p/d/e", Last::Directory, renames) else { continue };
        if !found.path.starts_with(tree.path("p")) {
            continue;
        }
        let directory: OwnedFd = found.into_directory().unwrap().file;
        let flags = OFlags::CREATE | OFlags::EXCL | OFlags::WRONLY;
        rustix::fs::openat(&directory, "new", flags, Mode::RUSR).unwrap();
        assert!(!tree.path("secret/e/new").exists() && !tree.path("secret/new").exists(), "{renames:?}");
        written += 1;
    }
    assert!(written > 10, "{written}");
}

/// A user who may rename in `secret` as well deceives both walks. There is never a secret in `p`, but each walk meets its
/// directory at another moment.
#[test]
fn renames_on_both_sides_show_a_path_that_never_was() {
    let tree = Tree::new();
    let path = tree.path("p/d/e/f");
    fs::remove_dir_all(tree.path("p/d/e")).unwrap();
    let walk = |links| {
        let mut walk = Walk::start(&path, Last::Itself, links).unwrap();
        for _ in 0..path.components().count() - 3 {
            walk.advance().unwrap();
        }
        // `p/d` is open: it goes out, gets the secret, and comes back without it.
        tree.rename("p/d", "secret/d");
        tree.rename("secret/e", "secret/d/e");
        while walk.advance().unwrap() {}
        tree.rename("secret/d/e", "secret/e");
        tree.rename("secret/d", "p/d");
        walk.end().unwrap()
    };
    let found = walk(Links::Followed);
    let again = walk(Links::Refused);
    assert_eq!((&found.path, &again.path), (&path, &path));
    assert!(again.status.is_same_file(&found.status));
    let status = found.status().unwrap();
    assert_eq!(content(found), "TOPSECRET");
    // A kernel that names open files, as macOS' does, ends it: its name counts.
    let reported = tree.path("secret/e/f");
    assert_eq!(confirmed(&status, &path, Some(reported.clone())), Ok(reported));
    assert!(confirmed(&status, &path, None).is_err(), "a walk without renames finds nothing");
}

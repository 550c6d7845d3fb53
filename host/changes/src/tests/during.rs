//! What the user writes while an undo runs, at each of its points.

use std::fs::{self, OpenOptions};
use std::io::Write as _;
use std::path::Path;

use super::agent::Session;
use super::tree::contents;
use crate::interruption::at_point;

/// How the user changes a file.
#[derive(Debug, Clone, Copy)]
enum Edit {
    Appends,
    Replaces,
}

/// The user changes a file, if it is there.
fn edit(path: &Path, edit: Edit) {
    let Ok(text) = fs::read(path) else { return };
    let line = b"of the user\n";
    match edit {
        Edit::Appends => {
            let mut file = OpenOptions::new().append(true).open(path).expect("open");
            file.write_all(line).expect("written");
        }
        Edit::Replaces => {
            let new = path.with_file_name("new");
            fs::write(&new, [&text, line.as_slice()].concat()).expect("written");
            fs::rename(&new, path).expect("moved");
        }
    }
}

/// Checks that an edit at any point of an undo is still there after it, after redo, and after another undo.
fn is_kept_at_each_point(name: &str, make: impl Fn() -> Session) {
    for how in [Edit::Appends, Edit::Replaces] {
        for point in 1.. {
            let session = make();
            let (path, is_edited) = (session.at(name), std::rc::Rc::new(std::cell::Cell::new(false)));
            let act = {
                let is_edited = std::rc::Rc::clone(&is_edited);
                move || {
                    is_edited.set(path.exists());
                    edit(&path, how);
                }
            };
            let mut report = None;
            if !at_point(point, act, || report = Some(session.undo())) {
                assert!(point > 5, "{point}");
                break;
            }
            let is_there = || contents(&session.project()).contains("of the user") || !is_edited.get();
            assert!(is_there(), "{how:?} at {point}: {report:?}, {}", contents(&session.project()));
            let report = session.redo_if_possible();
            assert!(is_there(), "{how:?} at {point}, redo: {report:?}, {}", contents(&session.project()));
            let report = session.undo_in_force();
            assert!(is_there(), "{how:?} at {point}, again: {report:?}, {}", contents(&session.project()));
        }
    }
}

fn prepared() -> Session {
    let session = Session::new();
    for name in ["f", "x", "z"] {
        fs::write(session.at(name), format!("first {name}\n")).expect("a file");
    }
    session
}

/// A move lies between two changes of a file, so that undo changes the file twice.
#[test]
fn a_file_that_is_changed_twice() {
    is_kept_at_each_point("f", || {
        let mut session = prepared();
        session.write("f", "A\n").expect("written");
        session.write("z", "A\n").expect("written");
        session.end();
        session.rename("x", "y", false).expect("moved");
        session.write("f", "B\n").expect("written");
        session.end();
        session
    });
}

#[test]
fn a_file_that_is_given_back_and_another_after_it() {
    is_kept_at_each_point("f", || {
        let mut session = prepared();
        session.remove("f").expect("removed");
        session.write("z", "A\n").expect("written");
        session.end();
        session
    });
}

#[test]
fn a_file_with_two_names() {
    is_kept_at_each_point("f", || {
        let mut session = prepared();
        fs::hard_link(session.at("f"), session.at("h")).expect("linked");
        session.append("f", "A\n").expect("written");
        session.remove("h").expect("removed");
        session.write("z", "A\n").expect("written");
        session.end();
        session
    });
}

#[test]
fn a_file_that_was_moved() {
    is_kept_at_each_point("f", || {
        let mut session = prepared();
        session.write("f", "A\n").expect("written");
        session.rename("f", "g", false).expect("moved");
        session.write("z", "A\n").expect("written");
        session.end();
        session
    });
}

//! Times, modes and attributes, also of what its owner cannot read.

use std::fs::{self, File};

use rustix::fs::{XattrFlags, setxattr};

use super::agent::Session;
use super::cases::{files, there_and_back};
use super::closed::{bound, set_mode};
use super::tree::tree;
use crate::plan::Why;
use crate::undo::history;

/// The system lists the names of the attributes for everyone, but gives the values only to those who can read the file.
#[test]
fn attributes_of_what_its_owner_cannot_read_are_taken_back() {
    let close = |session: &Session, permissions: u32| {
        set_mode(&session.at("a"), permissions & 0o666);
        set_mode(&session.at("d"), permissions);
    };
    bound(|| {
        let mut session = Session::new();
        files(&session);
        let before = tree(&session.project());
        close(&session, 0o300);
        for name in ["a", "d"] {
            session.tag(name, "of the agent").expect("set");
        }
        session.end();
        let report = session.undo();
        assert!(report.is_complete() && report.done.len() == 2, "{report:?}");
        close(&session, 0o700);
        set_mode(&session.at("d"), 0o755);
        set_mode(&session.at("a"), 0o644);
        assert_eq!(tree(&session.project()), before);
    });
}

/// What its owner cannot read has an attribute already. Its value cannot be recorded, so it is not changed.
#[test]
fn an_attribute_that_its_owner_cannot_read_is_not_changed() {
    bound(|| {
        for name in ["a", "d"] {
            let mut session = Session::new();
            files(&session);
            session.tag(name, "former").expect("set");
            session.end();
            let second = history(session.recorder.store()).expect("history").entries().len();
            session.mode(name, 0o300).expect("closed");
            session.end();
            let third = history(session.recorder.store()).expect("history").entries().len();
            let error = session.tag(name, "other").expect_err("not recorded");
            assert_eq!(error.kind(), std::io::ErrorKind::PermissionDenied);
            session.mode(name, 0o700).expect("opened");
            session.end();
            for start in [third, second, 0] {
                let report = session.undo_from(start, false);
                assert!(report.is_complete(), "{name}, {start}: {report:?}");
            }
            assert_eq!(session.plan(0), []);
        }
    });
}

/// A mode or an attribute that the user gives to what the agent has made.
#[test]
fn a_later_mode_or_attribute_of_what_a_call_has_made_is_kept() {
    for name in ["n", "m"] {
        for is_mode in [false, true] {
            let mut session = Session::new();
            files(&session);
            session.write("n", "new").expect("written");
            session.make_directory("m").expect("made");
            session.end();
            match is_mode {
                true => set_mode(&session.at(name), 0o700),
                false => setxattr(session.at(name), "user.own", b"x", XattrFlags::empty()).expect("set"),
            }
            let report = session.undo();
            let whys: Vec<_> = report.left.iter().map(|(path, why, _)| (path.clone(), *why)).collect();
            assert_eq!(whys, [(session.at(name), Why::MadeAndChanged)], "{report:?}");
            assert!(session.at(name).exists());
        }
    }
}

/// Times and attributes, before the content changes as well, and in a call before that.
#[test]
fn times_and_attributes_come_back() {
    let time = |session: &Session, name: &str, seconds: u64| {
        session.before_status(name).expect("recorded");
        let time = std::time::UNIX_EPOCH + std::time::Duration::from_secs(seconds);
        File::open(session.at(name)).and_then(|file| file.set_modified(time)).expect("set");
    };
    let tag = |session: &Session, name: &str| {
        session.before_status(name).expect("recorded");
        setxattr(session.at(name), "user.tag", b"red", XattrFlags::empty()).expect("an attribute");
    };
    for ends_between in [false, true] {
        there_and_back(files, |session| {
            time(session, "a", 1);
            tag(session, "a");
            tag(session, "d");
            time(session, "b", 2);
            if ends_between {
                session.end();
            }
            session.write("a", "other").expect("written");
            session.remove("b").expect("removed");
        });
    }
    // The control is an edit of the user between the two calls, in the same length.
    for is_edited in [false, true] {
        let mut session = Session::new();
        files(&session);
        let modified = session.at("a").metadata().and_then(|file| file.modified()).expect("a time");
        time(&session, "a", 1);
        session.end();
        if is_edited {
            fs::write(session.at("a"), "u").expect("written");
        }
        session.write("a", "other").expect("written");
        session.end();
        let report = session.undo();
        assert_eq!(report.is_complete(), !is_edited, "{report:?}");
        let text = fs::read_to_string(session.at("a")).expect("text");
        assert_eq!(text, if is_edited { "u" } else { "a" });
        let is_back =
            session.at("a").metadata().and_then(|file| file.modified()).expect("a time") == modified;
        assert_eq!(is_back, !is_edited);
    }
}

#[test]
fn attributes_of_what_its_owner_cannot_write_come_back() {
    bound(|| {
        for (name, closed) in [("d", 0o555), ("a", 0o444)] {
            let mut session = Session::new();
            files(&session);
            session.tag(name, "former").expect("set");
            session.mode(name, closed).expect("closed");
            session.end();
            let start = history(session.recorder.store()).expect("history").entries().len();
            let before = tree(&session.project());
            session.mode(name, 0o755).expect("opened");
            session.tag(name, "later").expect("set");
            session.mode(name, closed).expect("closed");
            session.end();
            let after = tree(&session.project());
            let report = session.undo_from(start, false);
            assert!(report.is_complete(), "{report:?}");
            assert_eq!(tree(&session.project()), before);
            let report = session.redo();
            assert!(report.is_complete(), "{report:?}");
            assert_eq!(tree(&session.project()), after);
            // Its owner cannot remove it otherwise.
            set_mode(&session.at(name), 0o755);
        }
    });
}

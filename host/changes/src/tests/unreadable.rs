//! What undo replaces and cannot read, or cannot keep.

use std::fs;

use rustix::fs::{XattrFlags, getxattr, setxattr};

use super::agent::Session;
use super::cases::files;
use super::closed::{bound, mode};
use super::tree::tree;
use crate::{Bounds, Lost};

#[test]
fn what_its_owner_cannot_read_is_kept_by_undo() {
    bound(|| {
        let mut session = Session::new();
        fs::write(session.at("a"), "former").expect("a file");
        session.write("a", "precious").expect("written");
        session.mode("a", 0o000).expect("closed");
        session.write("new", "precious").expect("written");
        session.mode("new", 0o200).expect("closed");
        session.end();
        for _ in 0..2 {
            let report = session.undo();
            assert!(report.is_complete() && report.lost.is_empty(), "{report:?}");
            assert_eq!(fs::read_to_string(session.at("a")).expect("text"), "former");
            assert!(!session.at("new").exists());
            let report = session.redo();
            assert!(report.is_complete(), "{report:?}");
            assert_eq!((mode(&session.at("a")), mode(&session.at("new"))), (0o000, 0o200));
        }
        for name in ["a", "new"] {
            super::closed::set_mode(&session.at(name), 0o600);
            assert_eq!(fs::read_to_string(session.at(name)).expect("text"), "precious");
        }
    });
}

#[test]
fn attributes_of_what_its_owner_cannot_read_stay_over_undo_and_redo() {
    bound(|| {
        for writes in [false, true] {
            let mut session = Session::new();
            fs::write(session.at("a"), "former").expect("a file");
            let tag = |name: &str| setxattr(session.at("a"), name, b"q", XattrFlags::empty()).expect("set");
            tag("user.own");
            let before = tree(&session.project());
            if writes {
                session.append("a", "more").expect("written");
            }
            session.mode("a", 0o000).expect("closed");
            session.end();
            for _ in 0..2 {
                let report = session.undo();
                assert!(report.is_complete() && report.lost.is_empty(), "{report:?}");
                assert_eq!(tree(&session.project()), before);
                let report = session.redo();
                assert!(
                    report.is_complete() && report.lost.is_empty(),
                    "redo {writes} {report:?} {:?}",
                    crate::undo::history(session.recorder.store()).expect("history").entries()
                );
                assert_eq!(mode(&session.at("a")), 0);
            }
            super::closed::set_mode(&session.at("a"), 0o600);
            let mut value = [0; 10];
            let found = getxattr(session.at("a"), "user.own", &mut value[..]);
            assert_eq!(found, Ok(1), "{writes}");
        }
    });
}

#[test]
fn what_undo_cannot_keep_is_said() {
    let mut session = Session::bounded(Bounds { file: 10, session: 1 << 20 });
    fs::write(session.at("a"), "former").expect("a file");
    fs::write(session.at("b"), "former").expect("a file");
    session.write("a", "longer than the settings let be kept").expect("written");
    session.write("b", "short").expect("written");
    session.end();
    let report = session.undo();
    assert!(report.is_complete(), "{report:?}");
    assert_eq!(report.lost, [(session.at("a"), Lost::FileTooLarge)]);
    assert_eq!(fs::read_to_string(session.at("a")).expect("text"), "former");
}

/// The second call finds what the first has made, and it cannot be kept.
#[test]
fn what_was_not_kept_is_no_obstacle_on_the_way_to_an_older_state() {
    for is_removed in [false, true] {
        let mut session = Session::bounded(Bounds { file: 10, session: 1 << 20 });
        files(&session);
        let before = tree(&session.project());
        for name in ["a", "n"] {
            session.write(name, "longer than the settings let be kept").expect("written");
        }
        session.end();
        for name in ["a", "n"] {
            match is_removed {
                true => session.remove(name).expect("removed"),
                false => session.append(name, "more").expect("written"),
            }
        }
        session.end();
        let report = session.undo();
        assert!(report.is_complete(), "{is_removed}: {report:?}");
        assert_eq!(tree(&session.project()), before);
    }
}

/// The content is not in the record, so the link is all that is left of it.
#[test]
fn the_last_name_of_what_cannot_be_given_back_stays() {
    bound(|| {
        let mut session = Session::new();
        fs::write(session.at("a"), "precious").expect("a file");
        super::closed::set_mode(&session.at("a"), 0o000);
        session.hard_link("a", "link").expect("linked");
        session.remove("a").expect("removed");
        session.end();
        let report = session.undo();
        let mut names = ["a", "link"].map(|name| session.at(name)).into_iter().filter(|name| name.exists());
        let name = names.next_back().unwrap_or_else(|| panic!("{report:?}"));
        super::closed::set_mode(&name, 0o600);
        assert_eq!(fs::read_to_string(name).expect("text"), "precious");
        assert!(!report.is_complete(), "{report:?}");
    });
}

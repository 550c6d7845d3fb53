//! Undo, redo and undo again, and many moves.

use std::fs;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};

use super::agent::Session;
use super::cases::there_and_back;
use super::tree::contents;

/// The record of a redo is taken back like any other: nothing is left, and nothing counted twice.
#[test]
fn undo_after_redo_is_as_the_first_one() {
    let sub = |session: &Session| {
        fs::create_dir(session.at("sub")).expect("made");
        fs::write(session.at("sub/k"), "k").expect("a file");
        fs::create_dir_all(session.at("deep/a/b")).expect("made");
        fs::write(session.at("deep/a/b/c"), "c").expect("a file");
        for name in ["t1", "big", "zero"] {
            fs::write(session.at(name), name).expect("a file");
        }
    };
    there_and_back(sub, |session| {
        session.rename("sub", "s2", false).expect("moved");
        session.remove_all("s2").expect("removed");
    });
    there_and_back(sub, |session| {
        session.remove("t1").expect("removed");
        session.make_directory("t1").expect("made");
        session.make_directory("t1/k").expect("made");
        session.rename("big", "t1/k/big", false).expect("moved");
        session.rename("t1/k/big", "zero", false).expect("moved");
    });
    there_and_back(sub, |session| {
        session.rename("deep/a/b", "b2", false).expect("moved");
        session.rename("b2", "c", false).expect("moved");
        session.remove_all("deep").expect("removed");
    });
    // What the user puts into the directory stays, and so does its mode.
    for is_mode in [true, false] {
        let mut session = Session::new();
        sub(&session);
        session.rename("sub", "s2", false).expect("moved");
        session.remove_all("s2").expect("removed");
        session.end();
        session.undo();
        session.redo();
        session.undo();
        let own = session.at(if is_mode { "sub" } else { "sub/own" });
        match is_mode {
            true => fs::set_permissions(&own, fs::Permissions::from_mode(0o711)).expect("changed"),
            false => fs::write(&own, "the user's").expect("written"),
        }
        session.redo();
        session.undo();
        match is_mode {
            true => assert_eq!(own.metadata().expect("there").mode() & 0o7777, 0o711),
            false => assert_eq!(fs::read_to_string(&own).expect("text"), "the user's"),
        }
    }
}

/// Two undos and a redo: the call of the first undo stays undone, and the next undo takes back the call before it.
#[test]
fn redo_gives_back_only_what_the_last_undo_took_back() {
    for is_edited in [false, true] {
        let mut session = Session::new();
        let history = |session: &Session| crate::undo::history(session.recorder.store()).expect("history");
        for number in 1..=4 {
            session.write(&format!("{number}"), "agent").expect("written");
            session.end();
        }
        let names = |session: &Session| -> Vec<String> {
            (1..=4).map(|number| format!("{number}")).filter(|name| session.at(name).exists()).collect()
        };
        session.undo_newest();
        session.undo_newest();
        session.redo();
        assert_eq!(names(&session), ["1", "2", "3"]);
        let undone: Vec<_> = history(&session).points().iter().map(|point| point.undone).collect();
        assert_eq!(undone, [false, false, false, true]);
        if is_edited {
            fs::write(session.at("4"), "the user's").expect("written");
        }
        let report = session.undo_newest().expect("something to undo");
        assert!(report.is_complete(), "{report:?}");
        assert_eq!(names(&session), if is_edited { ["1", "2", "4"].as_slice() } else { &["1", "2"] });
        session.redo();
        session.redo();
        assert_eq!(names(&session), ["1", "2", "3", "4"]);
    }
}

/// The next undo goes further back if the last call has changed nothing, or if the user has changed all that it left.
#[test]
fn undo_goes_on_before_a_call_with_nothing_to_take_back() {
    type Change = fn(&mut Session);
    let changes: [(Change, Change); 4] = [
        (
            |session| {
                session.write("n", "two").expect("written");
                session.remove("n").expect("removed");
            },
            |_| {},
        ),
        (
            |session| session.write("f", "A").expect("written"),
            |session| fs::write(session.at("f"), "the user's").expect("written"),
        ),
        (
            |session| session.write("f", "A").expect("written"),
            |session| fs::remove_file(session.at("f")).expect("removed"),
        ),
        (
            |session| session.write("n", "A").expect("written"),
            |session| fs::write(session.at("n"), "the user's").expect("written"),
        ),
    ];
    for (agent, user) in changes {
        let mut session = Session::new();
        fs::write(session.at("f"), "old").expect("a file");
        session.write("first", "one").expect("written");
        session.end();
        agent(&mut session);
        session.end();
        std::thread::sleep(std::time::Duration::from_millis(20));
        user(&mut session);
        let own = contents(&session.project());
        for _ in 0..2 {
            session.undo_newest();
        }
        assert!(!session.at("first").exists(), "{own}");
        assert_eq!(session.undo_newest().map(|_| ()), None, "{own}");
    }
}

/// Each path is compared with all moves, so that must be cheap.
#[test]
fn many_moves_come_back() {
    let many = 400;
    let prepare = |session: &Session| {
        for number in 0..many {
            fs::write(session.at(&format!("{number}")), format!("{number}")).expect("a file");
        }
    };
    there_and_back(prepare, |session| {
        for number in 0..many {
            session.rename(&format!("{number}"), &format!("moved-{number}"), false).expect("moved");
        }
        for number in 1..many {
            let (one, other) = (format!("moved-{}", number - 1), format!("moved-{number}"));
            session.rename(&one, &other, true).expect("exchanged");
        }
    });
}

/// Two moves of the agent are at the name that the user has moved away.
#[test]
fn what_is_left_is_reported_once() {
    let mut session = Session::new();
    for name in ["a", "b"] {
        fs::write(session.at(name), name).expect("a file");
    }
    for (from, to) in [("a", "t"), ("b", "a"), ("t", "b")] {
        session.rename(from, to, false).expect("moved");
    }
    session.end();
    fs::rename(session.at("a"), session.at("own")).expect("moved");
    let report = session.undo();
    let mut left: Vec<_> = report.left.iter().map(|(path, ..)| path.clone()).collect();
    left.dedup();
    assert_eq!(left.len(), report.left.len(), "{report:?}");
    assert!(contents(&session.project()).contains('b'), "{report:?}");
}

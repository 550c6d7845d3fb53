//! Files with several names, over undo, redo and undo, and with edits of the user.

use std::fs::{self, OpenOptions};
use std::io::Write as _;
use std::os::unix::fs::MetadataExt as _;
use std::thread::sleep;
use std::time::Duration;

use super::agent::Session;
use super::closed::{bound, mode, set_mode};
use super::tree::{contents, tree};
use crate::Record;
use crate::plan::Why;
use crate::undo::history;

/// A session with a file that has the names `f` and `h`.
fn linked(text: &str) -> Session {
    let session = Session::new();
    fs::write(session.at("f"), text).expect("a file");
    fs::hard_link(session.at("f"), session.at("h")).expect("linked");
    session
}

/// The user adds a line to a file, after the tick of the clock in which the call ended.
fn add(session: &Session, name: &str, line: &str) {
    sleep(Duration::from_millis(20));
    let mut file = OpenOptions::new().append(true).open(session.at(name)).expect("open");
    file.write_all(line.as_bytes()).expect("written");
}

const LINES: &str = "1\n2\n3\n4\n5\n6\n7\n8\n";

#[test]
fn an_edit_of_the_other_name_is_kept_when_the_first_comes_back() {
    for rounds in 0..3 {
        let mut session = linked(LINES);
        session.remove("h").expect("removed");
        session.end();
        for _ in 0..rounds {
            assert!(session.undo().is_complete());
            assert!(session.redo().is_complete());
        }
        add(&session, "f", "of the user\n");
        let report = session.undo();
        let text = fs::read_to_string(session.at("f")).expect("read");
        assert!(text.contains("of the user"), "{rounds}: {report:?}, {:#?}", tree(&session.project()));
        let whys: Vec<_> = report.left.iter().map(|(path, why, _)| (path.clone(), *why)).collect();
        assert_eq!(whys, [(session.at("h"), Why::Separate)], "{rounds}: {report:?}");
    }
}

/// What an earlier call has left says nothing of a later one, which removed the name by which it wrote.
#[test]
fn a_call_that_writes_and_removes_a_name_after_another_call_is_taken_back_by_the_other_name() {
    let mut session = linked(LINES);
    session.append("f", "first\n").expect("written");
    session.end();
    let before = contents(&session.project());
    let second = history(session.recorder.store()).expect("history").entries().len();
    session.append("f", "second\n").expect("written");
    session.remove("f").expect("removed");
    session.end();
    let report = session.undo_from(second, false);
    assert!(report.is_complete(), "{report:?}");
    assert_eq!(contents(&session.project()), before);
    let inode = |name| fs::metadata(session.at(name)).expect("a file").ino();
    assert_eq!(inode("f"), inode("h"));
}

/// The last call removes the name by which the first one wrote, with an edit of its own or without.
#[test]
fn an_edit_of_the_other_name_between_two_calls_is_kept() {
    for writes_again in [false, true] {
        let mut session = linked(LINES);
        session.append("f", "first\n").expect("written");
        session.end();
        add(&session, "h", "of the user\n");
        sleep(Duration::from_millis(20));
        if writes_again {
            session.append("f", "second\n").expect("written");
        }
        session.remove("f").expect("removed");
        session.end();
        let report = session.undo();
        assert!(!report.is_complete(), "{writes_again}: {report:?}");
        let text = contents(&session.project());
        assert!(text.contains("of the user"), "{writes_again}: {report:?}, {:#?}", tree(&session.project()));
    }
}

/// The first call removes a name, and the second one moves another and removes it.
#[test]
fn an_edit_before_a_call_that_moves_a_name_and_removes_it_is_kept() {
    let mut session = linked(LINES);
    fs::hard_link(session.at("f"), session.at("k")).expect("linked");
    session.remove("h").expect("removed");
    session.end();
    add(&session, "f", "of the user\n");
    session.rename("k", "backup", false).expect("moved");
    session.remove("backup").expect("removed");
    session.end();
    let report = session.undo();
    let text = |name| fs::read_to_string(session.at(name)).expect("read");
    assert_eq!(report.left, [(session.at("h"), Why::Separate, None)], "{report:?}");
    assert_eq!((text("f"), text("h")), (format!("{LINES}of the user\n"), LINES.to_owned()));
    assert_eq!(text("k"), text("f"));
}

/// Two calls change a file, each by one of its names.
#[test]
fn calls_that_change_a_file_by_different_names_are_taken_back() {
    type Change = fn(&Session);
    let changes: [Change; 10] = [
        |session| session.mode("f", 0o600).expect("changed"),
        |session| session.mode("h", 0o700).expect("changed"),
        |session| session.time("f", 1).expect("set"),
        |session| session.time("h", 2).expect("set"),
        |session| session.tag("f", "of the agent").expect("set"),
        |session| session.append("f", "f\n").expect("written"),
        |session| session.append("h", "h\n").expect("written"),
        |session| session.overwrite("f", "over").expect("written"),
        |session| session.remove("h").expect("removed"),
        |session| session.write("other", "text").expect("written"),
    ];
    let look = |session: &Session| {
        let time = |name: &str| session.at(name).metadata().and_then(|file| file.modified()).ok();
        (tree(&session.project()), time("f"), time("h"))
    };
    for (first, second, third) in (0..300).map(|n| (n % 10, n / 10 % 10, n / 100)) {
        let is_possible = |number: usize| ![1, 3, 6, 8].contains(&number) || first != 8;
        if !is_possible(second) || third == 2 && (first == 8 || second == 8) {
            continue;
        }
        let mut session = linked(LINES);
        let before = look(&session);
        changes[first](&session);
        session.end();
        let between = look(&session);
        let start = history(session.recorder.store()).expect("history").entries().len();
        changes[second](&session);
        if let Some(name) = [None, Some("f"), Some("h")][third] {
            session.append(name, "third\n").expect("written");
        }
        session.end();
        let after = look(&session);
        let check = |report: &crate::undo::Report, wanted: &(_, _, _), what: &str| {
            let what = format!("{what} of {first}, {second}, {third}: {report:?}");
            assert!(report.is_complete() && report.merged.is_empty(), "{what}");
            assert_eq!(look(&session), *wanted, "{what}");
        };
        check(&session.undo(), &before, "undo");
        check(&session.redo(), &after, "redo");
        check(&session.undo_from(start, false), &between, "undo of the last");
        check(&session.undo(), &before, "undo of all");
    }
}

/// The user edits the file between two calls, each of which changes it by one of its names, or after both.
#[test]
fn edits_around_calls_that_change_a_file_by_different_names_are_kept() {
    for is_between in [true, false] {
        for (first, second) in [("f", "h"), ("h", "f")] {
            for edited in ["f", "h"] {
                let mut session = linked(LINES);
                session.append(first, "first\n").expect("written");
                session.end();
                if is_between {
                    add(&session, edited, "of the user\n");
                    sleep(Duration::from_millis(20));
                }
                session.append(second, "second\n").expect("written");
                session.end();
                if !is_between {
                    add(&session, edited, "of the user\n");
                }
                let report = session.undo();
                let text = contents(&session.project());
                let is_said = !report.is_complete() || !report.merged.is_empty();
                assert!(text.contains("of the user") && is_said, "{is_between}: {report:?}, {text}");
            }
        }
    }
}

/// The user sets the time of the edited file to an older one, as programs do that keep times.
#[test]
fn an_edit_of_the_other_name_with_an_older_time_is_kept() {
    let mut session = linked(LINES);
    session.remove("h").expect("removed");
    session.end();
    add(&session, "f", "of the user\n");
    let file = OpenOptions::new().append(true).open(session.at("f")).expect("open");
    file.set_modified(std::time::UNIX_EPOCH).expect("set");
    let report = session.undo();
    assert!(contents(&session.project()).contains("of the user"), "{report:?}");
    assert_eq!(report.left.iter().map(|(_, why, _)| *why).collect::<Vec<_>>(), [Why::Separate]);
}

/// A call makes a link, or changes the file, and a later one changes the file by a name that it then removes.
#[test]
fn what_a_call_has_written_by_a_name_that_it_removed_is_taken_back() {
    type Change = fn(&Session);
    let first: [Change; 3] = [
        |session| session.hard_link("f", "n").expect("linked"),
        |session| session.append("f", "first\n").expect("written"),
        |session| session.time("h", 5).expect("set"),
    ];
    let second: [Change; 3] = [
        |session| session.append("h", "second\n").expect("written"),
        |session| session.overwrite("h", "over").expect("written"),
        |_| {},
    ];
    for (first, second) in first.into_iter().flat_map(|first| second.map(|second| (first, second))) {
        for is_edited in [false, true] {
            let mut session = linked(LINES);
            let before = tree(&session.project());
            first(&session);
            session.end();
            second(&session);
            session.remove("h").expect("removed");
            session.end();
            if is_edited {
                add(&session, "f", "of the user\n");
            }
            let report = session.undo();
            if is_edited {
                let is_said = !report.is_complete() || !report.merged.is_empty();
                assert!(contents(&session.project()).contains("of the user") && is_said, "{report:?}");
            } else {
                assert!(report.is_complete() && report.merged.is_empty(), "{report:?}");
                assert_eq!(tree(&session.project()), before, "{report:?}");
            }
        }
    }
}

/// A call removes a name, the user edits the file by the other, and a later call changes that.
#[test]
fn an_edit_between_the_removal_of_a_name_and_a_later_call_is_kept() {
    type Change = fn(&Session);
    let changes: [Change; 3] = [
        |session| session.append("f", "second\n").expect("written"),
        |session| session.remove("f").expect("removed"),
        |session| session.mode("f", 0o600).expect("changed"),
    ];
    for (change, is_status) in changes.into_iter().flat_map(|change| [(change, false), (change, true)]) {
        let mut session = linked(LINES);
        session.remove("h").expect("removed");
        session.end();
        match is_status {
            true => set_mode(&session.at("f"), 0o640),
            false => add(&session, "f", "of the user\n"),
        }
        sleep(Duration::from_millis(20));
        change(&session);
        session.end();
        let report = session.undo();
        let is_kept = match is_status {
            true => [mode(&session.at("f")), mode(&session.at("h"))].contains(&0o640),
            false => contents(&session.project()).contains("of the user"),
        };
        assert!(is_kept && !report.is_complete(), "{report:?}, {:#?}", tree(&session.project()));
    }
    // The control: without an edit, it comes back as it was.
    for change in changes {
        let mut session = linked(LINES);
        let before = tree(&session.project());
        session.remove("h").expect("removed");
        session.end();
        change(&session);
        session.end();
        let report = session.undo();
        assert!(report.is_complete(), "{report:?}");
        assert_eq!(tree(&session.project()), before);
    }
}

/// A call removes a name, and the user changes the mode or an attribute of the file by the other.
#[test]
fn a_later_mode_or_attribute_of_the_other_name_is_kept() {
    for by_agent in [None, Some(0o755)] {
        let mut session = linked(LINES);
        if let Some(mode) = by_agent {
            session.mode("h", mode).expect("changed");
        }
        session.remove("h").expect("removed");
        session.end();
        sleep(Duration::from_millis(20));
        set_mode(&session.at("f"), 0o640);
        let report = session.undo();
        assert_eq!(mode(&session.at("f")), 0o640, "{report:?}");
        let whys: Vec<_> = report.left.iter().map(|(path, why, _)| (path.clone(), *why)).collect();
        assert_eq!(whys, [(session.at("h"), Why::Separate)]);
        assert_eq!(mode(&session.at("h")), 0o644);
    }
}

/// The user saves one name as a new file, as editors do. The other name is in the record, or is not.
#[test]
fn the_other_name_of_a_file_that_the_user_replaces_is_named_or_taken_back() {
    for is_recorded in [false, true] {
        let mut session = linked(LINES);
        session.append("f", "first\n").expect("written");
        if is_recorded {
            session.append("h", "second\n").expect("written");
        }
        session.end();
        sleep(Duration::from_millis(20));
        let text = fs::read_to_string(session.at("f")).expect("read");
        fs::write(session.at("t"), format!("of the user\n{text}")).expect("written");
        fs::rename(session.at("t"), session.at("f")).expect("moved");
        let report = session.undo();
        assert!(contents(&session.project()).contains("of the user"), "{report:?}");
        let other = fs::read_to_string(session.at("h")).expect("read");
        let whys: Vec<_> = report.left.iter().map(|(path, why, _)| (path.clone(), *why)).collect();
        match is_recorded {
            true => assert_eq!(other, LINES, "{report:?}"),
            false => assert_eq!(whys, [(session.at("f"), Why::OtherNamesKeep)]),
        }
    }
}

/// A call that makes a link finds the edit of the user, and changes nothing of the file.
#[test]
fn an_edit_before_a_call_that_makes_a_link_is_kept() {
    for moves in [false, true] {
        let mut session = linked(LINES);
        session.tag("f", "of the agent").expect("set");
        session.end();
        if moves {
            session.rename("h", "moved", false).expect("moved");
            session.end();
        }
        let other = if moves { "moved" } else { "h" };
        add(&session, other, "of the user\n");
        session.hard_link(other, "new").expect("linked");
        session.end();
        let report = session.undo();
        assert!(contents(&session.project()).contains("of the user"), "{moves}: {report:?}");
    }
}

/// The user moves a file of an earlier call over one that the agent has made, and a later call records that.
#[test]
fn a_file_that_the_user_moves_over_one_of_the_agent_is_kept() {
    let mut session = Session::new();
    fs::write(session.at("own"), LINES).expect("a file");
    session.write("made", "of the agent").expect("written");
    session.end();
    add(&session, "own", "of the user\n");
    session.append("own", "second\n").expect("written");
    session.end();
    fs::rename(session.at("own"), session.at("made")).expect("moved");
    session.link("own", "made").expect_err("it is there");
    session.end();
    let report = session.undo();
    assert!(contents(&session.project()).contains("of the user"), "{report:?}");
}

/// The killed undo has written nothing but its beginning.
#[test]
fn an_edit_of_the_other_name_after_a_killed_undo_is_kept() {
    let mut session = linked(LINES);
    session.remove("h").expect("removed");
    session.end();
    let call = session.recorder.own_call();
    session.recorder.store().append(&[Record::Undo { call, to: 0, redo: false, at: 0 }]).expect("written");
    add(&session, "f", "of the user\n");
    assert!(session.recover());
    session.undo();
    assert!(contents(&session.project()).contains("of the user"), "{:#?}", tree(&session.project()));
}

#[test]
fn undo_after_redo_is_as_the_first_one() {
    bound(|| {
        type Change = fn(&Session);
        let changes: [Change; 8] = [
            |session| {
                session.hard_link("f", "three").expect("linked");
                session.append("three", "1\n").expect("written");
                session.remove("f").expect("removed");
            },
            |session| {
                session.append("h", "1\n").expect("written");
                session.remove("f").expect("removed");
            },
            |session| {
                session.append("f", "1\n").expect("written");
                session.remove("f").expect("removed");
            },
            |session| {
                session.append("f", "1\n").expect("written");
                session.mode("f", 0o444).expect("changed");
            },
            |session| {
                session.append("f", "1\n").expect("written");
                session.append("h", "2\n").expect("written");
            },
            |session| session.mode("f", 0o400).expect("changed"),
            |session| {
                session.append("f", "1\n").expect("written");
                session.mode("h", 0o600).expect("changed");
            },
            |session| {
                session.rename("h", "moved", false).expect("moved");
                session.append("moved", "1\n").expect("written");
                session.remove("f").expect("removed");
            },
        ];
        for (number, change) in changes.into_iter().enumerate() {
            let mut session = linked("a\n");
            let former = tree(&session.project());
            change(&session);
            session.end();
            let changed = tree(&session.project());
            for round in 0..3 {
                let report = session.undo();
                let what = format!("{number}, {round}: {report:?}");
                assert!(report.is_complete() && report.merged.is_empty(), "{what}");
                assert_eq!(tree(&session.project()), former, "{what}");
                let report = session.redo();
                let what = format!("{number}, redo {round}: {report:?}");
                assert!(report.is_complete() && report.merged.is_empty(), "{what}");
                assert_eq!(tree(&session.project()), changed, "{what}");
            }
        }
    });
}

#[test]
fn a_link_in_a_directory_that_a_call_has_closed_comes_back() {
    bound(|| {
        for closed in [0o000, 0o300, 0o500] {
            let mut session = Session::new();
            for name in ["d", "e"] {
                fs::create_dir(session.at(name)).expect("made");
            }
            fs::write(session.at("d/one"), "a\n").expect("a file");
            fs::hard_link(session.at("d/one"), session.at("e/two")).expect("linked");
            let former = tree(&session.project());
            session.remove_all("e").expect("removed");
            session.mode("d", closed).expect("closed");
            session.end();
            let report = session.undo();
            assert!(report.is_complete(), "{closed:o}: {report:?}");
            assert_eq!(tree(&session.project()), former, "{closed:o}");
        }
    });
}

#[test]
fn a_file_that_its_owner_cannot_write_or_read_comes_back() {
    bound(|| {
        let mut session = linked("a\n");
        set_mode(&session.at("f"), 0o444);
        let time = session.at("f").metadata().expect("there").mtime();
        session.before_status("f").expect("recorded");
        fs::File::open(session.at("f")).expect("open").set_modified(std::time::UNIX_EPOCH).expect("set");
        session.end();
        let report = session.undo();
        assert!(report.is_complete(), "{report:?}");
        assert_eq!(
            (mode(&session.at("f")), session.at("h").metadata().expect("there").mtime()),
            (0o444, time)
        );

        let mut session = linked("a\n");
        let former = tree(&session.project());
        session.mode("f", 0o000).expect("closed");
        session.remove("f").expect("removed");
        session.end();
        let report = session.undo();
        assert!(report.is_complete(), "{report:?}");
        assert_eq!(tree(&session.project()), former);
        assert!(history(session.recorder.store()).expect("history").redoable().is_some());
    });
}

/// The agent moves one of two hard links over another file, and changes the mode by the other link.
#[test]
fn a_file_that_another_name_replaced_comes_back() {
    let mut session = linked(LINES);
    fs::write(session.at("a"), "other\n").expect("a file");
    let before = tree(&session.project());
    session.mode("h", 0o600).expect("set");
    session.rename("h", "a", false).expect("moved");
    session.mode("f", 0o640).expect("set");
    session.end();
    assert!(session.undo().is_complete());
    assert_eq!(tree(&session.project()), before);
}

/// One removed name comes back as a file of its own, because the user has written the file; another one does, too.
#[test]
fn a_file_that_the_user_has_written_is_not_written_by_a_second_name() {
    let mut session = linked(LINES);
    session.hard_link("f", "k").expect("linked");
    session.write("h.new", "other\n").expect("written");
    session.rename("h.new", "h", false).expect("moved");
    session.end();
    session.rename("k", "m", false).expect("moved");
    session.write("m.new", "other\n").expect("written");
    session.rename("m.new", "m", false).expect("moved");
    session.rename("f", "h", false).expect("moved");
    session.rename("h", "n", false).expect("moved");
    session.end();
    sleep(Duration::from_millis(20));
    fs::write(session.at("n"), "of the user\n").expect("written");
    let report = session.undo();
    assert!(
        contents(&session.project()).contains("of the user"),
        "{report:?}, {:#?}",
        tree(&session.project())
    );
}

/// A later call finds an edit of the user by another name: it has not written that.
#[test]
fn a_call_that_found_a_file_as_it_is_has_not_written_it() {
    let mut session = linked(LINES);
    session.append("f", "of the agent\n").expect("written");
    session.remove("f").expect("removed");
    session.end();
    add(&session, "h", "of the user\n");
    session.before(&session.at("h")).expect("recorded");
    session.end();
    let state = crate::disk::look_at(&session.at("h")).expect("looked at");
    let now = state.file().expect("a file");
    let last = history(session.recorder.store()).expect("history").last_write(now);
    assert!(last.is_some_and(|last| last < now.modified), "{last:?}, {:?}", now.modified);
}

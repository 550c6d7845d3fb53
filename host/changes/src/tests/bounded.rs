//! A journal that is as long as it may be, and an undo while a call runs.

use std::fs;

use super::agent::Session;
use super::tree::tree;
use crate::plan::Why;
use crate::undo::history;
use crate::{Bounds, Lost, SessionChanges, Store};

/// Bounds with the shortest journal.
const SMALL: Bounds = Bounds { file: 1 << 20, session: 1 << 19 };

/// Makes changes until the journal is full, or so many.
fn fill(session: &mut Session) -> Option<(String, Lost)> {
    for number in 0..2_000 {
        let name = format!("file-{number}");
        session.write(&name, "new").expect("written");
        if let Some((path, why)) = session.end().lost.into_iter().next() {
            assert_eq!(path, session.at(&name));
            return Some((name, why));
        }
    }
    None
}

#[test]
fn a_change_that_the_journal_has_no_room_for_is_said_before_and_left_after() {
    let mut session = Session::bounded(SMALL);
    let (name, why) = fill(&mut session).expect("the journal is full at some point");
    assert_eq!(why, Lost::RecordFull);
    // Each call says it once.
    session.write("one", "1").expect("written");
    session.write("two", "2").expect("written");
    assert_eq!(session.end().lost, [(session.at("one"), Lost::RecordFull)]);
    let length = session.recorder.store().length().expect("length");
    for number in 0..1_000 {
        session.write(&format!("more-{number}"), "more").expect("written");
    }
    let longer = session.recorder.store().length().expect("length") - length;
    assert!(longer < 1_000, "the journal grows by {longer} bytes");
    session.end();
    let points = history(session.recorder.store()).expect("history").points();
    let said =
        points.iter().flat_map(|point| history(session.recorder.store()).expect("history").changes(point));
    assert!(said.filter(|change| change.was.lost() == Some(Lost::RecordFull)).count() >= 3);
    // Undo restores the recorded files and leaves the others alone.
    let report = session.undo();
    assert!(report.done.contains(&session.at("file-0")), "{report:?}");
    assert!(!session.at("file-0").exists());
    for kept in [name.as_str(), "one", "two", "more-7"] {
        assert!(session.at(kept).exists(), "{kept}");
    }
}

/// As `gzip` of a large file: the file that the call has made is the only copy.
#[test]
fn a_large_file_stays_if_another_one_was_not_kept() {
    for (length, stays) in [(101, true), (100, false)] {
        let mut session = Session::bounded(Bounds { file: 100, ..Bounds::default() });
        fs::write(session.at("large"), "x".repeat(length)).expect("a file");
        session.write("made", &"y".repeat(101)).expect("written");
        session.write("small", "of the agent").expect("written");
        session.remove("large").expect("removed");
        session.end();
        let report = session.undo();
        assert_eq!(session.at("made").exists(), stays, "{report:?}");
        assert_eq!(session.at("large").exists(), !stays, "{report:?}");
        assert!(!session.at("small").exists(), "{report:?}");
        assert_eq!(report.left.iter().any(|(_, why, _)| *why == Why::OnlyCopy), stays, "{report:?}");
    }
}

#[test]
fn with_room_everything_comes_back() {
    let mut session = Session::new();
    let before = tree(&session.project());
    assert_eq!(fill(&mut session), None, "control");
    session.undo();
    assert_eq!(tree(&session.project()), before);
}

/// A call that changes a file again after an undo is recorded as a new change.
#[test]
fn a_call_that_goes_on_after_an_undo_is_recorded_again() {
    for is_undone in [false, true] {
        let mut session = Session::new();
        fs::write(session.at("a"), "first").expect("a file");
        session.write("a", "second").expect("written");
        session.write("new", "n").expect("written");
        if is_undone {
            session.undo();
            assert_eq!(fs::read_to_string(session.at("a")).expect("read"), "first");
        }
        session.write("a", "third").expect("written");
        session.end();
        let history = history(session.recorder.store()).expect("history");
        let in_force: Vec<_> = history.points().into_iter().filter(|point| !point.undone).collect();
        assert_eq!(in_force.len(), 1, "{in_force:?}");
        assert_eq!(history.points().len(), if is_undone { 2 } else { 1 });
        let changed: Vec<_> = history.changes(&in_force[0]).into_iter().map(|change| change.path).collect();
        let all = [session.at("a"), session.at("new")];
        assert_eq!(changed, if is_undone { &all[..1] } else { &all[..] });
        let report = session.undo_from(history.newest().expect("a call"), false);
        assert!(report.is_complete(), "{report:?}");
        assert_eq!(fs::read_to_string(session.at("a")).expect("read"), "first");
        assert!(!session.at("new").exists());
    }
}

/// A broker and the program that undoes are two writers of one journal.
#[test]
fn an_undo_by_another_program_is_noticed() {
    let session = Session::new();
    let (ours, place) = (session.recorder.store(), session.place.path().join("store"));
    let theirs = Store::open(&place).expect("a store");
    for undos in 0..3 {
        session.write(&format!("file-{undos}"), "new").expect("written");
        let progress = ours.progress().expect("known");
        assert_eq!((progress.undos, progress.length), (undos, ours.length().expect("length")));
        theirs.count_undo().expect("counted");
    }
}

/// The broker counts, and the host tells.
#[test]
fn a_change_that_is_refused_for_a_full_disk_is_told_once() {
    let session = Session::new();
    let host = SessionChanges::open(&session.place.path().join("store")).expect("a record");
    session.write("a", "new").expect("written");
    assert_eq!(host.refused(), None, "control");
    session.recorder.store().count_refusal().expect("counted");
    assert_eq!(host.refused(), Some(&*session.place.path().join("store")));
    assert_eq!(host.refused(), None);
    session.write("b", "new").expect("written");
    assert_eq!(host.refused(), None);
}

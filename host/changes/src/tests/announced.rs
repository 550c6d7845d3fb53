//! Changes that are in the record but were not made: moves of a killed broker, and steps of an undo.

use std::fs;

use super::agent::Session;
use super::tree::tree;
use crate::disk::spot;
use crate::undo::{history, settle};
use crate::{CallKey, History, Named, Place, Record, State};

/// The move is made in the control; without settling, undo would keep two versions of what was changed before it.
#[test]
fn a_move_of_a_killed_broker_is_settled_by_what_is_there() {
    for is_made in [false, true] {
        let session = Session::new();
        fs::create_dir(session.at("e")).expect("made");
        for name in ["e/changed", "e/removed", "e/kept"] {
            fs::write(session.at(name), "former").expect("a file");
        }
        let former = tree(&session.project());
        session.write("e/changed", "new").expect("written");
        session.remove("e/removed").expect("removed");
        let (from, to) = (session.at("e"), session.at("moved"));
        let (old, new) = (spot(&from).expect("there"), spot(&to).expect("there"));
        let places = (
            Place { directory: &old.directory, name: old.name.as_c_str(), path: from.as_path() },
            Place { directory: &new.directory, name: new.name.as_c_str(), path: to.as_path() },
        );
        session.recorder.moving(session.key(), places, false, &|| None).expect("recorded");
        if is_made {
            fs::rename(&from, &to).expect("moved");
        }
        // The call never ends.
        let store = session.recorder.store();
        let is_settled = settle(store, &history(store).expect("history")).expect("settled");
        assert_eq!(is_settled, !is_made);
        let again = settle(store, &history(store).expect("history")).expect("settled");
        assert!(!again, "it is settled once");
        let report = session.undo();
        assert!(report.is_complete(), "made: {is_made}: {report:?}");
        assert_eq!(tree(&session.project()), former, "made: {is_made}");
    }
}

/// A step that stops before it announces a change takes back nothing of an earlier step at the same path.
#[test]
fn a_step_that_was_not_made_takes_back_its_own_announcement_only() {
    let call = CallKey { view: 7, number: 0 };
    let path = std::path::PathBuf::from("/project/a");
    let named = || Named { path: path.clone(), state: State::Absent };
    let undo = Record::Undo { call, to: 0, redo: false, at: 0 };
    let before = Record::Before { call, was: named(), around: None };
    let reaches = Record::Reaches { call, path: path.clone(), to: Some(State::Absent) };
    let left = Record::LeftSoFar { call, left: named() };
    let not_made = Record::NotMade { call, path: path.clone() };
    let is_untouched = |records: &[&Record]| {
        let records = records.iter().map(|record| (*record).clone()).collect();
        History::from_records((records, 0), (0, 0)).is_untouched(1)
    };
    assert!(is_untouched(&[&undo, &before]));
    assert!(is_untouched(&[&undo, &before, &not_made]));
    assert!(is_untouched(&[&undo, &before, &reaches, &not_made]));
    assert!(!is_untouched(&[&undo, &before, &reaches]));
    assert!(!is_untouched(&[&undo, &before, &reaches, &left, &not_made]));
}

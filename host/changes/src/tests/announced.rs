//! A broker that was killed between the record of a move and the move.

use std::fs;

use super::agent::Session;
use super::tree::tree;
use crate::Place;
use crate::disk::spot;
use crate::undo::{history, settle};

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

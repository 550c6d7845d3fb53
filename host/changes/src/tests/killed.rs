//! Undoing that is killed: afterwards either everything is as before it, or it is complete.
//!
//! The test runs itself as a child that undoes, and kills it. `PORTCULLIS_UNDO_KILLS` sets the number of kills.

use std::fs;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use super::agent::Session;
use super::tree::tree;
use crate::plan::plan;
use crate::undo::{Range, carry_out, history};
use crate::{Disk, Recorder, Store};

const PLACE: &str = "PORTCULLIS_UNDO_PLACE";

/// The child: takes back everything in the directory that the variable names.
#[test]
fn undoes_in_a_given_place() {
    let Some(place) = std::env::var_os(PLACE) else { return };
    let place = std::path::PathBuf::from(place);
    let recorder = Recorder::new(Store::open(&place.join("store")).expect("a store"));
    let history = history(recorder.store()).expect("history");
    let steps = plan(&history, 0, &Disk(recorder.store())).expect("a plan");
    let project = place.join("project").canonicalize().expect("there");
    carry_out(&recorder, &steps, Range { start: 0, redo: false }, (&project, &history)).expect("undone");
}

fn changed() -> Session {
    let mut session = Session::new();
    for directory in ["d", "e", "h"] {
        fs::create_dir(session.at(directory)).expect("made");
        for number in 0..8 {
            fs::write(
                session.at(&format!("{directory}/{number}")),
                format!("{directory}{number}").repeat(9000),
            )
            .expect("a file");
        }
    }
    fs::hard_link(session.at("h/0"), session.at("h/same")).expect("linked");
    for number in 0..8 {
        session.write(&format!("d/{number}"), "changed").expect("written");
        session.write(&format!("new{number}"), "new").expect("written");
    }
    session.write("h/0", "in place").expect("written");
    session.rename("e", "moved", false).expect("moved");
    session.remove_all("moved/3").expect("removed");
    session.end();
    session
}

/// The names, without the contents.
fn names(session: &Session) -> Vec<std::path::PathBuf> {
    tree(&session.project()).into_keys().collect()
}

/// The control is the same file without the edit.
#[test]
fn an_edit_after_a_killed_undo_is_not_overwritten() {
    for is_edited in [true, false] {
        let mut session = Session::new();
        let many = 1500;
        for number in 0..many {
            fs::write(session.at(&format!("{number:04}")), "former").expect("a file");
        }
        for number in 0..many {
            session.write(&format!("{number:04}"), "of the agent").expect("written");
        }
        session.end();
        let mut child = undoing(&session);
        // The newest change is taken back first.
        while fs::read(session.at("1400")).expect("read") != b"former" {
            std::thread::sleep(Duration::from_millis(1));
        }
        child.kill().expect("killed");
        child.wait().expect("ended");
        assert_eq!(fs::read(session.at("0000")).expect("read"), b"of the agent", "it was too fast");
        if is_edited {
            fs::write(session.at("1450"), "of the user").expect("written");
        }
        assert!(session.recover(), "it was not interrupted");
        let text = fs::read_to_string(session.at("1450")).expect("read");
        assert_eq!(text, if is_edited { "of the user" } else { "of the agent" });
        let others = (0..many).filter(|number| *number != 1450);
        for number in others {
            let text = fs::read_to_string(session.at(&format!("{number:04}"))).expect("read");
            assert_eq!(text, "of the agent", "{number}");
        }
    }
}

/// Starts the child.
fn undoing(session: &Session) -> std::process::Child {
    Command::new(std::env::current_exe().expect("this program"))
        .args(["--exact", "tests::killed::undoes_in_a_given_place"])
        .env(PLACE, session.place.path())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .expect("started")
}

#[test]
fn an_undo_that_is_killed_is_before_or_after() {
    let kills = std::env::var("PORTCULLIS_UNDO_KILLS").ok().and_then(|text| text.parse().ok()).unwrap_or(30);
    let whole = changed();
    let begun = Instant::now();
    assert!(undoing(&whole).wait().expect("ended").success());
    let lasts = begun.elapsed();
    let (mut before, mut after, mut between) = (0, 0, 0);
    for number in 0..kills {
        let session = changed();
        let was = tree(&session.project());
        let mut child = undoing(&session);
        std::thread::sleep(
            lasts.mul_f64(f64::from(number) / f64::from(kills)).max(Duration::from_micros(500)),
        );
        child.kill().expect("killed");
        child.wait().expect("ended");
        let is_recovered = session.recover();
        let is = tree(&session.project());
        if is_recovered {
            between += 1;
        }
        if is == was {
            before += 1;
            session.undo();
        } else {
            after += 1;
        }
        let is_whole = tree(&session.project()) == tree(&whole.project());
        assert!(is_whole, "kill {number}, recovered: {is_recovered}: {:?}", names(&session));
    }
    println!("{kills} kills: {before} before, {after} after, {between} of them recovered");
}

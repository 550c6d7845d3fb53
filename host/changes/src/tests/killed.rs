//! Undoing that is killed: afterwards either everything is as before it, or it is complete.
//!
//! The test runs itself as a child that undoes, and kills it. `PORTCULLIS_UNDO_KILLS` sets the number of kills.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use super::agent::Session;
use super::tree::tree;
use crate::disk::spot;
use crate::interruption::LAST_POINT;
use crate::plan::plan;
use crate::record::Record;
use crate::undo::{Range, carry_out, history};
use crate::{CallKey, Disk, Place, Recorder, Store};

pub(super) const PLACE: &str = "PORTCULLIS_UNDO_PLACE";

/// The child: takes back everything in the directory that the variable names, or takes the undo back.
#[test]
fn undoes_in_a_given_place() {
    let Some(place) = std::env::var_os(PLACE) else { return };
    let place = PathBuf::from(place);
    let recorder = Recorder::new(Store::open(&place.join("store")).expect("a store"));
    let history = history(recorder.store()).expect("history");
    let (start, redo) = history.redoable().map_or((0, false), |last| (last, true));
    let steps = plan(&history, start, &Disk(recorder.store())).expect("a plan");
    let project = place.join("project").canonicalize().expect("there");
    carry_out(&recorder, &steps, Range { start, redo }, (&project, &history)).expect("undone");
    ended(&place);
}

/// The file that a child makes at its end.
const ENDED: &str = "ended";

/// When a child is killed.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Kill {
    After(Duration),
    /// It has done its work, and still runs.
    AtTheEnd,
}

impl Kill {
    /// Returns the moment of one of several kills of a child that works for a time: the first is before its work, the
    /// last after it, and some others as well.
    pub(crate) fn of(number: u32, kills: u32, lasts: Duration) -> Self {
        match number + 1 == kills {
            true => Self::AtTheEnd,
            false => Self::After(lasts.mul_f64(1.2 * f64::from(number) / f64::from(kills))),
        }
    }
}

/// The child has done its work, and waits to be killed.
pub(crate) fn ended(place: &Path) {
    if std::env::var_os(LAST_POINT).is_some() {
        return;
    }
    fs::write(place.join(ENDED), "").expect("written");
    std::thread::sleep(Duration::from_secs(60));
}

/// Kills a child; returns after which time.
pub(crate) fn kill(mut child: Child, place: &Path, when: Kill) -> Duration {
    let begun = Instant::now();
    match when {
        Kill::After(time) => std::thread::sleep(time),
        Kill::AtTheEnd => {
            while !place.join(ENDED).exists() {
                assert!(child.try_wait().expect("asked").is_none(), "it has failed");
                std::thread::sleep(Duration::from_micros(200));
            }
        }
    }
    let lasts = begun.elapsed();
    child.kill().expect("killed");
    child.wait().expect("ended");
    lasts
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
fn names(session: &Session) -> Vec<PathBuf> {
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

/// The call that puts an interrupted undo back is part of it, and nothing to undo: the next undo takes back all of the
/// call of the agent. The control is an undo that was not interrupted.
#[test]
fn an_interrupted_undo_can_be_repeated() {
    for is_interrupted in [true, false] {
        let mut session = Session::new();
        let names = ["a", "b", "c"];
        for name in names {
            fs::write(session.at(name), "former").expect("a file");
        }
        for name in names {
            session.write(name, "of the agent").expect("written");
        }
        session.end();
        let was = tree(&session.project());
        let points = history(session.recorder.store()).expect("history").points();
        if is_interrupted {
            let killed = Recorder::new(Store::open(&session.place.path().join("store")).expect("a store"));
            let call = killed.own_call();
            killed.store().append(&[Record::Undo { call, to: 0, redo: false, at: 0 }]).expect("recorded");
            let path = session.at("c");
            let at = spot(&path).expect("there");
            let place = Place { directory: &at.directory, name: at.name.as_c_str(), path: &path };
            killed.before(call, place).expect("recorded");
            killed.reaches(call, &path, None).expect("recorded");
            fs::write(&path, "former").expect("written");
            killed.left_so_far(call, &path, None).expect("recorded");
        }
        assert_eq!(session.recover(), is_interrupted);
        assert_eq!(tree(&session.project()), was);
        let history = history(session.recorder.store()).expect("history");
        assert_eq!(history.points(), points, "putting back is no call of the session");
        let report = session.undo_from(history.newest().expect("the call of the agent"), false);
        assert!(report.is_complete(), "{report:?}");
        let texts = names.map(|name| fs::read_to_string(session.at(name)).expect("read"));
        assert_eq!(texts, ["former"; 3]);
        let last = redoable(&session).expect("the undo");
        if is_interrupted {
            // So is a redo.
            let killed = Recorder::new(Store::open(&session.place.path().join("store")).expect("a store"));
            let call = killed.own_call();
            killed.store().append(&[Record::Undo { call, to: last, redo: true, at: 0 }]).expect("recorded");
            assert!(session.recover(), "it was not interrupted");
            assert_eq!(redoable(&session), Some(last), "it cannot be repeated");
        }
        let report = session.redo();
        assert!(report.is_complete(), "{report:?}");
        let texts = names.map(|name| fs::read_to_string(session.at(name)).expect("read"));
        assert_eq!(texts, ["of the agent"; 3]);
        assert_eq!(redoable(&session), None);
    }
}

fn redoable(session: &Session) -> Option<usize> {
    history(session.recorder.store()).expect("history").redoable()
}

/// Announces a move, and makes it or not.
fn moving(session: &Session, (recorder, call): (&Recorder, CallKey), from: &str, to: &str, is_made: bool) {
    let (from, to) = (session.at(from), session.at(to));
    let (old, new) = (spot(&from).expect("there"), spot(&to).expect("there"));
    let places = (
        Place { directory: &old.directory, name: old.name.as_c_str(), path: &from },
        Place { directory: &new.directory, name: new.name.as_c_str(), path: &to },
    );
    recorder.moving(call, places, false, &|| None).expect("recorded");
    if is_made {
        fs::rename(&from, &to).expect("moved");
    }
}

/// An undo that was killed right before or after a move, and maybe the call that puts it back, too.
#[test]
fn a_move_that_was_only_announced_is_not_taken_for_one() {
    for (is_made, back) in [(false, None), (true, None), (true, Some(false)), (true, Some(true))] {
        let mut session = Session::new();
        fs::create_dir(session.at("e")).expect("made");
        for name in ["e/removed", "e/changed"] {
            fs::write(session.at(name), "former").expect("a file");
        }
        let former = tree(&session.project());
        session.rename("e", "moved", false).expect("moved");
        session.remove("moved/removed").expect("removed");
        session.write("moved/changed", "new").expect("written");
        session.end();
        let was = tree(&session.project());

        let killed = Recorder::new(Store::open(&session.place.path().join("store")).expect("a store"));
        let call = killed.own_call();
        killed.store().append(&[Record::Undo { call, to: 0, redo: false, at: 0 }]).expect("recorded");
        for name in ["moved/removed", "moved/changed"] {
            let path = session.at(name);
            let at = spot(&path).expect("there");
            let place = Place { directory: &at.directory, name: at.name.as_c_str(), path: &path };
            killed.before(call, place).expect("recorded");
            killed.reaches(call, &path, None).expect("recorded");
            fs::write(&path, "former").expect("written");
            killed.left_so_far(call, &path, None).expect("recorded");
        }
        moving(&session, (&killed, call), "moved", "e", is_made);
        // The call that puts it back has its view.
        let next = CallKey { number: call.number + 1, ..call };
        if let Some(is_made) = back {
            moving(&session, (&killed, next), "e", "moved", is_made);
        }

        let begin = session.recorder.store().length().expect("length");
        assert!(session.recover(), "it was not interrupted");
        let (records, _) = session.recorder.store().records_from(begin).expect("read");
        let put_back = CallKey { number: next.number + u64::from(back.is_some()), ..next };
        let is_of_it = |record: &Record| matches!(record, Record::Before { call, .. } | Record::LeftSoFar { call, .. } if *call == put_back);
        assert!(records.iter().any(is_of_it), "{records:?}");
        assert_eq!(tree(&session.project()), was, "made: {is_made}, back: {back:?}");
        let report = session.undo();
        assert!(report.is_complete(), "made: {is_made}, back: {back:?}: {report:?}");
        assert_eq!(tree(&session.project()), former, "made: {is_made}, back: {back:?}");
    }
}

/// Starts the child.
fn undoing(session: &Session) -> Child {
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
    let lasts = kill(undoing(&whole), whole.place.path(), Kill::AtTheEnd);
    let (mut before, mut after, mut between) = (0, 0, 0);
    for number in 0..kills {
        let session = changed();
        let was = tree(&session.project());
        kill(undoing(&session), session.place.path(), Kill::of(number, kills, lasts));
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
    assert!(before > 0 && after > 0, "{before} before, {after} after");
    println!("{kills} kills: {before} before, {after} after, {between} of them recovered");
}

//! Undoing that is killed right before each of its changes, with and without edits of the user before it is put back.

use std::fs::{self, OpenOptions};
use std::io::Write as _;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use super::agent::Session;
use super::closed::{bound, set_mode};
use super::killed::PLACE;
use super::tree::{contents, tree};
use crate::interruption::LAST_POINT;
use crate::undo::{history, recover};
use crate::{Recorder, Store};

/// What the user does between the kill and the next undo.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Edits {
    None,
    /// Adds a line to each file.
    InPlace,
    /// Replaces each file by another one with an additional line.
    ByReplacing,
}

const UNDOES: &str = "tests::killed::undoes_in_a_given_place";
const RECOVERS: &str = "tests::every_point::recovers_in_a_given_place";

/// The child: puts an interrupted undo back.
#[test]
fn recovers_in_a_given_place() {
    let Some(place) = std::env::var_os(PLACE).map(PathBuf::from) else { return };
    let recorder = Recorder::new(Store::open(&place.join("store")).expect("a store"));
    recover(&recorder, &place.join("project").canonicalize().expect("there")).expect("recovered");
}

pub(crate) fn this_program() -> PathBuf {
    std::env::current_exe().expect("this program")
}

/// Runs a test of this program as a child that is killed at a point; returns whether it was.
pub(crate) fn is_killed(program: &Path, test: &str, (variable, place): (&str, &Path), point: u32) -> bool {
    let status = Command::new(program)
        .args(["--exact", test])
        .env(variable, place)
        .env(LAST_POINT, point.to_string())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status()
        .expect("run");
    assert!(status.code().is_none_or(|code| code == 0), "the child has failed: {status}");
    !status.success()
}

/// Edits all files below a directory; returns the lines.
fn edit(top: &Path, edits: Edits) -> Vec<String> {
    let mut lines = Vec::new();
    if edits == Edits::None {
        return lines;
    }
    for (name, what) in tree(top) {
        let path = top.join(&name);
        let is_own = !name.to_string_lossy().contains(".portcullis-");
        if !what.starts_with("file")
            || !is_own
            || fs::metadata(&path).is_ok_and(|file| file.permissions().mode() & 0o600 != 0o600)
        {
            continue;
        }
        let line = format!("<{} of the user>\n", name.display());
        match edits {
            Edits::None => {}
            Edits::InPlace => {
                let mut file = OpenOptions::new().append(true).open(&path).expect("open");
                file.write_all(line.as_bytes()).expect("written");
            }
            Edits::ByReplacing => {
                let text = [fs::read(&path).expect("read").as_slice(), line.as_bytes()].concat();
                let saved = top.join("saved");
                fs::write(&saved, text).expect("written");
                // Its directory may be read-only.
                if fs::rename(&saved, &path).is_err() {
                    fs::remove_file(&saved).expect("removed");
                    continue;
                }
            }
        }
        lines.push(line);
    }
    lines
}

/// Kills the undo of what `make` does at each point.
fn at_each_point(make: impl Fn() -> Session) {
    at_each_point_of(&this_program(), make);
}

fn at_each_point_of(program: &Path, make: impl Fn() -> Session) {
    let whole = make();
    assert!(!is_killed(program, UNDOES, (PLACE, whole.place.path()), u32::MAX), "it has no end");
    // A normal run does not look at every point after each kind of edit.
    let stride = if std::env::var_os("PORTCULLIS_UNDO_KILLS").is_some() { 1 } else { 3 };
    for (edits, stride) in [(Edits::None, 1), (Edits::InPlace, 1), (Edits::ByReplacing, stride)] {
        let mut point = 0;
        loop {
            let session = make();
            let was = tree(&session.project());
            if !is_killed(program, UNDOES, (PLACE, session.place.path()), point) {
                break;
            }
            let lines = edit(&session.project(), edits);
            let names: Vec<PathBuf> = tree(&session.project()).into_keys().collect();
            let is_recovered = session.recover();
            let is = tree(&session.project());
            let what =
                || format!("point {point}, {edits:?}, recovered: {is_recovered}, {names:?}, now {is:#?}");
            if edits == Edits::None {
                assert_eq!(is, was, "{}", what());
            }
            if is.values().all(|what| !what.starts_with("directory 40000")) {
                assert_kept(&session, &lines, &what);
            }
            // Names may have given way to the user's; contents have not.
            let text = contents(&session.project());
            let former = was.values().filter_map(|what| Some(what.split_once(" as ")?.1.split_once(' ')?.1));
            let is_missing =
                |former: &&str| *former != "\"closed\"" && !text.contains(former.trim_matches('"'));
            let missing: Vec<_> = former.filter(is_missing).collect();
            assert!(missing.is_empty(), "missing {missing:?}: {}", what());
            undo_or_redo(&session);
            if edits == Edits::None {
                assert_eq!(tree(&session.project()), tree(&whole.project()), "{}", what());
            }
            open_all(&session.project());
            assert_kept(&session, &lines, &what);
            point += u32::try_from(stride).unwrap_or(1);
        }
        assert!(point > 5, "{point}");
    }
    for first in (0..).step_by(7) {
        for second in (0..).step_by(stride) {
            let session = make();
            let was = tree(&session.project());
            let is_first_killed = is_killed(program, UNDOES, (PLACE, session.place.path()), first);
            let is_second_killed =
                is_first_killed && is_killed(program, RECOVERS, (PLACE, session.place.path()), second);
            session.recover();
            let is = tree(&session.project());
            // A closed directory could not be removed at the end.
            open_all(&session.project());
            if !is_first_killed {
                assert!(first > 0);
                return;
            }
            assert_eq!(is, was, "killed at {first}, then at {second}");
            if !is_second_killed {
                break;
            }
        }
    }
}

/// Opens all directories and files below one.
fn open_all(top: &Path) {
    for entry in fs::read_dir(top).expect("read") {
        let entry = entry.expect("an entry");
        let kind = entry.file_type().expect("a kind");
        if !kind.is_symlink() {
            set_mode(&entry.path(), 0o700);
        }
        if kind.is_dir() {
            open_all(&entry.path());
        }
    }
}

fn assert_kept(session: &Session, lines: &[String], what: &dyn Fn() -> String) {
    let text = contents(&session.project());
    let lost: Vec<_> = lines.iter().filter(|line| !text.contains(line.trim_end())).collect();
    assert!(lost.is_empty(), "lost {lost:?}: {}; now {:#?}", what(), tree(&session.project()));
}

/// Does what the child does.
fn undo_or_redo(session: &Session) {
    match history(session.recorder.store()).expect("history").redoable() {
        Some(_) => session.redo(),
        None => session.undo(),
    };
}

fn files(session: &Session, names: &[&str]) {
    for name in names {
        fs::write(session.at(name), format!("{name} of the user\n").repeat(3)).expect("a file");
    }
}

#[test]
fn of_contents() {
    at_each_point(|| {
        let mut session = Session::new();
        files(&session, &["a", "b", "c", "large"]);
        fs::write(session.at("large"), "large\n".repeat(6_000)).expect("a file");
        session.write("a", "of the agent\n").expect("written");
        session.append("b", "of the agent\n").expect("written");
        session.mode("c", 0o640).expect("changed");
        session.write("large", "no longer\n").expect("written");
        session.write("new", "new\n").expect("written");
        session.end();
        session
    });
}

#[test]
fn of_a_move_and_an_edit() {
    at_each_point(|| {
        let mut session = Session::new();
        files(&session, &["a", "b"]);
        session.rename("a", "moved", false).expect("moved");
        session.append("moved", "of the agent\n").expect("written");
        session.write("b.new", "of the agent\n").expect("written");
        session.rename("b.new", "b", false).expect("moved");
        session.end();
        session
    });
}

#[test]
fn of_moves() {
    at_each_point(|| {
        let mut session = Session::new();
        fs::create_dir(session.at("d")).expect("made");
        files(&session, &["a", "b", "d/x", "d/y"]);
        session.rename("a", "b", true).expect("moved");
        session.rename("d", "moved", false).expect("moved");
        session.append("moved/x", "of the agent\n").expect("written");
        session.rename("moved/y", "z", false).expect("moved");
        session.append("z", "of the agent\n").expect("written");
        session.end();
        session
    });
}

#[test]
fn of_removals() {
    at_each_point(|| {
        let mut session = Session::new();
        fs::create_dir(session.at("d")).expect("made");
        files(&session, &["a", "d/x"]);
        fs::write(session.at("large"), "large\n".repeat(6_000)).expect("a file");
        session.remove("a").expect("removed");
        session.remove_all("d").expect("removed");
        session.remove("large").expect("removed");
        session.make_directory("a").expect("made");
        session.write("a/new", "new\n").expect("written");
        session.link("a", "link").expect("linked");
        session.end();
        session
    });
}

#[test]
fn of_closed_directories() {
    let place = tempfile::tempdir().expect("a directory");
    set_mode(place.path(), 0o755);
    // The user of the thread may not be able to reach this one.
    let program = place.path().join("program");
    fs::copy(this_program(), &program).expect("copied");
    bound(|| {
        at_each_point_of(&program, || {
            let mut session = Session::new();
            for name in ["d", "d/inner", "closed"] {
                fs::create_dir(session.at(name)).expect("made");
            }
            files(&session, &["a", "d/x", "d/inner/y"]);
            session.write("d/x", "of the agent\n").expect("written");
            session.append("d/inner/y", "of the agent\n").expect("written");
            session.write("a", "of the agent\n").expect("written");
            session.mode("a", 0o200).expect("closed");
            session.mode("d/inner", 0o000).expect("closed");
            session.mode("d", 0o555).expect("closed");
            session.write("closed/new", "new\n").expect("written");
            session.mode("closed", 0o000).expect("closed");
            session.end();
            session
        });
    });
}

#[test]
fn of_a_redo() {
    at_each_point(|| {
        let mut session = Session::new();
        files(&session, &["a", "b", "c"]);
        session.append("a", "of the agent\n").expect("written");
        session.rename("b", "moved", false).expect("moved");
        session.append("moved", "of the agent\n").expect("written");
        session.remove("c").expect("removed");
        session.end();
        assert!(session.undo().is_complete());
        session
    });
}

/// A session with a file that has three names.
fn with_three_names() -> Session {
    let session = Session::new();
    files(&session, &["a"]);
    for name in ["b", "c"] {
        fs::hard_link(session.at("a"), session.at(name)).expect("linked");
    }
    session
}

#[test]
fn of_files_with_several_names() {
    at_each_point(|| {
        let mut session = with_three_names();
        session.append("a", "of the agent\n").expect("written");
        session.before(&session.at("b")).expect("recorded");
        session.remove("b").expect("removed");
        session.end();
        session
    });
}

#[test]
fn of_an_edit_by_one_of_several_names() {
    at_each_point(|| {
        let mut session = with_three_names();
        session.append("b", "of the agent\n").expect("written");
        session.remove("c").expect("removed");
        session.end();
        session
    });
}

#[test]
fn of_a_new_name() {
    at_each_point(|| {
        let mut session = with_three_names();
        session.hard_link("a", "new").expect("linked");
        session.append("new", "of the agent\n").expect("written");
        session.remove("a").expect("removed");
        session.end();
        session
    });
}

/// As `git gc`: a pack takes the place of loose objects.
#[test]
fn of_a_repository() {
    at_each_point(|| {
        let mut session = Session::new();
        fs::create_dir_all(session.at("git/refs")).expect("made");
        fs::create_dir_all(session.at("git/objects/ab")).expect("made");
        files(
            &session,
            &["git/HEAD", "git/config", "git/refs/main", "git/objects/ab/one", "git/objects/ab/two"],
        );
        session.make_directory("git/objects/pack").expect("made");
        session.write("git/objects/pack/one.pack", "of the agent\n").expect("written");
        session.write("git/packed-refs", "of the agent\n").expect("written");
        session.remove("git/refs/main").expect("removed");
        session.remove_all("git/objects/ab").expect("removed");
        session.end();
        session
    });
}

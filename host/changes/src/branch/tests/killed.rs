//! Commits that are killed: afterwards the project is as before, or the commit is complete.
//!
//! The test runs itself as a child that commits, and kills it. `PORTCULLIS_COMMIT_KILLS` sets the number of kills.

use std::collections::BTreeMap;
use std::fs::{self, OpenOptions};
use std::io::Write as _;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};

use super::{Scene, changed};
use crate::branch::{Layers, commit, compare, settled};
use crate::tests::every_point::{is_killed, this_program};
use crate::tests::killed::{Kill, ended, kill};
use crate::tests::tree::{contents, tree};
use crate::undo::{history, recover};
use crate::{Recorder, Store};

const PLACE: &str = "PORTCULLIS_COMMIT_PLACE";

/// The child: commits the branch in the directory that the variable names.
#[test]
fn commits_in_a_given_place() {
    let Some(place) = std::env::var_os(PLACE).map(PathBuf::from) else { return };
    let recorder = Recorder::new(Store::open(&place.join("store")).expect("a store"));
    let (upper, project) = (place.join("upper"), place.join("project").canonicalize().expect("there"));
    let settled = BTreeMap::new();
    let layers = Layers { project: &project, upper: &upper, begun: (i64::MAX, 0), settled: &settled };
    let changes = compare(layers).expect("compared");
    commit(&recorder, layers, &changes.iter().collect::<Vec<_>>(), "a commit").expect("committed");
    ended(&place);
}

/// Kills the commit of every kind of change right before each change that it makes.
#[test]
fn at_every_point() {
    let lines_in = |scene: &Scene| contents(&scene.project());
    for is_edited in [false, true] {
        for point in 0.. {
            let scene = changed();
            let was = tree(&scene.project());
            let place = (PLACE, scene.place.path());
            if !is_killed(&this_program(), "branch::tests::killed::commits_in_a_given_place", place, point) {
                assert!(point > 50, "{point}");
                println!("{point} points");
                break;
            }
            let mut lines = Vec::new();
            let is_own = |name: &&PathBuf| !name.to_string_lossy().contains(".portcullis-");
            for name in tree(&scene.project()).keys().filter(is_own).filter(|_| is_edited) {
                if let Ok(mut file) = OpenOptions::new().append(true).open(scene.project().join(name)) {
                    let line = format!("<{} of the user>", name.display());
                    file.write_all(line.as_bytes()).expect("written");
                    lines.push(line);
                }
            }
            let names: Vec<PathBuf> = tree(&scene.project()).into_keys().collect();
            let back = recover(&scene.recorder, &scene.project()).expect("recovered");
            let text = lines_in(&scene);
            let lost: Vec<_> = lines.iter().filter(|line| !text.contains(*line)).collect();
            assert!(lost.is_empty(), "point {point}, lost {lost:?}, {names:?}, {back:?}, {text}");
            if !is_edited {
                assert_eq!(tree(&scene.project()), was, "point {point}, {names:?}, {back:?}");
            }
        }
    }
}

fn large() -> Scene {
    let scene = changed();
    for number in 0..12 {
        scene.write(&format!("many/{number}"), &format!("{number}").repeat(20_000));
    }
    scene
}

fn run(scene: &Scene) -> Child {
    Command::new(std::env::current_exe().expect("this program"))
        .args(["--exact", "branch::tests::killed::commits_in_a_given_place"])
        .env(PLACE, scene.place.path())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .expect("started")
}

#[test]
fn a_commit_that_is_killed_is_before_or_after() {
    let kills = std::env::var("PORTCULLIS_COMMIT_KILLS").ok().and_then(|text| text.parse().ok()).unwrap_or(8);
    let whole = large();
    let lasts = kill(run(&whole), whole.place.path(), Kill::AtTheEnd);
    let (mut before, mut after, mut between) = (0, 0, 0);
    for number in 0..kills {
        let mut scene = large();
        let was = tree(&scene.project());
        kill(run(&scene), scene.place.path(), Kill::of(number, kills, lasts));
        let back = recover(&scene.recorder, &scene.project()).expect("recovered");
        let is_recovered = back.is_some();
        for path in back.unwrap_or_default().done {
            let path = path.strip_prefix(scene.project()).expect("in the project").to_owned();
            scene.settled.extend(settled(&scene.project(), &[path]).expect("looked"));
        }
        let is = tree(&scene.project());
        between += u32::from(is_recovered);
        if is == was {
            before += 1;
            let history = history(scene.recorder.store()).expect("history");
            assert_eq!(history.newest(), None, "there is something to undo after kill {number}");
            scene.commit_all();
        } else {
            after += 1;
        }
        assert_eq!(
            tree(&scene.project()),
            tree(&whole.project()),
            "kill {number}, recovered: {is_recovered}"
        );
    }
    assert!(before > 0 && after > 0, "{before} before, {after} after");
    println!("{kills} kills: {before} before, {after} after, {between} of them recovered");
}

/// The user's edits after it are told from those of the commit, but for the file that it was writing.
#[test]
fn edits_after_a_killed_commit_are_kept() {
    const FILES: usize = 30;
    let scene = || {
        let scene = Scene::new();
        for number in 0..FILES {
            fs::write(scene.at(&format!("file{number}")), format!("first {number}\n")).expect("written");
        }
        for number in 0..FILES {
            scene.write(&format!("file{number}"), &format!("{number}").repeat(20_000));
        }
        scene
    };
    let whole = scene();
    let lasts = kill(run(&whole), whole.place.path(), Kill::AtTheEnd);
    let kills = 8;
    for number in 0..kills {
        let scene = scene();
        kill(run(&scene), scene.place.path(), Kill::of(number, kills, lasts));
        for number in 0..FILES {
            let mut file =
                OpenOptions::new().append(true).open(scene.at(&format!("file{number}"))).expect("open");
            file.write_all(b"of the user\n").expect("written");
        }
        let _back = recover(&scene.recorder, &scene.project()).expect("recovered");
        let is_kept = |number: &usize| {
            let text = fs::read_to_string(scene.at(&format!("file{number}"))).expect("read");
            text.ends_with("of the user\n")
        };
        let kept = (0..FILES).filter(is_kept).count();
        assert!(kept >= FILES - 1, "kill {number}: {kept} of {FILES} edits are there");
    }
}

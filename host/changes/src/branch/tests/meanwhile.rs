//! What the user changes in the project without a new time at the changed file.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::os::unix::fs::{FileExt as _, MetadataExt as _};
use std::path::PathBuf;
use std::thread::sleep;
use std::time::Duration;

use super::Scene;
use crate::branch::{commit, settled};
use crate::tests::tree::tree;
use crate::undo::Whole;
use crate::{Bounds, Recorder, Store};

/// More than a tick of the clock for file times.
const TICK: Duration = Duration::from_millis(20);

impl Scene {
    /// The branch begins now.
    fn begin(&mut self) {
        sleep(TICK);
        fs::write(self.place.path().join("clock"), "").expect("written");
        let clock = self.place.path().join("clock").metadata().expect("there");
        self.begun = (clock.ctime(), u32::try_from(clock.ctime_nsec()).expect("nanoseconds"));
        sleep(TICK);
    }

    /// Puts another directory, whose files are older than the branch, in the place of one of the project.
    fn replace(&self, name: &str) {
        fs::rename(self.at(name), self.at("away")).expect("moved");
        fs::rename(self.at("other"), self.at(name)).expect("moved");
    }

    fn with_other(files: &[&str]) -> Self {
        let scene = Self::new();
        fs::create_dir_all(scene.at("other/e")).expect("made");
        for name in files {
            fs::write(scene.at("other").join(name), "the user's").expect("a file");
        }
        scene
    }
}

#[test]
fn a_directory_in_the_place_of_one_that_was_copied_up_is_a_conflict() {
    let mut scene = Scene::with_other(&["x", "e/y"]);
    scene.begin();
    scene.write("d/x", "of the branch");
    scene.write("d/e/y", "of the branch");
    scene.write("d/new", "of the branch");
    scene.origin("d", "d");
    scene.origin("d/e", "d/e");
    assert_eq!(scene.words(), ["changed d/e/y", "made d/new", "changed d/x"], "control");
    scene.replace("d");
    let found = scene.words();
    for line in ["changed d/x (ChangedSince)", "changed d/e/y (ChangedSince)"] {
        assert!(found.contains(&line.to_owned()), "{found:?}");
    }
}

#[test]
fn a_directory_in_the_place_of_one_that_was_removed_is_a_conflict() {
    for is_made_anew in [false, true] {
        let mut scene = Scene::with_other(&["x", "e/y"]);
        scene.begin();
        if is_made_anew {
            scene.opaque("d");
        } else {
            scene.whiteout("d");
        }
        let found = scene.words();
        assert!(found.iter().all(|line| !line.contains("ChangedSince")), "control: {found:?}");
        scene.replace("d");
        let found = scene.words();
        for line in ["removed d/x (ChangedSince)", "removed d/e/y (ChangedSince)"] {
            assert!(found.contains(&line.to_owned()), "{found:?}");
        }
    }
}

#[test]
fn a_commit_in_a_directory_is_no_change_of_the_users() {
    let mut scene = Scene::new();
    scene.begin();
    scene.write("d/x", "of the branch");
    scene.write("in-the-project", "x");
    scene.origin("d", "d");
    scene.commit_all();
    let names = ["d/x", "in-the-project"].map(PathBuf::from);
    scene.settled = settled(&scene.project(), &names).expect("looked");
    fs::remove_dir_all(scene.upper("d")).expect("removed");
    scene.whiteout("d");
    let found = scene.words();
    assert_eq!(found, ["removed d", "removed d/e", "removed d/e/y", "removed d/x"]);
    // The user makes a file, and something beside the directory.
    sleep(TICK);
    fs::write(scene.at("d/own"), "the user's").expect("written");
    fs::write(scene.at("beside"), "the user's").expect("written");
    let found = scene.words();
    assert!(found.contains(&"removed d/own (ChangedSince)".to_owned()), "control: {found:?}");
}

#[test]
fn a_file_that_changes_without_a_new_time_stops_the_commit() {
    let mut scene = Scene::new();
    scene.begin();
    scene.write("a", "of the branch");
    let changes = scene.compare();
    let file = File::options().write(true).open(scene.at("a")).expect("open");
    let time = file.metadata().and_then(|file| file.modified()).expect("a time");
    file.write_all_at(b"A", 0).expect("written");
    file.set_modified(time).expect("set");
    let error = scene.commit(&changes, &BTreeMap::new()).expect_err("it has changed");
    assert!(error.to_string().contains("has changed in the project"), "{error}");
    assert_eq!(fs::read_to_string(scene.at("a")).expect("read"), "A of the project");
}

/// The name was free when the branch was compared, so only the step itself notices.
#[test]
fn a_file_that_the_user_makes_stops_the_commit_and_stays() {
    let scene = Scene::new();
    scene.write("a", "of the branch");
    scene.write("z", "of the branch");
    let changes = scene.compare();
    fs::write(scene.at("z"), "the user's").expect("written");
    let before = tree(&scene.project());
    let stopped = scene.commit(&changes, &BTreeMap::new()).expect("stopped");
    let Whole::Stopped { by, back } = stopped else { panic!("it was made") };
    assert!(!by.is_complete() && back.is_complete(), "{by:?}, {back:?}");
    assert_eq!(tree(&scene.project()), before, "nothing is put beside");
}

#[test]
fn what_could_not_be_taken_back_is_not_committed() {
    let scene = Scene::new();
    scene.write("a", "of the branch");
    scene.write("new", "of the branch");
    let before = tree(&scene.project());
    let (upper, project) = (scene.place.path().join("upper"), scene.project());
    let with_bounds = |bounds: Bounds, name: &str| {
        let store = scene.place.path().join(name);
        fs::create_dir(&store).expect("made");
        Store::make(&store, bounds).expect("a store");
        let recorder = Recorder::new(Store::open(&store).expect("opened"));
        let changes = scene.compare();
        let chosen: Vec<_> = changes.iter().collect();
        commit(&recorder, scene.layers(&upper, &project), &chosen, "a commit").expect("made or stopped")
    };
    let stopped = with_bounds(Bounds { file: 4, session: 1 << 20 }, "small");
    let Whole::Stopped { by, back } = stopped else { panic!("it was made") };
    assert_eq!((by.left.len(), back.is_complete()), (1, true), "{by:?}, {back:?}");
    assert_eq!(tree(&scene.project()), before);
    assert!(matches!(with_bounds(Bounds::default(), "large"), Whole::Made), "control");
}

/// An overlay in a user namespace writes no file handle into the mark of a file that it copies up.
#[test]
fn a_file_that_the_user_removes_is_a_conflict_without_a_handle() {
    let mut scene = Scene::with_other(&["x"]);
    let files = [
        ("keep", "one\ntwo\n"),
        ("like-keep", "one\ntwo\nthree\n"),
        ("mode", "of the project"),
        ("emptied", "of the project"),
    ];
    for (name, text) in files {
        fs::write(scene.at(name), text).expect("a file");
    }
    scene.begin();
    scene.write("keep", "one\ntwo\nthree\n");
    scene.write("mode", "of the project");
    scene.write("emptied", "");
    scene.write("other/x", "of the branch");
    // A command has moved this one and changed it, and linked that one.
    scene.write("d/moved", "b of the project, and more");
    scene.write("moved", "b of the project, and more");
    scene.whiteout("b");
    scene.whiteout("like-keep");
    scene.write("a", "a of the branch");
    fs::hard_link(scene.upper("a"), scene.upper("linked")).expect("linked");
    scene.write("new", "new");
    for name in ["keep", "mode", "emptied", "other", "other/x", "d/moved", "moved", "a", "linked"] {
        scene.mark(name, "origin", b"");
    }
    let unknown = scene.words();
    assert!(unknown.iter().all(|line| !line.contains("Since")), "control: {unknown:?}");
    for name in ["keep", "mode", "emptied"] {
        fs::remove_file(scene.at(name)).expect("removed");
    }
    fs::rename(scene.at("other"), scene.at("away")).expect("moved");
    let expected = [
        "changed a",
        "removed b (MayHaveMoved)",
        "made d/moved",
        "made emptied (RemovedSince)",
        "made keep (RemovedSince)",
        "removed like-keep (MayHaveMoved)",
        "made linked",
        "made mode (RemovedSince)",
        // It may be one that the user has removed, as names in its directory have changed.
        "made moved (RemovedSince)",
        "made new",
        "made other (RemovedSince)",
        "made other/x (RemovedSince)",
    ];
    assert_eq!(scene.words(), expected);
}

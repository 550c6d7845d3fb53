//! Branches whose upper directory is written as an overlay writes it.

mod killed;
mod meanwhile;

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::{Path, PathBuf};

use rustix::fs::{CWD, FileType, Mode, XattrFlags, makedev, mknodat, setxattr};

use super::compare::open_top;
use super::{
    BranchChange, Layers, Left, Obstacle, Settled, Time, choose, commit, compare, review_id, settled,
};
use crate::plan::plan;
use crate::tests::tree::tree;
use crate::undo::{Range, Report, Whole, carry_out, history};
use crate::{Bounds, Disk, Recorder, Store};

/// A project, a branch of it, and a store for the commit.
struct Scene {
    place: tempfile::TempDir,
    recorder: Recorder,
    begun: Time,
    settled: BTreeMap<PathBuf, Settled>,
}

impl Scene {
    fn new() -> Self {
        let place = tempfile::tempdir().expect("a directory");
        for name in ["project", "upper", "store"] {
            fs::create_dir(place.path().join(name)).expect("made");
        }
        Store::make(&place.path().join("store"), Bounds::default()).expect("a store");
        let recorder = Recorder::new(Store::open(&place.path().join("store")).expect("opened"));
        let scene = Self { place, recorder, begun: (i64::MAX, 0), settled: BTreeMap::new() };
        for directory in ["d/e", "gone", "replaced"] {
            fs::create_dir_all(scene.at(directory)).expect("made");
        }
        for name in ["a", "b", "d/x", "d/e/y", "gone/1", "replaced/2", "becomes-a-directory"] {
            fs::write(scene.at(name), format!("{name} of the project")).expect("a file");
        }
        symlink("a", scene.at("link")).expect("a link");
        scene
    }

    fn project(&self) -> PathBuf {
        self.place.path().join("project").canonicalize().expect("there")
    }

    fn at(&self, name: &str) -> PathBuf {
        self.project().join(name)
    }

    fn upper(&self, name: &str) -> PathBuf {
        self.place.path().join("upper").join(name)
    }

    /// Writes a file of the branch.
    fn write(&self, name: &str, text: &str) {
        fs::create_dir_all(self.upper(name).parent().expect("a directory")).expect("made");
        fs::write(self.upper(name), text).expect("written");
    }

    /// Removes a name in the branch.
    fn whiteout(&self, name: &str) {
        fs::create_dir_all(self.upper(name).parent().expect("a directory")).expect("made");
        let mode = Mode::from_raw_mode(0);
        mknodat(CWD, self.upper(name), FileType::CharacterDevice, mode, makedev(0, 0)).expect("a whiteout");
    }

    /// Makes a directory of the branch in which nothing of the project is visible.
    fn opaque(&self, name: &str) {
        fs::create_dir_all(self.upper(name)).expect("made");
        self.mark(name, "opaque", b"y");
    }

    /// Marks a file of the branch as copied up from one of the project.
    fn origin(&self, name: &str, from: &str) {
        let project = open_top(&self.project()).expect("there");
        let from = std::ffi::CString::new(from).expect("a name");
        let handle = portcullis_sys::handle::file_handle(&project, &from).expect("a handle");
        self.mark(name, "origin", &[&[0; 21], &handle[4..]].concat());
    }

    fn mark(&self, name: &str, mark: &str, value: &[u8]) {
        let attribute = format!("user.overlay.{mark}");
        setxattr(self.upper(name), attribute, value, XattrFlags::empty()).expect("a mark");
    }

    fn layers<'a>(&'a self, upper: &'a Path, project: &'a Path) -> Layers<'a> {
        Layers { project, upper, begun: self.begun, settled: &self.settled }
    }

    fn compare(&self) -> Vec<BranchChange> {
        compare(self.layers(&self.place.path().join("upper"), &self.project())).expect("compared")
    }

    fn commit(&self, changes: &[BranchChange], left: &BTreeMap<PathBuf, Left>) -> std::io::Result<Whole> {
        let chosen: Vec<_> = changes.iter().filter(|change| !left.contains_key(&change.path)).collect();
        let (upper, project) = (self.place.path().join("upper"), self.project());
        commit(&self.recorder, self.layers(&upper, &project), &chosen, "commit of a test")
    }

    fn commit_all(&self) {
        let changes = self.compare();
        let left = choose(&changes, &[], own_reason);
        assert_eq!(left, BTreeMap::new());
        let made = self.commit(&changes, &left).expect("committed");
        assert!(matches!(made, Whole::Made), "{made:?}");
    }

    fn undo(&self) -> Report {
        let history = history(self.recorder.store()).expect("history");
        let start = history.newest().expect("a call");
        let steps = plan(&history, start, &Disk(self.recorder.store())).expect("a plan");
        let range = Range { start, redo: false };
        carry_out(&self.recorder, &steps, range, (&self.project(), &history)).expect("undone")
    }

    fn words(&self) -> Vec<String> {
        let line = |change: &BranchChange| {
            let obstacle = change.obstacle.map(|obstacle| format!(" ({obstacle:?})")).unwrap_or_default();
            format!("{} {}{obstacle}", change.word(), change.path.display())
        };
        self.compare().iter().map(line).collect()
    }
}

fn own_reason(change: &BranchChange) -> Option<Left> {
    change.obstacle.map(Left::Obstacle)
}

/// Every kind of change in a branch.
fn changed() -> Scene {
    let scene = Scene::new();
    scene.write("a", "a of the branch");
    fs::set_permissions(scene.upper("a"), fs::Permissions::from_mode(0o4755)).expect("changed");
    setxattr(scene.upper("a"), "user.tag", b"red", XattrFlags::empty()).expect("an attribute");
    scene.origin("a", "a");
    scene.write("renamed", "b of the branch");
    scene.origin("renamed", "b");
    scene.write("new/deep/file", "new");
    fs::hard_link(scene.upper("new/deep/file"), scene.upper("new/same")).expect("linked");
    scene.whiteout("b");
    scene.whiteout("gone");
    scene.write("replaced", "a file now");
    scene.write("becomes-a-directory/inside", "inside");
    scene.opaque("d");
    scene.write("d/new", "the only one");
    symlink("elsewhere", scene.upper("link")).expect("a link");
    let sparse = File::create(scene.upper("new/sparse")).expect("a file");
    sparse.set_len(1 << 20).expect("longer");
    scene
}

#[test]
fn a_commit_makes_the_project_what_the_branch_was_and_undo_takes_it_back() {
    let scene = changed();
    let before = tree(&scene.project());
    assert_eq!(
        scene.words(),
        [
            "changed a",
            "removed b",
            "changed becomes-a-directory",
            "made becomes-a-directory/inside",
            "removed d/e",
            "removed d/e/y",
            "made d/new",
            "removed d/x",
            "removed gone",
            "removed gone/1",
            "changed link",
            "made new",
            "made new/deep",
            "made new/deep/file",
            "made new/same",
            "made new/sparse",
            "made renamed",
            "changed replaced",
            "removed replaced/2",
        ]
    );
    scene.commit_all();
    let after = tree(&scene.project());
    assert_eq!(
        after.keys().map(|path| path.display().to_string()).collect::<Vec<_>>(),
        [
            "a",
            "becomes-a-directory",
            "becomes-a-directory/inside",
            "d",
            "d/new",
            "link",
            "new",
            "new/deep",
            "new/deep/file",
            "new/same",
            "new/sparse",
            "renamed",
            "replaced"
        ]
    );
    let text = |name: &str| after[Path::new(name)].clone();
    assert_eq!(
        text("a"),
        r#"file 100755 [("user.tag", "red")] as a "a of the branch""#,
        "no set-id bit, no mark"
    );
    assert!(text("new/same").contains("as new/deep/file"), "{}", text("new/same"));
    assert_eq!(text("link"), "link elsewhere");
    assert_eq!(scene.compare(), [], "nothing is left to commit");
    let report = scene.undo();
    assert!(report.left.is_empty() && report.failed.is_empty(), "{report:?}");
    assert_eq!(tree(&scene.project()), before);
    // The branch is as it was.
    assert_eq!(scene.words().len(), 19);
}

#[test]
fn what_is_the_same_is_no_change() {
    let scene = Scene::new();
    scene.write("a", "a of the project");
    let now = fs::metadata(scene.at("a")).expect("there").permissions();
    fs::set_permissions(scene.upper("a"), now).expect("changed");
    scene.write("d/x", "d/x of the project");
    fs::set_permissions(scene.upper("d/x"), fs::Permissions::from_mode(0o640)).expect("changed");
    assert_eq!(scene.words(), ["changed d/x"]);
}

#[test]
fn what_the_user_changed_since_is_a_conflict() {
    let mut scene = Scene::new();
    scene.begun = (0, 0);
    scene.write("a", "of the branch");
    scene.write("removed-by-the-user", "of the branch");
    fs::write(scene.at("removed-by-the-user"), "of the project").expect("a file");
    scene.origin("removed-by-the-user", "removed-by-the-user");
    fs::remove_file(scene.at("removed-by-the-user")).expect("removed");
    scene.write("new", "new");
    scene.whiteout("gone");
    let found = scene.words();
    let expected = [
        "changed a (ChangedSince)",
        "removed gone (ChangedSince)",
        "removed gone/1 (ChangedSince)",
        "made new",
        "made removed-by-the-user (RemovedSince)",
    ];
    assert_eq!(found, expected);
    // A commit is not the user's change.
    let changes = scene.compare();
    scene.commit(&changes, &BTreeMap::from([("new".into(), Left::NotNamed)])).expect("committed");
    for name in ["a", "gone", "gone/1", "removed-by-the-user"] {
        scene.settled.extend(settled(&scene.project(), &[name.into()]).expect("looked"));
    }
    scene.write("a", "once more");
    assert_eq!(scene.words(), ["changed a", "made new"]);
    std::thread::sleep(std::time::Duration::from_millis(20));
    fs::write(scene.at("a"), "the user's").expect("written");
    assert_eq!(scene.words(), ["changed a (ChangedSince)", "made new"]);
}

#[test]
fn a_directory_with_a_conflict_stays_and_a_file_brings_its_directories() {
    let scene = changed();
    let changes = scene.compare();
    let conflict = |change: &BranchChange| {
        (change.path == Path::new("gone/1")).then_some(Left::Obstacle(Obstacle::ChangedSince))
    };
    let left = choose(&changes, &[], conflict);
    assert_eq!(left.keys().map(|path| path.display().to_string()).collect::<Vec<_>>(), ["gone", "gone/1"]);
    let named = [PathBuf::from("new/deep")];
    let left = choose(&changes, &named, |_| None);
    let chosen: Vec<_> = changes.iter().filter(|change| !left.contains_key(&change.path)).collect();
    let chosen: Vec<_> = chosen.iter().map(|change| change.path.display().to_string()).collect();
    assert_eq!(chosen, ["new", "new/deep", "new/deep/file"]);
    let refused =
        |change: &BranchChange| (change.path == Path::new("new")).then(|| Left::Refused("a rule".to_owned()));
    let left = choose(&changes, &[], refused);
    assert_eq!(left.get(Path::new("new/deep/file")), Some(&Left::Needs("new/deep".into())));
}

#[test]
fn a_commit_follows_no_link() {
    let scene = Scene::new();
    let outside = scene.place.path().join("outside");
    fs::create_dir(&outside).expect("made");
    // In the project a link has the name of a directory of the branch.
    symlink(&outside, scene.at("out")).expect("a link");
    scene.write("out/planted", "planted");
    // In the branch a link has the name of a directory of the project.
    symlink(&outside, scene.upper("d")).expect("a link");
    fs::write(outside.join("x"), "outside").expect("a file");
    let found = scene.words();
    assert!(
        found.contains(&"changed out".to_owned()) && found.contains(&"removed d/x".to_owned()),
        "{found:?}"
    );
    scene.commit_all();
    assert_eq!(fs::read_dir(&outside).expect("read").count(), 1, "something was written outside");
    assert_eq!(fs::read_to_string(outside.join("x")).expect("read"), "outside");
    assert!(scene.at("out").symlink_metadata().expect("there").is_dir());
    assert!(scene.at("out/planted").is_file() && scene.at("d").is_symlink(), "control: it was committed");
}

#[test]
fn a_link_in_the_way_stops_the_whole_commit() {
    let scene = changed();
    let outside = scene.place.path().join("outside");
    fs::create_dir(&outside).expect("made");
    let changes = scene.compare();
    // Another program of the user puts a link in the place of a directory.
    fs::rename(scene.at("d"), scene.place.path().join("away")).expect("moved");
    symlink(&outside, scene.at("d")).expect("a link");
    let before = tree(&scene.project());
    let stopped = scene.commit(&changes, &BTreeMap::new()).expect("taken back");
    let Whole::Stopped { by, back } = stopped else { panic!("control: it was made") };
    assert!(!by.is_complete() && back.is_complete(), "{by:?}, {back:?}");
    assert_eq!(tree(&scene.project()), before);
    assert_eq!(fs::read_dir(&outside).expect("read").count(), 0);
    assert_eq!(history(scene.recorder.store()).expect("history").newest(), None, "nothing to undo");
}

#[test]
fn what_changes_after_the_review_is_not_committed() {
    let scene = changed();
    let (changes, before) = (scene.compare(), tree(&scene.project()));
    let id = review_id(&changes);
    assert_eq!(review_id(&scene.compare()), id, "control");
    // The same length and the same time.
    let file = File::options().write(true).open(scene.upper("new/deep/file")).expect("open");
    let time = file.metadata().and_then(|file| file.modified()).expect("a time");
    std::thread::sleep(std::time::Duration::from_millis(20));
    std::os::unix::fs::FileExt::write_all_at(&file, b"bad", 0).expect("written");
    file.set_modified(time).expect("set");
    assert_ne!(review_id(&scene.compare()), id);
    let error = scene.commit(&changes, &BTreeMap::new()).expect_err("it has changed");
    assert!(error.to_string().contains("has changed in the branch"), "{error}");
    assert_eq!(tree(&scene.project()), before);
}

#[test]
fn marks_and_special_files_are_refused() {
    let scene = Scene::new();
    mknodat(CWD, scene.upper("pipe"), FileType::Fifo, Mode::RUSR, 0).expect("a pipe");
    scene.write("a", "x");
    scene.mark("a", "metacopy", b"");
    fs::create_dir(scene.upper("d")).expect("made");
    scene.mark("d", "redirect", b"/outside");
    fs::create_dir(scene.upper("gone")).expect("made");
    scene.mark("gone", "opaque", b"x");
    scene.write("b", "");
    scene.mark("b", "whiteout", b"y");
    mknodat(CWD, scene.at("special"), FileType::Fifo, Mode::RUSR, 0).expect("a pipe");
    scene.write("special", "x");
    let expected = [
        "changed a (UnknownMark)",
        "changed b (UnknownMark)",
        "changed d (UnknownMark)",
        "changed gone (UnknownMark)",
        "made pipe (Special)",
        "changed special (ReplacesSpecial)",
    ];
    assert_eq!(scene.words(), expected);
}

//! Directories that a command or the user has closed, for a user whom permissions bind.

use std::fs::{self, Permissions};
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::path::Path;

use rustix::fs::{Gid, Uid};
use rustix::process::geteuid;
use rustix::thread::{set_thread_res_gid, set_thread_res_uid};

use super::agent::Session;
use crate::plan::{Act, Why};
use crate::undo::{Report, history};
use crate::{Point, diff};

/// A user without files.
const NOBODY: u32 = 65_534;

/// Runs a test in a thread that permissions bind.
pub(super) fn bound(test: impl FnOnce() + Send) {
    let in_thread = || {
        if geteuid().is_root() {
            let (group, user) = (Gid::from_raw(NOBODY), Uid::from_raw(NOBODY));
            set_thread_res_gid(group, group, group).expect("another group");
            set_thread_res_uid(user, user, user).expect("another user");
        }
        test();
    };
    std::thread::scope(|scope| {
        let ended = scope.spawn(in_thread).join();
        if let Err(panic) = ended {
            std::panic::resume_unwind(panic);
        }
    });
}

pub(super) fn mode(path: &Path) -> u32 {
    path.symlink_metadata().expect("there").mode() & 0o7777
}

pub(super) fn set_mode(path: &Path, mode: u32) {
    fs::set_permissions(path, Permissions::from_mode(mode)).expect("changed");
}

fn read(session: &Session, name: &str) -> String {
    fs::read_to_string(session.at(name)).expect("read")
}

fn is_whole(report: &Report) {
    assert!(report.is_complete(), "{report:?}");
}

fn points(session: &Session) -> Vec<Point> {
    history(session.recorder.store()).expect("history").points()
}

fn newest(session: &Session) -> Option<usize> {
    history(session.recorder.store()).expect("history").newest()
}

/// A redo that is not complete can be repeated as well.
#[test]
fn a_redo_that_is_not_complete_can_be_repeated() {
    bound(|| {
        let mut session = Session::new();
        fs::create_dir(session.at("d")).expect("made");
        for name in ["d/x", "z"] {
            fs::write(session.at(name), "former").expect("a file");
            session.write(name, "of the agent").expect("written");
        }
        session.end();
        is_whole(&session.undo());
        set_mode(&session.at("d"), 0o000);
        assert!(session.redo().can_be_repeated());
        assert_eq!(read(&session, "z"), "of the agent");
        open(&session, &["d"]);
        is_whole(&session.redo());
        assert_eq!(read(&session, "d/x"), "of the agent");
        assert_eq!(history(session.recorder.store()).expect("history").redoable(), None);
        is_whole(&session.undo());
        assert_eq!((read(&session, "d/x").as_str(), read(&session, "z").as_str()), ("former", "former"));
    });
}

/// Makes the directories removable for the end of the test.
fn open(session: &Session, names: &[&str]) {
    names.iter().for_each(|name| set_mode(&session.at(name), 0o755));
}

#[test]
fn a_closed_directory_of_a_command_is_removed_and_made_again() {
    for closed in [0o000, 0o444, 0o555] {
        for is_empty in [false, true] {
            bound(|| {
                let mut session = Session::new();
                fs::write(session.at("z"), "former").expect("a file");
                session.write("z", "of the agent").expect("written");
                session.make_directory("t").expect("made");
                session.make_directory("t/in").expect("made");
                if !is_empty {
                    session.write("t/in/k", "k").expect("written");
                }
                session.mode("t/in", closed).expect("closed");
                session.mode("t", closed).expect("closed");
                session.end();
                for round in 0..2 {
                    let steps = session.plan(0);
                    assert!(steps.iter().all(|step| !step.is_left()), "{round}: {steps:?}");
                    assert_eq!(mode(&session.at("t")), closed, "planning changes nothing");
                    is_whole(&session.undo());
                    assert_eq!(read(&session, "z"), "former");
                    assert!(!session.at("t").exists());
                    is_whole(&session.redo());
                    assert_eq!(
                        (read(&session, "z").as_str(), mode(&session.at("t"))),
                        ("of the agent", closed)
                    );
                    set_mode(&session.at("t"), 0o700);
                    assert_eq!(mode(&session.at("t/in")), closed);
                    set_mode(&session.at("t/in"), 0o700);
                    assert_eq!(session.at("t/in/k").exists(), !is_empty);
                    set_mode(&session.at("t/in"), closed);
                    set_mode(&session.at("t"), closed);
                }
                open(&session, &["t", "t/in"]);
            });
        }
    }
}

#[test]
fn a_closed_directory_gets_its_files_and_its_mode_back_at_once() {
    for closed in [0o000, 0o555] {
        bound(|| {
            let mut session = Session::new();
            fs::create_dir_all(session.at("d/e")).expect("made");
            for name in ["d/changed", "d/e/removed"] {
                fs::write(session.at(name), "former").expect("a file");
            }
            session.write("d/changed", "of the agent").expect("written");
            session.remove("d/e/removed").expect("removed");
            session.write("d/e/new", "new").expect("written");
            session.mode("d/e", closed).expect("closed");
            session.mode("d", closed).expect("closed");
            session.rename("d", "moved", false).expect("moved");
            session.end();
            is_whole(&session.undo());
            assert_eq!((mode(&session.at("d")), mode(&session.at("d/e"))), (0o755, 0o755));
            assert_eq!(read(&session, "d/changed"), "former");
            assert_eq!(read(&session, "d/e/removed"), "former");
            assert!(!session.at("d/e/new").exists());
            is_whole(&session.redo());
            assert_eq!(mode(&session.at("moved")), closed);
            is_whole(&session.undo());
            assert_eq!(read(&session, "d/changed"), "former");
        });
    }
}

#[test]
fn a_read_only_directory_of_the_user_is_removed_again_by_redo() {
    bound(|| {
        let mut session = Session::new();
        fs::create_dir(session.at("ro")).expect("made");
        fs::write(session.at("ro/f"), "former").expect("a file");
        set_mode(&session.at("ro"), 0o555);
        session.mode("ro", 0o755).expect("opened");
        session.remove_all("ro").expect("removed");
        session.end();
        for _ in 0..2 {
            is_whole(&session.undo());
            assert_eq!((read(&session, "ro/f").as_str(), mode(&session.at("ro"))), ("former", 0o555));
            is_whole(&session.redo());
            assert!(!session.at("ro").exists());
        }
    });
}

/// What the user has closed is not opened, and named.
#[test]
fn a_directory_that_the_user_closes_is_left_and_the_rest_undone() {
    bound(|| {
        let mut session = Session::new();
        fs::write(session.at("z"), "former").expect("a file");
        session.write("z", "of the agent").expect("written");
        session.make_directory("t").expect("made");
        session.write("t/k", "k").expect("written");
        session.end();
        set_mode(&session.at("t"), 0o000);
        let steps = session.plan(0);
        let left = |name: &str| {
            let path = session.at(name);
            let is_left = matches!(
                steps.iter().find(|step| step.path == path).map(|step| &step.act),
                Some(Act::Leave { why: Why::Closed, .. })
            );
            assert!(is_left, "{name}: {steps:?}");
        };
        left("t");
        left("t/k");
        let history = history(session.recorder.store()).expect("history");
        for change in history.points().iter().flat_map(|point| history.changes(point)) {
            let shown = diff(session.recorder.store(), &change).expect("a closed directory is no error");
            assert_eq!(shown.is_some(), change.path == session.at("z"), "{change:?}");
        }
        let report = session.undo();
        assert_eq!((read(&session, "z").as_str(), mode(&session.at("t"))), ("former", 0o000));
        assert_eq!(report.left.len() + report.failed.len(), 2, "{report:?}");
        // The call is still there to be undone, until that is complete.
        let point = || points(&session).into_iter().next().expect("the call");
        assert_eq!((point().undone, point().undone_partly), (false, true));
        open(&session, &["t"]);
        is_whole(&session.undo_from(newest(&session).expect("the call"), false));
        assert!(!session.at("t").exists());
        assert_eq!((point().undone, point().undone_partly), (true, false));
        assert_eq!(newest(&session), None);
    });
}

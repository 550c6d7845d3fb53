//! Git's objects, which the user's commits may need.

use std::fs;

use super::agent::Session;
use crate::plan::Why;

const OBJECT: &str = "git/objects/ab/of-the-agent";

/// The agent makes a repository.
fn make(session: &Session) {
    for name in ["git", "git/refs", "git/refs/heads", "git/objects"] {
        session.make_directory(name).expect("made");
    }
    session.write("git/HEAD", "ref: refs/heads/main\n").expect("written");
    session.write("git/index", "of the agent\n").expect("written");
    commit(session);
}

/// The agent commits.
fn commit(session: &Session) {
    session.make_directory("git/objects/ab").expect("made");
    session.write(OBJECT, "an object").expect("written");
    session.write("git/refs/heads/main", "of the agent\n").expect("written");
}

/// A session that commits in a repository of the user.
fn committed() -> Session {
    let mut session = Session::new();
    for name in ["git", "git/refs", "git/refs/heads", "git/objects"] {
        fs::create_dir(session.at(name)).expect("made");
    }
    for name in ["git/HEAD", "git/index", "git/refs/heads/main"] {
        fs::write(session.at(name), "of the user\n").expect("written");
    }
    commit(&session);
    session.end();
    std::thread::sleep(std::time::Duration::from_millis(20));
    session
}

#[test]
fn objects_go_if_the_user_has_not_used_the_repository() {
    let session = committed();
    let report = session.undo();
    assert!(report.is_complete() && !session.at("git/objects/ab").exists(), "{report:?}");
}

#[test]
fn objects_stay_if_the_user_has_used_the_repository() {
    for name in ["git/refs/heads/own", "git/refs/heads/main", "git/index"] {
        let session = committed();
        fs::write(session.at(name), "of the user, and new\n").expect("written");
        let report = session.undo();
        assert!(session.at(OBJECT).exists(), "{name}: {report:?}");
        session.redo();
        assert!(session.at(OBJECT).exists(), "{name}");
        session.undo();
        assert!(session.at(OBJECT).exists(), "{name}");
    }
}

/// Calls that come after the user's commit do not hide it, not even one that moves the reference on.
#[test]
fn objects_stay_after_later_calls() {
    for (user, agent) in [
        ("git/refs/heads/own", "other"),
        ("git/refs/heads/main", "git/refs/heads/main"),
        ("git/refs/heads/own", "git/refs/heads/own"),
    ] {
        let mut session = committed();
        fs::write(session.at(user), "of the user, and new\n").expect("written");
        std::thread::sleep(std::time::Duration::from_millis(20));
        session.write(agent, "of the agent, and newer\n").expect("written");
        session.end();
        let report = session.undo();
        assert!(session.at(OBJECT).exists(), "{user}, {agent}: {report:?}");
    }
}

/// Directories above a repository can have any names.
#[test]
fn objects_stay_below_directories_with_the_same_names() {
    for above in ["objects", "worktrees", "worktrees/objects"] {
        let mut session = Session::new();
        let at = |session: &Session, name: &str| session.at(above).join(name);
        fs::create_dir_all(at(&session, "git/refs/heads")).expect("made");
        fs::create_dir_all(at(&session, "git/objects/ab")).expect("made");
        fs::write(at(&session, "git/HEAD"), "of the user\n").expect("written");
        session.write(&format!("{above}/{OBJECT}"), "an object").expect("written");
        session.end();
        std::thread::sleep(std::time::Duration::from_millis(20));
        fs::write(at(&session, "git/refs/heads/own"), "of the user\n").expect("written");
        let report = session.undo();
        assert!(at(&session, OBJECT).exists(), "{above}: {report:?}");
    }
}

/// The user commits on top of the agent, and a later call removes what nothing leads to by then.
#[test]
fn objects_that_a_later_call_removes_come_back() {
    for is_made in [false, true] {
        let mut session = if is_made { Session::new() } else { committed() };
        if is_made {
            make(&session);
            session.end();
            std::thread::sleep(std::time::Duration::from_millis(20));
        }
        fs::write(session.at("git/objects/ab/of-the-user"), "another object").expect("written");
        fs::write(session.at("git/refs/heads/main"), "of the user, and new\n").expect("written");
        std::thread::sleep(std::time::Duration::from_millis(20));
        session.write("git/refs/heads/main", "reset\n").expect("written");
        session.remove_all("git/objects/ab").expect("removed");
        session.end();
        let report = session.undo();
        for name in [OBJECT, "git/objects/ab/of-the-user"] {
            assert!(session.at(name).exists(), "{is_made}, {name}: {report:?}");
        }
        let text = super::tree::contents(&session.project());
        assert!(text.contains("of the user, and new"), "{is_made}: {report:?}, {text}");
        assert!(!text.contains("objects/ab.portcullis"), "{is_made}: {report:?}, {text}");
    }
}

#[test]
fn a_moved_repository_of_the_agent_stays_if_the_user_has_committed_in_it() {
    let mut session = Session::new();
    make(&session);
    session.rename("git", "moved", false).expect("moved");
    session.end();
    std::thread::sleep(std::time::Duration::from_millis(20));
    fs::write(session.at("moved/refs/heads/own"), "of the user\n").expect("written");
    let report = session.undo();
    for name in ["HEAD", "refs/heads/own", "objects/ab/of-the-agent"] {
        let is_there = ["git", "moved"].iter().any(|top| session.at(top).join(name).exists());
        assert!(is_there, "{name}: {report:?}");
    }
}

#[test]
fn a_repository_of_the_agent_stays_if_the_user_has_committed_in_it() {
    for (name, stays) in [("git/refs/heads/own", true), ("git/HEAD", true), ("git/index", false)] {
        let mut session = Session::new();
        make(&session);
        session.end();
        std::thread::sleep(std::time::Duration::from_millis(20));
        fs::write(session.at(name), "of the user, and new\n").expect("written");
        let report = session.undo();
        for other in ["git/HEAD", "git/refs/heads/main", OBJECT] {
            assert_eq!(session.at(other).exists(), stays, "{name}, {other}: {report:?}");
        }
        if stays {
            assert_eq!(report.left, [(session.at("git"), Why::MadeAndChanged, None)], "{name}");
        }
    }
}

/// Only a directory that looks like a repository is one.
#[test]
fn other_directories_of_that_name_are_not_special() {
    let mut session = Session::new();
    session.make_directory("objects").expect("made");
    session.write("objects/one", "of the agent").expect("written");
    session.end();
    std::thread::sleep(std::time::Duration::from_millis(20));
    fs::write(session.at("own"), "the user's").expect("written");
    let report = session.undo();
    assert!(report.is_complete() && !session.at("objects").exists(), "{report:?}");
}

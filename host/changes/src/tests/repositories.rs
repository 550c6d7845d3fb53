//! Git's objects, which the user's commits may need.

use std::fs;

use super::agent::Session;
use crate::Bounds;
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

const PACK: &str = "git/objects/pack/all.pack";

/// A session that packs an object of the user's repository, and leaves the loose object.
fn packed() -> Session {
    let mut session = Session::new();
    for name in ["git/refs", "git/objects/pack", "git/objects/cd"] {
        fs::create_dir_all(session.at(name)).expect("made");
    }
    for name in ["git/HEAD", "git/objects/cd/of-the-user"] {
        fs::write(session.at(name), "of the user\n").expect("written");
    }
    session.write(PACK, "of the user, packed").expect("written");
    session.end();
    std::thread::sleep(std::time::Duration::from_millis(20));
    session
}

/// The user removes the loose object, as `git repack -d` does, so the agent's pack has the only copy.
#[test]
fn a_pack_stays_if_the_user_has_removed_loose_objects() {
    for is_pruned in [true, false] {
        let session = packed();
        if is_pruned {
            fs::remove_file(session.at("git/objects/cd/of-the-user")).expect("removed");
        }
        let report = session.undo();
        assert_eq!(session.at(PACK).exists(), is_pruned, "{report:?}");
    }
}

/// The same if a later call has made objects since, and both calls are taken back.
#[test]
fn a_pack_stays_if_the_user_has_removed_loose_objects_between_two_calls() {
    for is_pruned in [true, false] {
        let mut session = packed();
        if is_pruned {
            fs::remove_dir_all(session.at("git/objects/cd")).expect("removed");
            std::thread::sleep(std::time::Duration::from_millis(20));
        }
        session.make_directory("git/objects/ab").expect("made");
        session.write("git/objects/ab/one", "of the agent").expect("written");
        session.write("git/objects/ab/two", "of the agent").expect("written");
        session.end();
        let report = session.undo();
        assert_eq!(session.at(PACK).exists(), is_pruned, "{report:?}");
    }
}

/// A former pack that was too large to be kept cannot come back, so the new one stays.
#[test]
fn a_pack_stays_if_the_former_one_was_not_kept() {
    let mut session = Session::bounded(Bounds { file: 20, ..Bounds::default() });
    for name in ["git/refs", "git/objects/pack"] {
        fs::create_dir_all(session.at(name)).expect("made");
    }
    fs::write(session.at("git/HEAD"), "of the user\n").expect("written");
    fs::write(session.at("git/objects/pack/former.pack"), "of the user, and too long").expect("written");
    session.write("git/objects/pack/all.pack", "of the user").expect("written");
    session.write("git/packed-refs", "of the agent").expect("written");
    session.remove("git/objects/pack/former.pack").expect("removed");
    session.end();
    let report = session.undo();
    assert!(session.at("git/objects/pack/all.pack").exists(), "{report:?}");
    assert!(!session.at("git/packed-refs").exists(), "{report:?}");
}

/// A loose reference hides a packed one, so the former one does not come back over what the user has packed.
#[test]
fn references_that_the_user_has_packed_stay() {
    for (packed, is_user) in [("b refs/heads/main\n", true), ("b refs/heads/own\n", true), ("", false)] {
        let mut session = committed();
        session.remove("git/refs/heads/main").expect("removed");
        session.write("git/packed-refs", "a refs/heads/main\n").expect("written");
        session.end();
        std::thread::sleep(std::time::Duration::from_millis(20));
        if is_user {
            fs::write(session.at("git/packed-refs"), packed).expect("written");
        }
        let report = session.undo_newest().expect("undone");
        let has_newer = packed.contains("main");
        assert_eq!(session.at("git/refs/heads/main").exists(), !has_newer, "{packed}: {report:?}");
        assert_eq!(session.at("git/refs/heads/main.portcullis-old").exists(), has_newer, "{report:?}");
        assert_eq!(session.at("git/packed-refs").exists(), is_user, "{report:?}");
    }
}

#[test]
fn the_list_of_shallow_commits_stays_with_the_objects() {
    for (former, is_used) in [(None, true), (Some("former"), true), (None, false), (Some("former"), false)] {
        let mut session = committed();
        if let Some(former) = former {
            fs::write(session.at("git/shallow"), former).expect("written");
        }
        session.write("git/objects/ab/fetched", "an object").expect("written");
        session.write("git/shallow", "of the agent").expect("written");
        session.end();
        std::thread::sleep(std::time::Duration::from_millis(20));
        if is_used {
            fs::write(session.at("git/refs/heads/own"), "of the user\n").expect("written");
        }
        let report = session.undo_newest().expect("undone");
        let text = fs::read_to_string(session.at("git/shallow")).ok();
        assert_eq!(text.as_deref(), if is_used { Some("of the agent") } else { former }, "{report:?}");
    }
}

/// The repository of a submodule is inside that of the project, which the agent has changed as well.
#[test]
fn objects_of_submodules_stay() {
    for is_made in [false, true] {
        let mut session = committed();
        let at = |name: &str| format!("git/modules/sub/{name}");
        if !is_made {
            fs::create_dir_all(session.at(&at("refs/heads"))).expect("made");
            fs::create_dir_all(session.at(&at("objects/ab"))).expect("made");
            fs::write(session.at(&at("HEAD")), "of the user\n").expect("written");
        } else {
            for name in ["git/modules", "git/modules/sub"] {
                session.make_directory(name).expect("made");
            }
            for name in ["refs", "refs/heads", "objects", "objects/ab"] {
                session.make_directory(&at(name)).expect("made");
            }
            session.write(&at("HEAD"), "of the agent\n").expect("written");
        }
        session.write(&at("objects/ab/of-the-agent"), "an object").expect("written");
        session.write("git/objects/ab/other", "another object").expect("written");
        session.end();
        std::thread::sleep(std::time::Duration::from_millis(20));
        fs::write(session.at(&at("refs/heads/own")), "of the user\n").expect("written");
        let report = session.undo_newest().expect("undone");
        for name in ["HEAD", "objects/ab/of-the-agent", "refs/heads/own"] {
            assert!(session.at(&at(name)).exists(), "{is_made}, {name}: {report:?}");
        }
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
    for (name, stays) in [
        ("git/refs/heads/own", true),
        ("git/HEAD", true),
        ("git/objects/ab/staged-by-the-user", true),
        ("git/index", false),
    ] {
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

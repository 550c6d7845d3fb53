//! A session that was killed while a command ran: what the user changes afterwards is kept.

use std::fs::{self, File, FileTimes};
use std::os::unix::fs::symlink;
use std::thread::sleep;
use std::time::{Duration, SystemTime};

use super::agent::Session;
use super::tree::contents;

const FORMER: &str = "former";

/// A session whose command does not end.
fn killed() -> Session {
    let session = Session::new();
    for name in ["a", "b", "c"] {
        fs::write(session.at(name), FORMER).expect("a file");
    }
    for name in ["a", "b", "c", "new"] {
        session.write(name, "of the agent").expect("written");
    }
    session
}

#[test]
fn what_the_user_puts_there_afterwards_stays() {
    let session = killed();
    sleep(Duration::from_millis(2_200));
    for (name, at) in [("mine", "a"), ("mine-too", "new")] {
        let file = File::create(session.at(name)).expect("a file");
        fs::write(session.at(name), name).expect("written");
        let old = SystemTime::now() - Duration::from_secs(86_400);
        file.set_times(FileTimes::new().set_modified(old)).expect("set");
        fs::rename(session.at(name), session.at(at)).expect("moved");
    }
    fs::remove_file(session.at("b")).expect("removed");
    symlink("of-the-user", session.at("b")).expect("linked");
    let report = session.undo();
    assert_eq!(fs::read_to_string(session.at("c")).expect("read"), FORMER, "{report:?}");
    assert_eq!(fs::read_to_string(session.at("a")).expect("read"), "mine", "{report:?}");
    assert_eq!(fs::read_to_string(session.at("new")).expect("read"), "mine-too", "{report:?}");
    assert_eq!(fs::read_link(session.at("b")).expect("a link").as_os_str(), "of-the-user", "{report:?}");
    assert!(contents(&session.project()).matches(FORMER).count() >= 3, "{report:?}");
}

/// The control: without the user, everything comes back.
#[test]
fn what_the_command_had_changed_comes_back() {
    let session = killed();
    let report = session.undo();
    assert!(report.is_complete() && !session.at("new").exists(), "{report:?}");
    for name in ["a", "b", "c"] {
        assert_eq!(fs::read_to_string(session.at(name)).expect("read"), FORMER, "{report:?}");
    }
}

use std::time::Duration;

use serde_json::json;

use super::*;
use crate::follow::Follower;
use crate::log::Log;
use crate::read::Trouble;

fn verdict(at_ms: u64, script: &str) -> VerdictLine {
    let request = json!({ "script": script });
    VerdictLine { at_ms, request, effect: "allow".to_owned(), ..VerdictLine::default() }
}

fn outcome(at_ms: u64, verdict: u64) -> OutcomeLine {
    OutcomeLine { at_ms, verdict, result: "done".to_owned(), ..OutcomeLine::default() }
}

/// Sets a log's time of writing to that of its records.
fn set_modified(log: &Log, at_ms: u64) {
    let file = std::fs::OpenOptions::new().append(true).open(log.path()).unwrap();
    file.set_modified(SystemTime::UNIX_EPOCH + Duration::from_millis(at_ms)).unwrap();
}

fn world() -> (tempfile::TempDir, Directory) {
    let home = tempfile::tempdir().unwrap();
    let directory = Directory::new(&home.path().join("audit"));
    (home, directory)
}

fn times(lines: &[Result<Placed, Trouble>]) -> Vec<u64> {
    lines.iter().map(|line| line.as_ref().map_or(0, Placed::at_ms)).collect()
}

#[test]
fn a_missing_directory_has_no_logs() {
    let (_home, directory) = world();
    assert!(directory.files().unwrap().is_empty());
    assert!(matches!(directory.decision("LAST"), Err(FindError::Nothing { .. })));
    assert!(Follower::begin(&directory, 5).unwrap().1.is_empty());
}

#[test]
fn decisions_are_found_by_place() {
    let (_home, directory) = world();
    let one = Log::open(&directory.path, "abcd").unwrap();
    let two = Log::open(&directory.path, "abff").unwrap();
    one.verdict(verdict(100, "one")).unwrap();
    two.verdict(verdict(200, "two")).unwrap();
    one.verdict(verdict(150, "three")).unwrap();
    one.outcome(outcome(300, 1)).unwrap();
    set_modified(&one, 300);
    set_modified(&two, 200);

    let script = |wanted: &str| {
        let decided = directory.decision(wanted).unwrap();
        let script = decided.verdict.request["script"].as_str().unwrap().to_owned();
        (script, decided.sequence, decided.outcome.is_some())
    };
    // The last written file does not contain the last decision.
    assert_eq!(script("LAST"), ("two".to_owned(), 1, false));
    assert_eq!(script("last"), ("two".to_owned(), 1, false));
    assert_eq!(script("abc:1"), ("one".to_owned(), 1, true));
    assert_eq!(script("abcd:3"), ("one".to_owned(), 1, true));
    assert_eq!(script("abcd:2"), ("three".to_owned(), 2, false));
    assert!(matches!(directory.decision("ab:1"), Err(FindError::ManyLogs { count: 2, .. })));
    assert!(matches!(directory.decision("x:1"), Err(FindError::NoLog { .. })));
    assert!(matches!(directory.decision("abcd:9"), Err(FindError::NoDecision { .. })));
    for wrong in ["", "abcd", ":1", "abcd:x", "abcd:-1", "../abcd:1x"] {
        assert!(matches!(directory.decision(wrong), Err(FindError::NoPlace { .. })), "{wrong}");
    }
}

#[test]
fn links_and_other_files_are_no_logs() {
    let (home, directory) = world();
    let log = Log::open(&directory.path, "real").unwrap();
    log.verdict(verdict(1, "x")).unwrap();
    std::os::unix::fs::symlink(log.path(), directory.path.join("link.jsonl")).unwrap();
    std::fs::create_dir(directory.path.join("dir.jsonl")).unwrap();
    std::fs::write(directory.path.join("notes.txt"), "x").unwrap();
    let names: Vec<_> = directory.files().unwrap().into_iter().map(|file| file.name).collect();
    assert_eq!(names, ["real"]);
    drop(home);
}

#[test]
fn the_newest_of_all_logs_and_then_what_is_added() {
    let (_home, directory) = world();
    let logs: Vec<Log> = (0..3).map(|n| Log::open(&directory.path, &format!("s{n}")).unwrap()).collect();
    for (place, log) in logs.iter().enumerate() {
        let start = [100, 300, 200][place];
        for at in start..start + 5 {
            log.verdict(verdict(at, "x")).unwrap();
        }
        set_modified(log, start + 4);
    }
    let (mut follower, newest) = Follower::begin(&directory, 7).unwrap();
    assert_eq!(times(&newest), [203, 204, 300, 301, 302, 303, 304]);
    assert!(follower.poll().unwrap().is_empty());

    // Also from a log that was skipped, and from a new session.
    logs[0].verdict(verdict(401, "y")).unwrap();
    logs[1].verdict(verdict(400, "y")).unwrap();
    Log::open(&directory.path, "new").unwrap().verdict(verdict(402, "y")).unwrap();
    assert_eq!(times(&follower.poll().unwrap()), [400, 401, 402]);
    assert!(follower.poll().unwrap().is_empty());
    assert!(Follower::begin(&directory, 0).unwrap().1.is_empty());
}

#[test]
fn a_line_that_is_being_written_is_waited_for() {
    let (_home, directory) = world();
    let log = Log::open(&directory.path, "s").unwrap();
    log.verdict(verdict(1, "one")).unwrap();
    log.verdict(verdict(2, "two")).unwrap();
    let whole = std::fs::read(log.path()).unwrap();
    std::fs::write(log.path(), &whole[..whole.len() - 20]).unwrap();
    let (mut follower, newest) = Follower::begin(&directory, 10).unwrap();
    assert_eq!(times(&newest), [1]);
    assert!(follower.poll().unwrap().is_empty());
    std::fs::write(log.path(), &whole).unwrap();
    assert_eq!(times(&follower.poll().unwrap()), [2]);
}

#[test]
fn a_bad_line_is_told_where_it_stands() {
    let (_home, directory) = world();
    let log = Log::open(&directory.path, "s").unwrap();
    log.verdict(verdict(1, "one")).unwrap();
    let mut text = std::fs::read_to_string(log.path()).unwrap();
    text.push_str("nonsense\n");
    std::fs::write(log.path(), text).unwrap();
    log.verdict(verdict(2, "two")).unwrap();
    let (_, newest) = Follower::begin(&directory, 10).unwrap();
    assert_eq!(times(&newest), [1, 0, 2]);
    let Err(Trouble { error: ReadError::Malformed { number, .. }, .. }) = &newest[1] else { panic!() };
    assert_eq!(*number, 2);
}

#[test]
fn a_log_in_several_files_is_one_log() {
    let (_home, directory) = world();
    let log = Log::open(&directory.path, "s").unwrap();
    log.verdict(verdict(1, "one")).unwrap();
    log.verdict(verdict(2, "two")).unwrap();
    log.outcome(outcome(3, 1)).unwrap();
    let text = std::fs::read_to_string(log.path()).unwrap();
    let (one, two) = text.split_once('\n').unwrap();
    std::fs::write(log.path(), format!("{one}\n")).unwrap();
    std::fs::write(log.path().with_file_name("s~2.jsonl"), two).unwrap();

    let files = directory.files().unwrap();
    assert_eq!(files.iter().map(|file| file.name.as_str()).collect::<Vec<_>>(), ["s"]);
    let first = directory.decision("s:1").unwrap();
    assert_eq!(first.outcome.unwrap().result, "done", "its outcome stands in the next file");
    assert_eq!(directory.decision("LAST").unwrap().sequence, 2);
    assert_eq!(directory.recent("s", 5).unwrap().len(), 2);
    let (mut follower, newest) = Follower::begin(&directory, 2).unwrap();
    assert_eq!(times(&newest), [2, 3]);
    std::fs::write(log.path().with_file_name("s~3.jsonl"), format!("{one}\n")).unwrap();
    assert_eq!(times(&follower.poll().unwrap()), [1]);
}

//! Missing lines at the end of a log are detected.
//!
//! The control of each case is the chain alone, which does not detect them.

use std::fs;

use super::*;
use crate::directory::Directory;
use crate::read::{End, Intact, ReadError, Trouble, verify};

/// Returns a log of six lines, with two lines per file if `full_at` is small.
fn written(full_at: u64) -> (tempfile::TempDir, Log) {
    let home = tempfile::tempdir().unwrap();
    let mut log = Log::open(home.path(), "s").unwrap();
    log.full_at = full_at;
    for number in 0..6 {
        let request = json!({ "script": format!("x{number}") });
        log.verdict(VerdictLine { request, effect: "allow".to_owned(), ..VerdictLine::default() }).unwrap();
    }
    (home, log)
}

fn head(log: &Log) -> PathBuf {
    crate::head::path(log.path().parent().unwrap(), "s")
}

fn lines(path: &Path) -> Vec<String> {
    fs::read_to_string(path).unwrap().split_inclusive('\n').map(str::to_owned).collect()
}

/// Returns the result of [`verify`] for the lines without a head.
///
/// Older logs have no head, and no mark for it in the first line.
fn chain_alone(log: &Log) -> Result<Intact, Trouble> {
    let apart = tempfile::tempdir().unwrap();
    let mut previous = String::new();
    let mut text = String::new();
    for line in lines(log.path()) {
        let mut value: Value = serde_json::from_str(&line).unwrap();
        let members = value.as_object_mut().unwrap();
        members.remove("head");
        members.insert("previous".to_owned(), previous.into());
        let line = value.to_string();
        previous = sha256(line.as_bytes());
        text += &format!("{line}\n");
    }
    let copy = apart.path().join("s.jsonl");
    fs::write(&copy, text).unwrap();
    verify(&copy)
}

#[test]
fn a_whole_log_is_intact_to_its_end() {
    for full_at in [u64::MAX, 1] {
        let (_home, log) = written(full_at);
        assert_eq!(verify(log.path()).unwrap(), Intact { lines: 6, end: End::Checked });
    }
    let home = tempfile::tempdir().unwrap();
    let log = Log::open(home.path(), "s").unwrap();
    assert_eq!(verify(log.path()).unwrap(), Intact { lines: 0, end: End::Checked });
}

#[test]
fn lines_cut_at_the_end_are_missed() {
    for kept in 0..6 {
        let (_home, log) = written(u64::MAX);
        fs::write(log.path(), lines(log.path())[..kept].concat()).unwrap();
        let error = verify(log.path()).unwrap_err().error;
        let expected = u64::try_from(kept).unwrap();
        assert!(matches!(error, ReadError::Cut { found, written: 6 } if found == expected), "{error}");
        let control = chain_alone(&log).unwrap();
        assert_eq!(control, Intact { lines: expected, end: End::Unknown }, "the chain alone finds nothing");
    }
}

#[test]
fn a_cut_within_a_line_is_told_from_a_host_that_was_stopped() {
    let (_home, log) = written(u64::MAX);
    let all = fs::read_to_string(log.path()).unwrap();
    fs::write(log.path(), all.get(..all.len() - 5).unwrap()).unwrap();
    let error = verify(log.path()).unwrap_err().error;
    assert!(matches!(error, ReadError::Cut { found: 5, written: 6 }), "{error}");
    // An incomplete line is not a missing end.
    fs::write(log.path(), format!("{all}{{\"version\":1")).unwrap();
    let error = verify(log.path()).unwrap_err().error;
    assert!(matches!(error, ReadError::Partial { number: 7 }), "{error}");
}

#[test]
fn a_host_that_is_stopped_before_it_records_the_end_leaves_an_intact_log() {
    let (_home, log) = written(u64::MAX);
    let before = fs::read(head(&log)).unwrap();
    log.outcome(OutcomeLine { verdict: 6, result: "done".to_owned(), ..OutcomeLine::default() }).unwrap();
    fs::write(head(&log), before).unwrap();
    assert_eq!(verify(log.path()).unwrap(), Intact { lines: 7, end: End::Checked });
}

#[test]
fn an_end_that_was_replaced_is_found() {
    let (home, log) = written(u64::MAX);
    let text = lines(log.path());
    // The same number of lines, in a log that differs after the fourth.
    let other = Log::open(&home.path().join("other"), "s").unwrap();
    for number in 0..6 {
        let request = json!({ "script": format!("x{}", if number < 4 { number } else { 9 }) });
        other.verdict(VerdictLine { request, effect: "allow".to_owned(), ..VerdictLine::default() }).unwrap();
    }
    assert_eq!(lines(other.path())[..4], text[..4]);
    fs::copy(other.path(), log.path()).unwrap();
    let error = verify(log.path()).unwrap_err().error;
    assert!(matches!(error, ReadError::Replaced { number: 6 }), "{error}");
    assert_eq!(chain_alone(&log).unwrap().lines, 6);
}

#[test]
fn a_removed_last_file_and_a_removed_log_are_missed() {
    let (home, log) = written(1);
    let directory = Directory::new(home.path());
    assert_eq!(directory.missing().unwrap(), []);
    fs::remove_file(home.path().join("s~6.jsonl")).unwrap();
    let error = verify(log.path()).unwrap_err().error;
    assert!(matches!(error, ReadError::Cut { found: 5, written: 6 }), "{error}");
    for number in 2..6 {
        fs::remove_file(home.path().join(format!("s~{number}.jsonl"))).unwrap();
    }
    fs::remove_file(log.path()).unwrap();
    assert_eq!(directory.files().unwrap(), []);
    let missing = directory.missing().unwrap();
    assert_eq!(
        missing.iter().map(|log| (log.path.as_path(), log.lines)).collect::<Vec<_>>(),
        [(log.path(), 6)]
    );
    // The same id is not reused for another log, which would cover up the removal.
    let again = Log::open(home.path(), "s").unwrap();
    assert_eq!(again.path(), home.path().join("s.2.jsonl"));
    assert!(!home.path().join("s.jsonl").exists());
    fs::remove_file(head(&log)).unwrap();
    assert_eq!(directory.missing().unwrap(), [], "so the user takes a removed log off the list");
}

#[test]
fn a_missing_or_changed_record_of_the_end_is_told() {
    let (_home, log) = written(u64::MAX);
    let record = fs::read_to_string(head(&log)).unwrap();
    for bad in ["", "x\n", record.get(1..).unwrap(), &record.replace('\n', "")] {
        fs::write(head(&log), bad).unwrap();
        assert!(matches!(verify(log.path()).unwrap_err().error, ReadError::Head { .. }), "{bad:?}");
    }
    fs::remove_file(head(&log)).unwrap();
    assert!(matches!(verify(log.path()).unwrap_err().error, ReadError::NoHead { .. }));
    // Removing the mark from the first line breaks the chain.
    let text = fs::read_to_string(log.path()).unwrap().replacen("\"head\":true,", "", 1);
    fs::write(log.path(), text).unwrap();
    assert!(matches!(verify(log.path()).unwrap_err().error, ReadError::Chain { number: 2 }));
}

#[test]
fn two_sessions_at_once_have_ends_of_their_own() {
    let home = tempfile::tempdir().unwrap();
    let logs = [0; 4].map(|_| Log::open(home.path(), "s").unwrap());
    std::thread::scope(|scope| {
        for (place, log) in logs.iter().enumerate() {
            scope.spawn(move || {
                for _ in 0..50 * (place + 1) {
                    log.verdict(VerdictLine::default()).unwrap();
                    // A log can be verified while it is written.
                    assert_eq!(verify(log.path()).unwrap().end, End::Checked);
                }
            });
        }
    });
    let lines: Vec<_> = logs.iter().map(|log| verify(log.path()).unwrap().lines).collect();
    assert_eq!(lines, [50, 100, 150, 200]);
}

#[test]
fn a_line_whose_end_cannot_be_recorded_permits_nothing() {
    let (_home, log) = written(u64::MAX);
    {
        let mut state = log.state.lock().unwrap();
        let read_only = rustix::fs::open(head(&log), OFlags::RDONLY, Mode::empty()).unwrap();
        state.head = HeadFile::new(read_only);
    }
    assert!(matches!(log.verdict(VerdictLine::default()), Err(LogError::Write { .. })));
    assert_eq!(verify(log.path()).unwrap().lines, 7, "the line is there, and the chain goes on");
}

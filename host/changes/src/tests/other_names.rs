//! A file with the names `f` and `g`: every first call, with every edit of the user, and every second call.
//!
//! A normal run does a sample; with `PORTCULLIS_UNDO_ROUNDS`, all of them run.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread::{scope, sleep};
use std::time::Duration;

use rustix::fs::{XattrFlags, lgetxattr, setxattr};

use super::agent::Session;
use super::tree::tree;
use crate::undo::{Report, history};

type Call = (&'static str, fn(&Session));
type Edit = (&'static str, fn(&Session, &Path));

/// Sessions mostly wait, so several run at the same time.
const AT_ONCE: usize = 8;
/// One of this number of cases is in a normal run.
const SAMPLE: usize = 11;

/// Ignores an error: an earlier call or the user may have removed the name.
fn done<T, E>(_may_fail: Result<T, E>) {}

fn replace(session: &Session, name: &str, line: &str) {
    let Ok(text) = fs::read_to_string(session.at(name)) else { return };
    done(session.write("new", &(line.to_owned() + &text)));
    done(session.rename("new", name, false));
}

const FIRST: [Call; 13] = [
    ("echo A1 > f; sed -i f", |session| {
        done(session.write("f", "A1\n"));
        replace(session, "f", "");
    }),
    ("touch -d @5 f", |session| done(session.time("f", 5))),
    ("echo A1 >> f", |session| done(session.append("f", "A1\n"))),
    ("sed -i A1 f", |session| replace(session, "f", "A1\n")),
    ("rm f", |session| done(session.remove("f"))),
    ("echo A1 > new; mv new f", |session| {
        done(session.write("new", "A1\n"));
        done(session.rename("new", "f", false));
    }),
    ("mv f h", |session| done(session.rename("f", "h", false))),
    ("chmod 700 f", |session| done(session.mode("f", 0o700))),
    ("ln f k", |session| done(session.hard_link("f", "k"))),
    ("rm f; ln g f", |session| {
        done(session.remove("f"));
        done(session.hard_link("g", "f"));
    }),
    ("mv f h; echo A1 >> h", |session| {
        done(session.rename("f", "h", false));
        done(session.append("h", "A1\n"));
    }),
    ("rm f; echo A1 > f", |session| {
        done(session.remove("f"));
        done(session.write("f", "A1\n"));
    }),
    ("ln f k; rm f", |session| {
        done(session.hard_link("f", "k"));
        done(session.remove("f"));
    }),
];

fn insert(path: &Path) {
    let Ok(text) = fs::read_to_string(path) else { return };
    fs::write(path, "U\n".to_owned() + &text).expect("written");
}

fn exchange(path: &Path) {
    let Ok(text) = fs::read_to_string(path) else { return };
    let mode = fs::metadata(path).expect("there").permissions();
    let new = path.with_extension("new");
    fs::write(&new, "U\n".to_owned() + &text).expect("written");
    fs::set_permissions(&new, mode).expect("set");
    fs::rename(&new, path).expect("moved");
}

const EDITS: [Edit; 11] = [
    ("sed -i U g", |_, project| exchange(&project.join("g"))),
    ("U in g", |_, project| insert(&project.join("g"))),
    ("chmod 604 g", |_, project| {
        fs::set_permissions(project.join("g"), Permissions::from_mode(0o604)).expect("set")
    }),
    ("setfattr g", |_, project| {
        setxattr(project.join("g"), "user.u", b"U", XattrFlags::empty()).expect("set")
    }),
    ("ln g ul", |_, project| fs::hard_link(project.join("g"), project.join("ul")).expect("linked")),
    ("mv g um", |_, project| fs::rename(project.join("g"), project.join("um")).expect("moved")),
    ("rm g", |_, project| fs::remove_file(project.join("g")).expect("removed")),
    ("U in f", |_, project| insert(&project.join("f"))),
    ("sed -i U f", |_, project| exchange(&project.join("f"))),
    ("ln f ul", |_, project| done(fs::hard_link(project.join("f"), project.join("ul")))),
    ("rm f", |_, project| done(fs::remove_file(project.join("f")))),
];

const SECOND: [Call; 12] = [
    ("echo A2 > f; sed -i f", |session| {
        done(session.write("f", "A2\n"));
        replace(session, "f", "");
    }),
    ("ln -f g f", |session| {
        done(session.hard_link("g", "other"));
        done(session.rename("other", "f", false));
        done(session.remove("other"));
    }),
    ("echo A2 >> g", |session| done(session.append("g", "A2\n"))),
    ("rm g", |session| done(session.remove("g"))),
    ("sed -i A2 g", |session| replace(session, "g", "A2\n")),
    ("chmod 750 g", |session| done(session.mode("g", 0o750))),
    ("mv g m", |session| done(session.rename("g", "m", false))),
    ("echo A2 > new; mv new g", |session| {
        done(session.write("new", "A2\n"));
        done(session.rename("new", "g", false));
    }),
    ("echo A2 >> f", |session| done(session.append("f", "A2\n"))),
    ("rm f", |session| done(session.remove("f"))),
    ("echo A2 >> ul", |session| done(session.append("ul", "A2\n"))),
    ("nothing", |_| {}),
];

/// The kinds of changes of the user that the project still has, and the names of files with changes of the agent.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
struct Marks {
    user: Vec<&'static str>,
    agent: Vec<String>,
}

fn marks(project: &Path) -> Marks {
    let mut marks = Marks::default();
    for entry in fs::read_dir(project).expect("read") {
        let path = entry.expect("entry").path();
        let name = path.file_name().expect("a name").to_string_lossy().into_owned();
        let text = fs::read_to_string(&path).expect("text");
        let mode = fs::metadata(&path).expect("there").permissions().mode() & 0o777;
        let has_attribute = lgetxattr(&path, "user.u", &mut [0_u8; 8]).is_ok();
        let has = |line: &str| text.lines().any(|other| other == line);
        let of_user = [("text", has("U")), ("mode", mode == 0o604), ("attribute", has_attribute)];
        marks.user.extend(of_user.iter().filter(|(_, has)| *has).map(|(what, _)| *what));
        let of_agent = [has("A1"), has("A2"), mode == 0o700, mode == 0o750];
        marks.agent.extend(of_agent.contains(&true).then_some(name));
    }
    marks
}

/// Checks an undo of everything.
fn check(edited: &Marks, edit: &str, project: &Path, report: &Report) -> Result<(), String> {
    let now = marks(project);
    let is_said = !report.is_complete();
    let lost = edited.user.iter().find(|what| !now.user.contains(what) && (**what == "text" || !is_said));
    if let Some(lost) = lost {
        return Err(format!("lost {lost}"));
    }
    // A file that the user made of one of the agent's is the user's; so is a link.
    let is_of_user = |name: &String| {
        let own = if edit.starts_with("sed -i U f") { "f" } else { "g" };
        name == "ul" || edit.starts_with("sed") && [own, "m"].contains(&name.as_str())
    };
    if let Some(name) = now.agent.iter().find(|name| !is_said && !is_of_user(name)) {
        return Err(format!("{name} is the agent's"));
    }
    Ok(())
}

/// A session with a file that has the names `f` and `g`.
fn linked() -> Session {
    let session = Session::new();
    let lines: String = (1..300).map(|line| format!("{line}\n")).collect();
    fs::write(session.at("f"), lines).expect("written");
    fs::hard_link(session.at("f"), session.at("g")).expect("linked");
    session
}

fn case(number: usize) -> Result<(), String> {
    let first = FIRST[number % FIRST.len()];
    let edit = EDITS[number / FIRST.len() % EDITS.len()];
    let second = SECOND[number / FIRST.len() / EDITS.len()];
    for is_last_alone in [false, true] {
        let mut session = linked();
        let project = session.project();
        let tick = || sleep(Duration::from_millis(12));
        tick();
        first.1(&session);
        session.end();
        tick();
        (edit.1)(&session, &project);
        let edited = (marks(&project), tree(&project));
        tick();
        let position = history(session.recorder.store()).expect("history").entries().len();
        second.1(&session);
        session.end();
        tick();
        let fail = |what: String, report: &Report| {
            format!("{} | {} | {}: {what}: {report:?}\n    {:?}", first.0, edit.0, second.0, marks(&project))
        };
        if is_last_alone {
            let report = session.undo_from(position, false);
            let is_same = edited.1 == tree(&project);
            if !is_same || !report.is_complete() {
                return Err(fail("the second call alone".to_owned(), &report));
            }
        }
        let report = session.undo();
        check(&edited.0, edit.0, &project, &report).map_err(|what| fail(what, &report))?;
    }
    Ok(())
}

/// Runs every case, or a sample of them, and collects the faults.
fn faults(number: usize, case: fn(usize) -> Result<(), String>) -> Vec<String> {
    let step = if std::env::var_os("PORTCULLIS_UNDO_ROUNDS").is_some() { 1 } else { SAMPLE };
    let next = AtomicUsize::new(0);
    scope(|scope| {
        let run = || {
            let numbers = std::iter::from_fn(|| Some(next.fetch_add(step, Ordering::Relaxed)));
            let faults = numbers.take_while(|at| *at < number).filter_map(|at| case(at).err());
            faults.collect::<Vec<_>>()
        };
        let threads: Vec<_> = (0..AT_ONCE).map(|_| scope.spawn(run)).collect();
        threads.into_iter().flat_map(|thread| thread.join().expect("no panic")).collect()
    })
}

#[test]
fn edits_by_other_names_are_kept_and_calls_taken_back() {
    let number = FIRST.len() * EDITS.len() * SECOND.len();
    let faults = faults(number, case);
    assert!(faults.is_empty(), "{} of {number}:\n{}", faults.len(), faults.join("\n"));
}

fn case_without_edits(number: usize) -> Result<(), String> {
    let first = FIRST[number % FIRST.len()];
    let third = FIRST[number / FIRST.len() % FIRST.len()];
    let second = SECOND[number / FIRST.len() / FIRST.len()];
    let mut session = linked();
    let project = session.project();
    let mut trees = vec![tree(&project)];
    let mut starts = Vec::new();
    for call in [first, second, third] {
        starts.push(history(session.recorder.store()).expect("history").entries().len());
        call.1(&session);
        session.end();
        trees.push(tree(&project));
    }
    let last = starts[2];
    // Undo of all, redo, undo of the last call, undo of all.
    for (step, wanted) in [(0, 0), (1, 3), (2, 2), (3, 0)] {
        let report = match step {
            0 | 3 => session.undo(),
            1 => session.redo(),
            _ => session.undo_from(last, false),
        };
        let now = tree(&project);
        if now != trees[wanted] || !report.is_complete() {
            let calls = [first.0, second.0, third.0];
            let is_same = now == trees[wanted];
            return Err(format!(
                "{calls:?}: step {step}, same: {is_same}: {report:?}\n    {:?}",
                marks(&project)
            ));
        }
    }
    Ok(())
}

#[test]
fn calls_by_several_names_are_taken_back_and_given_back() {
    let number = FIRST.len() * FIRST.len() * SECOND.len();
    let faults = faults(number, case_without_edits);
    assert!(faults.is_empty(), "{} of {number}:\n{}", faults.len(), faults.join("\n"));
}

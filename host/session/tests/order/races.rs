//! The races, each with a control in which the old order loses it.

use std::fs;
use std::io::{BufRead as _, BufReader, PipeReader, PipeWriter, Write as _, pipe};
use std::time::Instant;

use portcullis_decision::request::Origin;
use portcullis_each_user::{Test, cannot_run};
use portcullis_session::{Cancel, CommandCall, FileFailure, Program, Session};

use crate::kinds::{Content, KINDS, Kind};
use crate::scene::{Scene, gate};

pub(crate) const TESTS: &[Test] = &[
    ("order::no_tool_writes_a_file_that_a_command_makes_harmful", within_one_session),
    ("order::nor_one_that_a_command_of_another_session_makes_harmful", between_two_sessions),
];

/// Tries of each kind; the variable sets another number, for a long run.
const TRIES: usize = 12;
const TRIES_VARIABLE: &str = "PORTCULLIS_RACE_TRIES";
/// Tries those kinds only whose names contain the value of this variable.
const KIND_VARIABLE: &str = "PORTCULLIS_RACE_KIND";
/// How many tries the control may take until it has lost once.
const TRIES_OF_CONTROL: usize = 4_000;
/// How long files are, in bytes, by turns.
const LENGTHS: [usize; 4] = [100, 4 << 10, 1 << 10, 16 << 10];
/// Now and then a file is as long as is judged by its content, or longer where nobody judges it by that.
const LONG: usize = 1 << 20;
const LONGEST: usize = 8 << 20;
const NOW_AND_THEN: usize = 64;
/// After how many tries the user's git is run in any case.
const GIT_RUNS_EVERY: usize = 16;
/// Where the user runs it.
const RUN_IN: [&str; 4] = [".", "q", "sub", "X"];
/// All that a try leaves behind.
const LEFT_BEHIND: [&str; 8] = ["w", "X", ".git/modules", ".pi", ".hg", ".cargo", ".yarn", "q/.git"];

fn within_one_session() {
    contest(Attacker::SameSession);
}

fn between_two_sessions() {
    contest(Attacker::OtherSession);
}

/// Whose command attacks the tool.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Attacker {
    SameSession,
    OtherSession,
}

/// When a race ends.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Until {
    FirstLoss,
    LastTry,
}

/// What came of a tool's writes.
#[derive(Default)]
struct Count {
    done: usize,
    denied: usize,
    failed: usize,
}

fn contest(attacker: Attacker) {
    let Some(scene) = Scene::new() else { return cannot_run("a C compiler (`cc`)") };
    let (own, other) = (scene.session("one"), scene.session("other"));
    let attacking = if attacker == Attacker::SameSession { &own } else { &other };
    let tries = std::env::var(TRIES_VARIABLE).ok().and_then(|tries| tries.parse().ok()).unwrap_or(TRIES);
    let old = gate();
    let wanted = std::env::var(KIND_VARIABLE).unwrap_or_default();
    for kind in KINDS.iter().filter(|kind| kind.name.contains(&wanted)) {
        let race = Race { scene: &scene, session: attacking, kind };
        let text = content(&scene, kind, longest(kind));
        let (tried, lost) = race.run((TRIES_OF_CONTROL, Until::FirstLoss), |_| {
            // What it says does not matter: what it leaves behind does.
            drop(scene.write_in_old_order(&old, kind.writes, &text));
        });
        assert!(lost > 0, "control, {}: the old order never lost in {tried} tries", kind.name);
        println!("    {}: the old order lost after {tried} tries", kind.name);
        let (mut count, began) = (Count::default(), Instant::now());
        let (tried, lost) = race.run((tries, Until::LastTry), |number| {
            let written = scene.write(&own, kind.writes, &content(&scene, kind, length(kind, number)));
            match written {
                Ok(()) => count.done += 1,
                Err(FileFailure::Denied(_)) => count.denied += 1,
                Err(FileFailure::File(_)) => count.failed += 1,
            }
        });
        let Count { done, denied, failed } = count;
        let seconds = began.elapsed().as_secs();
        println!(
            "        {lost} of {tried} lost: {done} done, {denied} denied, {failed} failed, in {seconds} s"
        );
        assert_eq!(lost, 0, "{}", kind.name);
    }
    own.close();
    other.close();
}

struct Race<'a> {
    scene: &'a Scene,
    session: &'a Session,
    kind: &'a Kind,
}

impl Race<'_> {
    /// Has `write` called under attack; returns how often, and how many times what it wrote became harmful.
    fn run(&self, (most, until): (usize, Until), mut write: impl FnMut(usize)) -> (usize, usize) {
        let (theirs, mut go_on) = pipe().expect("a pipe");
        let (said, their_output) = pipe().expect("a pipe");
        let (mut tried, mut lost) = (0, 0);
        std::thread::scope(|scope| {
            let cancel = Cancel::default();
            let errors = their_output.try_clone().expect("a copy").into();
            let stdio = [theirs.into(), their_output.into(), errors];
            let started = self.session.start_command(self.call(most), stdio, &cancel).expect("it starts");
            scope.spawn(move || self.session.finish_command(&started));
            let mut said = Said(BufReader::new(said));
            while tried < most && said.is("r") {
                write(tried);
                assert!(said.is("a"), "the attack goes on");
                tried += 1;
                lost += usize::from(self.is_lost(tried));
                self.clear();
                if until == Until::FirstLoss && lost > 0 {
                    break;
                }
                go_on.write_all(b"\n").expect("the attack goes on");
            }
            cancel.cancel();
            drop::<(Said, PipeWriter)>((said, go_on));
        });
        self.clear();
        (tried, lost)
    }

    fn call(&self, tries: usize) -> CommandCall<'_> {
        let Kind { prepares, watches, does, .. } = self.kind;
        let tries = tries.to_string();
        let words = [&self.scene.attack.to_string_lossy(), tries.as_str(), prepares, watches];
        let argv = words.into_iter().chain(does.iter().copied()).map(Into::into).collect();
        CommandCall {
            program: Program::Argv(argv),
            cwd: &self.scene.project,
            environment: Vec::new(),
            timeout: None,
            origin: Origin::Agent,
            call: None,
        }
    }

    /// Whether the file stands where it does harm, or the user's git has run what it names.
    fn is_lost(&self, tried: usize) -> bool {
        let path = self.scene.project.join(self.kind.harms);
        let is_harmful = fs::read_to_string(&path).is_ok_and(|text| self.scene.is_harmful(&path, &text));
        if is_harmful || tried % GIT_RUNS_EVERY == 1 {
            for directory in RUN_IN {
                self.scene.git(&["-C", directory, "status"]);
            }
        }
        let has_run = fs::remove_file(self.scene.mark()).is_ok();
        has_run || is_harmful
    }

    fn clear(&self) {
        for name in LEFT_BEHIND {
            // Most of it is not there.
            drop(fs::remove_dir_all(self.scene.project.join(name)));
        }
    }
}

/// What the attack says.
struct Said(BufReader<PipeReader>);

impl Said {
    fn is(&mut self, word: &str) -> bool {
        let mut line = String::new();
        self.0.read_line(&mut line).expect("read");
        line.trim() == word
    }
}

fn longest(kind: &Kind) -> usize {
    if matches!(kind.content, Content::Any) { LONGEST } else { LONG }
}

fn length(kind: &Kind, number: usize) -> usize {
    if number % NOW_AND_THEN == NOW_AND_THEN / 2 {
        return longest(kind);
    }
    // By turns for those tries that begin with an event and those that do not.
    LENGTHS.into_iter().cycle().nth(number / 2 % LENGTHS.len()).unwrap_or(LONG)
}

/// What the tool writes, of about this length.
fn content(scene: &Scene, kind: &Kind, length: usize) -> String {
    let (begin, line) = match kind.content {
        Content::Any => ("{}\n", "#"),
        Content::Text(begin, line) => (begin, line),
    };
    let mut text = begin.replace("MARK", &scene.mark().display().to_string());
    // A line of some length, so that it is not one of very many.
    let line = if line == "#" { format!("{}\n", "#".repeat(99)) } else { format!("{line}\n") };
    // Not a byte longer than what is judged by its content.
    while text.len() + line.len() <= length {
        text.push_str(&line);
    }
    text
}

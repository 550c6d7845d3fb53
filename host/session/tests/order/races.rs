//! The races, each with a control without the lock on name changes, which loses.

use std::fs;
use std::io::{BufRead as _, BufReader, PipeReader, PipeWriter, Write as _, pipe};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use portcullis_decision::request::Origin;
use portcullis_each_user::{Test, cannot_run};
use portcullis_session::{Cancel, CommandCall, Program, Session, commands};

use crate::installers::{Command, Edit, Ending, Installer, Old, OldOrder, Write};
use crate::kinds::{Content, KINDS, RaceKind};
use crate::scene::Scene;
use crate::sessions::Outside;

pub(crate) const TESTS: &[Test] = &[
    ("order::no_tool_writes_a_file_that_a_command_makes_harmful", || contest(How::Write)),
    ("order::nor_one_that_a_command_of_another_session_makes_harmful", || contest(How::WriteBesideAnother)),
    ("order::nor_does_it_end_an_edit_of_one", || contest(How::Edit)),
    ("order::nor_does_a_yes_that_was_given_before", || contest(How::WriteOutside)),
    ("order::nor_does_a_command_that_got_one", || contest(How::CommandOutside)),
];

/// Number of tries of each kind; the variable multiplies it for long runs.
const TRIES: usize = 8;
const FACTOR_VARIABLE: &str = "PORTCULLIS_RACE_FACTOR";
/// If this variable is set, only the kinds are tried whose names contain its value.
const KIND_VARIABLE: &str = "PORTCULLIS_RACE_KIND";
/// Maximum number of tries until the control must have lost once.
const TRIES_OF_CONTROL: usize = 4_000;
/// Lengths of the files in bytes, in turn.
const LENGTHS: [usize; 4] = [100, 4 << 10, 1 << 10, 16 << 10];
/// Occasionally a file has the maximum length for judging content, or is longer if its content does not matter.
const LONG: usize = 1 << 20;
const LONGEST: usize = 8 << 20;
const NOW_AND_THEN: usize = 64;
/// Number of tries after which the user's git runs even without a harmful file.
const GIT_RUNS_EVERY: usize = 16;
/// The directories in which git runs.
const RUN_IN: [&str; 4] = [".", "q", "sub", "X"];
/// The paths that a try creates.
const LEFT_BEHIND: [&str; 9] = ["w", "v", "X", ".git/modules", ".pi", ".hg", ".cargo", ".yarn", "q/.git"];

/// The installer of a file under attack.
#[derive(Clone, Copy, PartialEq, Eq)]
enum How {
    /// The tool `write`, beside a command of its own session.
    Write,
    /// The tool `write`, beside a command of another session in the project.
    WriteBesideAnother,
    /// The tool `edit`, which has read the file before the attack.
    Edit,
    /// The tool `write` of a session in another project, which asks the user, who says yes.
    WriteOutside,
    /// The host, for a command of that session, after a "yes".
    CommandOutside,
}

impl How {
    fn fits(self, kind: &RaceKind) -> bool {
        match self {
            Self::Write | Self::WriteBesideAnother | Self::WriteOutside => true,
            Self::Edit => kind.may_be_edited(),
            // The file is opened by its path, which is no longer valid if a parent has moved.
            Self::CommandOutside => kind.is_completed(),
        }
    }

    fn old(self) -> Old {
        match self {
            Self::Write | Self::WriteBesideAnother | Self::WriteOutside => Old::Write,
            Self::Edit => Old::Edit,
            Self::CommandOutside => Old::Open,
        }
    }

    fn is_outside(self) -> bool {
        matches!(self, Self::WriteOutside | Self::CommandOutside)
    }

    /// Returns the moment of the attack in this try.
    fn moment(self, number: usize) -> Moment {
        match number % 4 {
            0 | 2 if self.is_outside() => Moment::BeforeYes,
            0 | 2 => Moment::Event,
            3 if self.is_outside() => Moment::Event,
            _ => Moment::Blindly,
        }
    }
}

/// The moment of an attack; see `attack.c`.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Moment {
    Event,
    Blindly,
    /// While the user is asked.
    BeforeYes,
}

impl Moment {
    fn word(self) -> &'static str {
        match self {
            Self::Event => "e",
            Self::Blindly => "b",
            Self::BeforeYes => "w",
        }
    }
}

/// The end of a race.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Until {
    FirstLoss,
    LastTry,
}

/// Results of the tries.
#[derive(Default)]
struct Count {
    tried: usize,
    lost: usize,
    /// How often the user's git has run a program.
    ran: usize,
    done: usize,
    denied: usize,
    failed: usize,
}

fn contest(how: How) {
    let Some(scene) = Scene::new() else { return cannot_run("a C compiler (`cc`)") };
    let prompter = Arc::new(Outside::default());
    let place = if how.is_outside() { &scene.near } else { &scene.project };
    let own = scene.session("one", place, Arc::clone(&prompter));
    let other = scene.session("other", &scene.project, Arc::default());
    let attacking = if matches!(how, How::Write | How::Edit) { &own } else { &other };
    let factor = std::env::var(FACTOR_VARIABLE).ok().and_then(|factor| factor.parse().ok()).unwrap_or(1);
    let tries = TRIES.saturating_mul(factor);
    let wanted = std::env::var(KIND_VARIABLE).unwrap_or_default();
    let mut came_through = 0;
    for kind in KINDS.iter().filter(|kind| kind.name.contains(&wanted) && how.fits(kind)) {
        let race = Race { scene: &scene, session: attacking, prompter: &prompter, kind, how };
        let mut old = OldOrder::new(&scene, how.old());
        let control = race.run((TRIES_OF_CONTROL, Until::FirstLoss), &mut old);
        assert!(
            control.lost > 0,
            "control, {}: the old order never lost in {} tries",
            kind.name,
            control.tried
        );
        assert_eq!(
            control.ran > 0,
            kind.runs_in.is_some(),
            "control, {}: what the user's git runs",
            kind.name
        );
        println!("    {}: the old order lost after {} tries", kind.name, control.tried);
        let began = Instant::now();
        let mut installer: Box<dyn Installer> = match how {
            How::Write | How::WriteBesideAnother | How::WriteOutside => Box::new(Write(&scene, &own)),
            How::Edit => Box::new(Edit(&scene, &own, None)),
            How::CommandOutside => Box::new(Command(&scene, &own)),
        };
        let Count { tried, lost, ran, done, denied, failed } =
            race.run((tries, Until::LastTry), installer.as_mut());
        let seconds = began.elapsed().as_secs();
        println!(
            "        {lost} of {tried} lost: {done} done, {denied} denied, {failed} failed, in {seconds} s"
        );
        assert_eq!((tried, lost, ran), (tries, 0, 0), "{}", kind.name);
        came_through += done;
    }
    assert!(came_through > 0, "no file was written at all");
    own.close();
    other.close();
}

struct Race<'a> {
    scene: &'a Scene,
    session: &'a Session,
    prompter: &'a Outside,
    kind: &'a RaceKind,
    how: How,
}

impl Race<'_> {
    /// Installs files under attack.
    fn run(&self, (most, until): (usize, Until), installer: &mut dyn Installer) -> Count {
        let (theirs, go_on) = pipe().expect("a pipe");
        let (said, their_output) = pipe().expect("a pipe");
        let mut count = Count::default();
        std::thread::scope(|scope| {
            let cancel = Cancel::default();
            let errors = their_output.try_clone().expect("a copy").into();
            let stdio = [theirs.into(), their_output.into(), errors];
            let started = commands::start(self.session, self.call(most), stdio, &cancel).expect("it starts");
            scope.spawn(move || commands::finish(self.session, &started));
            let attack = Arc::new(Attack::new(said, go_on));
            // After a failed try, only this reference keeps the connection open.
            let line = Arc::downgrade(&attack);
            self.prompter.ask(Arc::new(move || {
                if let Some(attack) = line.upgrade() {
                    attack.strike();
                }
            }));
            while count.tried < most {
                self.once(&attack, &mut count, installer);
                if until == Until::FirstLoss && count.lost > 0 {
                    break;
                }
                attack.go_on("n");
            }
            cancel.cancel();
        });
        self.clear();
        count
    }

    fn once(&self, attack: &Attack, count: &mut Count, installer: &mut dyn Installer) {
        let RaceKind { writes, .. } = *self.kind;
        let moment = self.how.moment(count.tried);
        let text = content(self.scene, self.kind, length(self.kind, count.tried));
        attack.hear("p");
        installer.begin(writes);
        attack.begin(moment);
        match installer.finish(writes, &text, &|| attack.strike()) {
            Ending::Done => count.done += 1,
            Ending::Denied => count.denied += 1,
            Ending::Failed => count.failed += 1,
        }
        attack.end();
        count.tried += 1;
        let is_harmful = self.is_harmful();
        let has_run = self.has_run(is_harmful, count.tried);
        count.ran += usize::from(has_run);
        count.lost += usize::from(is_harmful || has_run);
        self.clear();
    }

    fn call(&self, tries: usize) -> CommandCall<'_> {
        let RaceKind { prepares, watches, does, .. } = self.kind;
        let tries = tries.to_string();
        let there = if self.how == How::Edit { format!(",{}-", self.kind.writes) } else { String::new() };
        let prepares = format!("{prepares}{there}");
        let words = [&self.scene.attack.to_string_lossy(), tries.as_str(), &prepares, watches];
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

    /// Returns true if the file is at the harmful path.
    fn is_harmful(&self) -> bool {
        let path = self.scene.project.join(self.kind.harms);
        fs::read_to_string(&path).is_ok_and(|text| self.scene.is_harmful(&path, &text))
    }

    /// Returns true if the user's git has run a program that a file names.
    fn has_run(&self, is_harmful: bool, tried: usize) -> bool {
        if let Some(directory) = self.kind.runs_in.filter(|_| is_harmful) {
            self.complete();
            self.scene.git(&["-C", directory, "status"]);
        }
        if tried % GIT_RUNS_EVERY == 1 {
            for directory in RUN_IN {
                self.scene.git(&["-C", directory, "status"]);
            }
        }
        fs::remove_file(self.scene.mark()).is_ok()
    }

    /// Completes the repository of the file, as any command may.
    fn complete(&self) {
        let path = self.scene.project.join(self.kind.harms);
        let directory = path.parent().expect("a directory");
        for part in ["objects", "refs"] {
            // It may exist.
            drop(fs::create_dir(directory.join(part)));
        }
        fs::write(directory.join("HEAD"), "ref: refs/heads/main\n").expect("written");
    }

    fn clear(&self) {
        for name in LEFT_BEHIND {
            // Most of these do not exist.
            drop(fs::remove_dir_all(self.scene.project.join(name)));
        }
    }
}

/// The connection to the attack.
struct Attack(Mutex<Line>);

struct Line {
    said: BufReader<PipeReader>,
    go_on: PipeWriter,
    /// Whether it waits for a message.
    waits: bool,
    has_struck: bool,
}

impl Attack {
    fn new(said: PipeReader, go_on: PipeWriter) -> Self {
        Self(Mutex::new(Line { said: BufReader::new(said), go_on, waits: false, has_struck: false }))
    }

    fn with<T>(&self, act: impl FnOnce(&mut Line) -> T) -> T {
        act(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }

    fn hear(&self, word: &str) {
        self.with(|line| line.hear(word));
    }

    fn go_on(&self, word: &str) {
        self.with(|line| line.go_on(word));
    }

    fn begin(&self, moment: Moment) {
        self.with(|line| {
            line.go_on(moment.word());
            line.hear("r");
            (line.waits, line.has_struck) = (moment == Moment::BeforeYes, false);
        });
    }

    /// Triggers the attack, if it waits for that.
    fn strike(&self) {
        self.with(|line| {
            if line.waits && !line.has_struck {
                line.go_on("w");
                line.hear("a");
                line.has_struck = true;
            }
        });
    }

    fn end(&self) {
        self.strike();
        self.with(|line| {
            if !line.has_struck {
                line.hear("a");
            }
        });
    }
}

impl Line {
    fn hear(&mut self, word: &str) {
        let mut line = String::new();
        self.said.read_line(&mut line).expect("read");
        assert_eq!(line.trim(), word, "the attack goes on");
    }

    fn go_on(&mut self, word: &str) {
        writeln!(self.go_on, "{word}").expect("the attack goes on");
    }
}

fn longest(kind: &RaceKind) -> usize {
    if matches!(kind.content, Content::Any) { LONGEST } else { LONG }
}

fn length(kind: &RaceKind, number: usize) -> usize {
    // In both of the first tries, so that a short run includes it.
    if number % NOW_AND_THEN < 2 {
        return longest(kind);
    }
    // In turn for tries that begin with an event and for those that do not.
    LENGTHS.into_iter().cycle().nth(number / 2 % LENGTHS.len()).unwrap_or(LONG)
}

/// Returns the content that the tool writes, of about this length.
fn content(scene: &Scene, kind: &RaceKind, length: usize) -> String {
    let (begin, line) = match kind.content {
        Content::Any => ("{}\n", "#"),
        Content::Text(begin, line) => (begin, line),
        Content::Exact(text) => return text.to_owned(),
    };
    let mut text = begin.replace("MARK", &scene.mark().display().to_string());
    // Long lines, so that there are not too many.
    let line = if line == "#" { format!("{}\n", "#".repeat(99)) } else { format!("{line}\n") };
    // Not longer than the limit for judging content.
    while text.len() + line.len() <= length {
        text.push_str(&line);
    }
    text
}

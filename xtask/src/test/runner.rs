//! Runs test programs in parallel, and shows the output of each when it has ended.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::mpsc;
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};

use super::ledger::Ledger;
use super::report;
use super::selection::{self, ONLY_IN_FULL};
use super::tally::Tally;
use crate::run::{answer, quiet, say};

/// Number of programs that run at once.
///
/// Most slow programs wait for processes or run one test at a time, so two of them keep two processors busy.
const LANES: usize = 2;

/// The program whose tests mostly wait for pi, for answers and for time-outs: it runs more of them at once.
const WAITING: &str = "portcullis-it/it";
const TESTS_PER_PROCESSOR: usize = 3;

/// The test harness of a program.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Harness {
    /// Rust's own harness, which runs tests in parallel.
    Rust,
    /// `portcullis-each-user`, which runs tests one after another, as root and as an ordinary user.
    EachUser,
}

/// A test program.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Program {
    /// `crate` for unit tests, `crate/target` for others.
    pub(super) name: String,
    pub(super) path: PathBuf,
    /// The crate's directory, where cargo runs its tests.
    pub(super) directory: PathBuf,
    pub(super) harness: Harness,
}

/// How the tests run.
#[derive(Debug, Default)]
pub(super) struct Environment {
    /// Environment variables in addition to those of this process.
    pub(super) variables: Vec<(OsString, OsString)>,
    /// Whether the tests run that a normal run leaves out; see [`selection`].
    pub(super) is_full: bool,
}

/// The result of a program.
struct Ended {
    program: Program,
    time: Duration,
    output: Result<(String, bool)>,
}

/// Runs `programs` in this order, each in the next free lane.
pub(super) fn run(ledger: &mut Ledger, programs: Vec<Program>, environment: &Environment) {
    let queue = Mutex::new(programs.into_iter());
    let (sender, ends) = mpsc::channel();
    thread::scope(|scope| {
        for _ in 0..LANES {
            let (queue, sender) = (&queue, sender.clone());
            scope.spawn(move || {
                while let Some(program) = next(queue) {
                    say(format_args!("{} ...", program.name));
                    let start = Instant::now();
                    let output = output_of(&program, environment);
                    let ended = Ended { program, time: start.elapsed(), output };
                    if sender.send(ended).is_err() {
                        return;
                    }
                }
            });
        }
        drop(sender);
        for ended in ends {
            record(ledger, ended);
        }
    });
}

fn next(queue: &Mutex<std::vec::IntoIter<Program>>) -> Option<Program> {
    queue.lock().unwrap_or_else(PoisonError::into_inner).next()
}

/// Shows the relevant output of a program and counts its tests.
fn record(ledger: &mut Ledger, Ended { program, time, output }: Ended) {
    let result = output.map(|(text, is_success)| {
        let mut tally = Tally::default();
        let mut times = Vec::new();
        for line in text.lines() {
            tally.add(Tally::from_line(line));
            times.extend(
                report::time_of_test(line).map(|(name, time)| (format!("{} {name}", program.name), time)),
            );
            let is_routine =
                line.starts_with("test ") && !line.starts_with("test result") && line.contains(" ... ok");
            if !is_routine && !line.is_empty() {
                answer(line);
            }
        }
        ledger.tests_took(times);
        // A program without tests is not a failure: most binaries have none.
        if tally == Tally::default() && is_success && text.contains("running 0 tests") {
            return None;
        }
        Some((tally, is_success))
    });
    match result.transpose() {
        Some(result) => ledger.record(&program.name, time, result),
        None => ledger.took(&program.name, time),
    }
}

fn output_of(program: &Program, environment: &Environment) -> Result<(String, bool)> {
    let mut command = command(program, environment)?;
    let output = command.output().with_context(|| format!("starting the tests of {}", program.name))?;
    let text = String::from_utf8_lossy(&output.stdout) + String::from_utf8_lossy(&output.stderr);
    Ok((text.into_owned(), output.status.success()))
}

fn command(program: &Program, environment: &Environment) -> Result<Command> {
    let mut command = silent_input(&program.path);
    command.current_dir(&program.directory).env("CARGO_MANIFEST_DIR", &program.directory);
    command.envs(environment.variables.iter().map(|(name, value)| (name, value)));
    if program.harness == Harness::Rust {
        // The only way to get the time of each test. `portcullis-each-user` always reports it.
        command.args(["-Zunstable-options", "--report-time"]).env("RUSTC_BOOTSTRAP", "1");
        if program.name == WAITING {
            let processors = thread::available_parallelism().map_or(1, usize::from);
            command.args(["--test-threads", &(processors * TESTS_PER_PROCESSOR).to_string()]);
        }
        match (environment.is_full, program.name == WAITING) {
            (true, _) => {}
            (false, true) => drop(command.arg("--exact").args(normal_tests(&program.path)?)),
            (false, false) => drop(command.args(ONLY_IN_FULL.iter().flat_map(|part| ["--skip", part]))),
        }
    }
    Ok(command)
}

/// Returns the names of the tests of `it` that a normal run does.
fn normal_tests(program: &Path) -> Result<Vec<String>> {
    let listed = quiet(silent_input(program).args(["--list", "--format", "terse"]))?;
    let names = listed.lines().filter_map(|line| line.strip_suffix(": test"));
    let names: Vec<String> =
        names.filter(|name| selection::is_in_normal_run(name)).map(str::to_owned).collect();
    // Without a name the program would run every test.
    ensure!(!names.is_empty(), "`{}` lists no test of a normal run", program.display());
    Ok(names)
}

/// Returns a command for `program` without input.
fn silent_input(program: &Path) -> Command {
    let mut command = Command::new(program);
    command.stdin(Stdio::null());
    command
}

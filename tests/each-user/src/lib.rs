//! A test runner for programs that are their own hostile process or keeper: started by root, it runs every test twice,
//! the second time as an ordinary user.
#![cfg(target_os = "linux")]
#![expect(
    clippy::expect_used,
    clippy::print_stderr,
    clippy::print_stdout,
    reason = "this is a test runner, and a test fails by panicking"
)]

use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::process::CommandExt as _;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::process::{Command, ExitCode};
use std::time::Instant;
use std::{env, fs};

/// A test and its name.
pub type Test = (&'static str, fn());

/// The id of an ordinary user, which needs no entry in a user database.
pub const ORDINARY_USER: u32 = 1000;
/// The argument of the second half of a run as root: the same tests, as an ordinary user.
const AS_A_USER: &str = "__as_a_user";

/// Runs the `tests` whose names contain the first non-option word of `arguments`; all of them if there is none.
///
/// # Panics
///
/// If the test program cannot be copied to where an ordinary user can run it.
#[must_use]
pub fn run(tests: &[Test], arguments: &[String]) -> ExitCode {
    let named = |words: &[String]| words.iter().find(|word| !word.starts_with('-')).cloned();
    match arguments {
        [first, rest @ ..] if first == AS_A_USER => run_as("user", tests, named(rest).as_deref()),
        _ if rustix::process::geteuid().is_root() => run_as_both(tests, named(arguments).as_deref()),
        _ => run_as("user", tests, named(arguments).as_deref()),
    }
}

/// Returns whether a process has ended, reaped or not.
///
/// Its command line would not say that: it is empty for a moment while a process starts another program.
#[must_use]
pub fn has_ended(process: &str) -> bool {
    let Ok(stat) = fs::read_to_string(format!("/proc/{process}/stat")) else { return true };
    stat.rsplit_once(") ").is_none_or(|(_, state)| state.starts_with(['Z', 'X']))
}

/// Reports that a test could not run.
///
/// # Panics
///
/// If `CI` is set: no test may be left out there.
pub fn cannot_run(missing: &str) {
    assert!(env::var_os("CI").is_none(), "cannot run: {missing}");
    eprintln!("    not run: {missing}");
}

fn run_as_both(tests: &[Test], filter: Option<&str>) -> ExitCode {
    let as_root = run_as("root", tests, filter);
    // The folder of the test program may be closed to other users.
    let place = tempfile::Builder::new().prefix("portcullis-test-").tempdir().expect("a directory");
    fs::set_permissions(place.path(), fs::Permissions::from_mode(0o755)).expect("a directory for all");
    let copy = place.path().join("tests");
    fs::copy(env::current_exe().expect("own path"), &copy).expect("a copy");
    let as_user = Command::new(&copy)
        .arg(AS_A_USER)
        .args(filter)
        .uid(ORDINARY_USER)
        .gid(ORDINARY_USER)
        .env("HOME", "/nonexistent")
        .current_dir("/")
        .status()
        .expect("the copy runs");
    if as_root == ExitCode::SUCCESS && as_user.success() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

fn run_as(who: &str, tests: &[Test], filter: Option<&str>) -> ExitCode {
    let wanted: Vec<&Test> =
        tests.iter().filter(|(name, _)| filter.is_none_or(|filter| name.contains(filter))).collect();
    println!("\nrunning {} tests as {who}", wanted.len());
    let failed: Vec<&str> = wanted
        .iter()
        .filter(|(name, test)| {
            let start = Instant::now();
            let passed = catch_unwind(AssertUnwindSafe(test)).is_ok();
            let (end, time) = (if passed { "ok" } else { "FAILED" }, start.elapsed().as_secs_f32());
            println!("test {name} as {who} ... {end} <{time:.3}s>");
            !passed
        })
        .map(|(name, _)| *name)
        .collect();
    println!("\ntest result: {} passed; {} failed {failed:?}\n", wanted.len() - failed.len(), failed.len());
    if failed.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

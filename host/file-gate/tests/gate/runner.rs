//! Runs the tests twice when started by root, the second time as an ordinary user.

use std::os::unix::process::CommandExt as _;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::process::{Command, ExitCode};
use std::{env, fs};

use crate::{edits, kit, permits, races, reads, views, writes};

/// An ordinary user; it needs no entry in any list of users.
const ORDINARY_USER: u32 = 1000;
/// The second half of a run as root.
const AS_A_USER: &str = "__as_a_user";

/// A test and its name.
pub(crate) type Test = (&'static str, fn());

pub(crate) fn main() -> ExitCode {
    let arguments: Vec<String> = env::args().skip(1).collect();
    match arguments.first().map(String::as_str) {
        Some(races::FLIP) => races::flip_for_ever(&arguments[1..]),
        Some(AS_A_USER) => run(arguments.get(1), "user"),
        _ => run_as_both(arguments.iter().find(|argument| !argument.starts_with('-'))),
    }
}

fn run_as_both(filter: Option<&String>) -> ExitCode {
    if !kit::is_root() {
        return run(filter, "user");
    }
    let as_root = run(filter, "root");
    // The folder with the test program may be closed to others.
    let place = kit::Place::new();
    let copy = place.path("gate");
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

fn run(filter: Option<&String>, who: &str) -> ExitCode {
    let all =
        [reads::TESTS, writes::TESTS, edits::TESTS, permits::TESTS, views::TESTS, races::TESTS].concat();
    let wanted: Vec<Test> =
        all.into_iter().filter(|(name, _)| filter.is_none_or(|filter| name.contains(filter))).collect();
    println!("\nrunning {} tests as {who}", wanted.len());
    let failed: Vec<&str> = wanted
        .iter()
        .filter(|(name, test)| {
            let passed = catch_unwind(AssertUnwindSafe(test)).is_ok();
            println!("test {name} as {who} ... {}", if passed { "ok" } else { "FAILED" });
            !passed
        })
        .map(|(name, _)| *name)
        .collect();
    println!("\ntest result: {} passed; {} failed {failed:?}\n", wanted.len() - failed.len(), failed.len());
    if failed.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// Says that a test could not run, which is a failure where nothing may be left out.
pub(crate) fn cannot_run(missing: &str) {
    assert!(env::var_os("CI").is_none(), "cannot run: {missing}");
    eprintln!("    not run: {missing}");
}

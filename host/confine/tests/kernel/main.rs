//! The sandbox against real processes, as root and as an ordinary user.
//!
//! Every attack comes with a control that works without the sandbox.
//! A test that cannot run says what is missing; it fails when `CI` is set.
#![cfg(target_os = "linux")]
#![expect(
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::print_stderr,
    clippy::print_stdout,
    reason = "these are tests, and their runner"
)]

use std::os::unix::process::CommandExt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::process::{Command, ExitCode};
use std::{env, fs};

use portcullis_confine::{KEEPER_ARGUMENT, keeper_main};

mod attacks;
mod below;
mod commands;
mod cost;
mod death;
mod files;
mod gate;
mod kit;
mod network;
mod workloads;

/// An ordinary user; it needs no entry in any list of users.
const ORDINARY_USER: u32 = 1000;
/// The second half of a run as root: the same tests, as an ordinary user.
const AS_A_USER: &str = "__as_a_user";

type Test = (&'static str, fn());

fn main() -> ExitCode {
    let arguments: Vec<String> = env::args().skip(1).collect();
    match arguments.first().map(String::as_str) {
        Some(KEEPER_ARGUMENT) => keeper_main(),
        Some(death::HOST) => death::be_a_host(&arguments[1..]),
        Some(attacks::ATTEMPT) => attacks::attempt(&arguments[1..]),
        Some(cost::MEASURE) => cost::measure(),
        Some(AS_A_USER) => run(arguments.get(1), "user"),
        _ => run_as_both(arguments.iter().find(|argument| !argument.starts_with('-'))),
    }
}

fn run_as_both(filter: Option<&String>) -> ExitCode {
    if !rustix::process::geteuid().is_root() {
        return run(filter, "user");
    }
    let as_root = run(filter, "root");
    // The folder with the test program may be closed to others.
    let place = tempfile::Builder::new().prefix("portcullis-test-").tempdir().expect("a directory");
    kit::open_to_all(place.path());
    let copy = place.path().join("kernel");
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
    let all = [
        files::TESTS,
        commands::TESTS,
        attacks::TESTS,
        below::TESTS,
        workloads::TESTS,
        network::TESTS,
        gate::TESTS,
        death::TESTS,
    ]
    .concat();
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
fn cannot_run(missing: &str) {
    assert!(env::var_os("CI").is_none(), "cannot run: {missing}");
    eprintln!("    not run: {missing}");
}

fn exists(path: &str) -> bool {
    Path::new(path).exists()
}

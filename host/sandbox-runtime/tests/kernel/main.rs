//! Tests of the sandbox with real processes, as root and as an ordinary user.
//!
//! Every attack has a control that works without the sandbox.
//! A test that cannot run reports what is missing; it fails if `CI` is set.
#![cfg(target_os = "linux")]
#![expect(
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::print_stdout,
    reason = "these are tests"
)]

use std::env;
use std::path::Path;
use std::process::ExitCode;

use portcullis_each_user::{Test, cannot_run, run};
use portcullis_sandbox_runtime::{KEEPER_ARGUMENT, PROBE_ARGUMENT, keeper_main, probe_main};

mod anew;
mod attacks;
mod below;
mod builds;
mod commands;
mod cost;
mod death;
mod files;
mod gate;
mod git;
mod groups;
mod held;
mod kit;
mod landlock_only;
mod limits;
mod links;
mod names;
mod network;
mod order;
mod own;
mod owner;
mod probes;
mod races;
mod reads;
mod requests;
mod tracing;
mod workloads;

fn main() -> ExitCode {
    let arguments: Vec<String> = env::args().skip(1).collect();
    match arguments.first().map(String::as_str) {
        Some(KEEPER_ARGUMENT) => keeper_main(names::make),
        Some(PROBE_ARGUMENT) => probe_main(),
        Some(probes::PROBING) => probes::report(),
        Some(probes::FILTERED) => probes::report_under_filter(),
        Some(probes::LISTENED) => probes::report_under_a_listener(),
        Some(death::HOST) => death::be_a_host(&arguments[1..]),
        Some(attacks::ATTEMPT) => attacks::attempt(&arguments[1..]),
        Some(cost::MEASURE) => cost::measure(),
        Some(groups::SCENE) => groups::play(&arguments[1..]),
        _ => run(&all_tests(), &arguments),
    }
}

fn all_tests() -> Vec<Test> {
    [
        files::TESTS,
        commands::TESTS,
        limits::TESTS,
        groups::TESTS,
        owner::TESTS,
        probes::TESTS,
        attacks::TESTS,
        requests::TESTS,
        tracing::TESTS,
        below::TESTS,
        links::TESTS,
        names::TESTS,
        own::TESTS,
        git::TESTS,
        held::TESTS,
        races::TESTS,
        order::TESTS,
        reads::TESTS,
        anew::TESTS,
        workloads::TESTS,
        builds::TESTS,
        network::TESTS,
        gate::TESTS,
        death::TESTS,
        landlock_only::TESTS,
    ]
    .concat()
}

fn exists(path: &str) -> bool {
    Path::new(path).exists()
}

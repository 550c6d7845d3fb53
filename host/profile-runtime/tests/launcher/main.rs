//! Tests with real processes, under confiners of the tests' own: one that confines, one that does not, and one that
//! confines too much.
#![cfg(target_os = "linux")]
#![expect(clippy::expect_used, clippy::panic, clippy::print_stdout, reason = "these are tests")]

mod commands;
mod kit;
mod self_test;

use std::process::ExitCode;

use portcullis_each_user::{Test, run};
use portcullis_profile_runtime::{STARTER_ARGUMENT, starter_main};

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match arguments.first().map(String::as_str) {
        Some(STARTER_ARGUMENT) => starter_main(),
        Some(commands::HOST) => commands::be_a_host(),
        _ => {
            let tests: Vec<Test> = [self_test::TESTS, commands::TESTS].concat();
            run(&tests, &arguments)
        }
    }
}

//! Tests of the compiler process with components that take too much work, as root and as an ordinary user.
#![cfg(target_os = "linux")]
#![expect(clippy::expect_used, clippy::print_stdout, reason = "these are tests")]

mod bombs;
mod process;
mod shipped;

use std::env;
use std::process::ExitCode;

use portcullis_each_user::{Test, run};
use portcullis_policy_runtime::{
    COMPILER_ARGUMENT, CachePlace, CompileLimits, Compiler, Limits, Runtime, compiler_main,
};

fn main() -> ExitCode {
    let arguments: Vec<String> = env::args().skip(1).collect();
    match arguments.first().map(String::as_str) {
        Some(COMPILER_ARGUMENT) => compiler_main(),
        Some(bombs::HERE) => bombs::compile_here(),
        _ => run(&all_tests(), &arguments),
    }
}

fn all_tests() -> Vec<Test> {
    [bombs::TESTS, process::TESTS, shipped::TESTS].concat()
}

/// A runtime that compiles in processes of this program.
fn runtime(compile: CompileLimits) -> Runtime {
    let compiler = Compiler::Process(env::current_exe().expect("own path"));
    let limits = Limits { compile, ..Limits::default() };
    Runtime::new(limits, &CachePlace::None, compiler).expect("an engine")
}

/// Returns a field of `/proc/PID/status` that is in KiB.
fn status_kib(process: &str, field: &str) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{process}/status")).expect("a process");
    let line = status.lines().find_map(|line| line.strip_prefix(field)).expect("a field");
    line.trim_start_matches(':').trim().trim_end_matches(" kB").parse().expect("a number")
}

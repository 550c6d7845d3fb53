//! What the process may do, and what becomes of the host when it goes.

use std::fs;
use std::path::PathBuf;
use std::thread;
use std::time::Duration;

use portcullis_each_user::Test;
use portcullis_policy_runtime::{CachePlace, CompileLimits, Compiler, Limits, LoadError, Runtime};
use rustix::process::{Pid, Signal, kill_process};

use crate::runtime;
use crate::shipped::SECRETS;

pub(crate) const TESTS: &[Test] = &[
    ("the_process_is_restricted", the_process_is_restricted),
    ("a_killed_process_is_a_reason", a_killed_process_is_a_reason),
    ("other_programs_are_no_compilers", other_programs_are_no_compilers),
    ("each_configuration_has_its_own_time", each_configuration_has_its_own_time),
    ("the_process_goes_with_its_runtime", the_process_goes_with_its_runtime),
];

/// One process compiles a component for each configuration that is asked for, which takes more than the time of one.
fn each_configuration_has_its_own_time() {
    let cpu = Duration::from_secs(5);
    let runtime = runtime(CompileLimits { cpu, ..CompileLimits::default() });
    let mut last = None;
    loop {
        runtime.load("secrets", SECRETS, "{}").expect("it is within its time");
        let [compiler] = compilers()[..] else { panic!("one process compiles") };
        assert!(last.is_none_or(|last| last == compiler), "the same process");
        last = Some(compiler);
        let stat = fs::read_to_string(format!("/proc/{compiler}/stat")).expect("its times");
        let ticks: u64 =
            stat.split_whitespace().nth(13).and_then(|ticks| ticks.parse().ok()).expect("a time");
        if Duration::from_millis(ticks * 10) > cpu + Duration::from_secs(2) {
            return;
        }
    }
}

/// The processes that compile for this one.
fn compilers() -> Vec<i32> {
    let own = std::process::id();
    let tasks = fs::read_dir("/proc/self/task").expect("own threads");
    let children = tasks.filter_map(|task| fs::read_to_string(task.ok()?.path().join("children")).ok());
    let all: Vec<i32> = children
        .flat_map(|line| line.split_whitespace().filter_map(|id| id.parse().ok()).collect::<Vec<_>>())
        .collect();
    assert!(!all.contains(&own.cast_signed()));
    all
}

fn the_process_is_restricted() {
    let runtime = runtime(CompileLimits::default());
    runtime.describe(SECRETS).expect("a description");
    let [compiler] = compilers()[..] else { panic!("one process compiles") };
    let status = fs::read_to_string(format!("/proc/{compiler}/status")).expect("its status");
    for line in ["NoNewPrivs:\t1", "Seccomp:\t2", "CapEff:\t0000000000000000", "CapPrm:\t0000000000000000"] {
        assert!(status.contains(line), "{line}: {status}");
    }
    let own = fs::read_to_string("/proc/self/status").expect("own status");
    assert!(own.contains("NoNewPrivs:\t0"), "control");
}

fn a_killed_process_is_a_reason() {
    let runtime = runtime(CompileLimits::default());
    runtime.describe(SECRETS).expect("a description");
    let [compiler] = compilers()[..] else { panic!("one process compiles") };
    kill_process(Pid::from_raw(compiler).expect("a process"), Signal::KILL).expect("it is ours");
    let error = runtime.load("secrets", SECRETS, "{}").expect_err("it is gone");
    assert!(matches!(error, LoadError::Compiler { .. }), "{error}");
    assert!(error.to_string().contains("was ended by signal 9"), "{error}");
    runtime.load("secrets", SECRETS, "{}").expect("another one is started");
}

fn other_programs_are_no_compilers() {
    for program in ["/bin/true", "/bin/cat", "/bin/yes", "/nonexistent"] {
        let limits = Limits {
            compile: CompileLimits { time: Duration::from_secs(5), ..CompileLimits::default() },
            ..Limits::default()
        };
        let compiler = Compiler::Process(PathBuf::from(program));
        let runtime = Runtime::new(limits, &CachePlace::None, compiler).expect("an engine");
        let error = runtime.load("secrets", SECRETS, "{}").expect_err("no policy comes of it");
        let is_told = matches!(error, LoadError::Compiler { .. } | LoadError::CompileLimit { .. });
        assert!(is_told, "{program}: {error}");
    }
}

fn the_process_goes_with_its_runtime() {
    let runtime = runtime(CompileLimits::default());
    runtime.describe(SECRETS).expect("a description");
    assert_eq!(compilers().len(), 1, "control");
    drop(runtime);
    while !compilers().is_empty() {
        thread::yield_now();
    }
}

//! Restrictions of the compiler process, and the host's behaviour when the process dies.

use std::fs;
use std::path::PathBuf;
use std::thread;
use std::time::Duration;

use portcullis_each_user::Test;
use portcullis_policy_runtime::{CachePlace, CompileLimits, Compiler, Limits, LoadError, Runtime};
use rustix::process::{Pid, Signal, kill_process};

use crate::shipped::SECRETS;
use crate::{bombs, runtime};

pub(crate) const TESTS: &[Test] = &[
    ("the_process_is_restricted", the_process_is_restricted),
    ("a_killed_process_is_a_reason", a_killed_process_is_a_reason),
    ("other_programs_are_no_compilers", other_programs_are_no_compilers),
    ("no_process_is_left", no_process_is_left),
];

/// Compiles a slow component and calls `act` with the pid of the compiler process meanwhile.
///
/// Returns the result of the compilation.
fn while_compiling(runtime: &Runtime, act: impl FnOnce(i32)) -> LoadError {
    thread::scope(|scope| {
        let loading =
            scope.spawn(|| runtime.load("slow", &bombs::br_if(), "{}").expect_err("it is no policy"));
        let compiler = loop {
            if let [compiler] = compilers()[..]
                && status(compiler).contains("Seccomp:\t2")
            {
                break compiler;
            }
            assert!(!loading.is_finished(), "it is being compiled");
            thread::yield_now();
        };
        act(compiler);
        loading.join().expect("an answer")
    })
}

fn status(process: i32) -> String {
    fs::read_to_string(format!("/proc/{process}/status")).unwrap_or_default()
}

/// Returns the pids of this program's compiler processes.
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
    while_compiling(&slow_runtime(), |compiler| {
        let status = status(compiler);
        for line in
            ["NoNewPrivs:\t1", "Seccomp:\t2", "CapEff:\t0000000000000000", "CapPrm:\t0000000000000000"]
        {
            assert!(status.contains(line), "{line}: {status}");
        }
        kill(compiler);
    });
    let own = fs::read_to_string("/proc/self/status").expect("own status");
    assert!(own.contains("NoNewPrivs:\t0"), "control");
}

fn a_killed_process_is_a_reason() {
    let runtime = slow_runtime();
    let error = while_compiling(&runtime, kill);
    assert!(matches!(error, LoadError::Compiler { .. }), "{error}");
    assert!(error.to_string().contains("was ended by signal 9"), "{error}");
    runtime.load("secrets", SECRETS, "{}").expect("another one is started");
}

/// A runtime whose limits allow the bombs to compile for long.
fn slow_runtime() -> Runtime {
    runtime(CompileLimits { memory: 8 << 30, ..CompileLimits::default() })
}

fn kill(process: i32) {
    kill_process(Pid::from_raw(process).expect("a process"), Signal::KILL).expect("it is ours");
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

fn no_process_is_left() {
    let runtime = runtime(CompileLimits::default());
    runtime.load("secrets", SECRETS, "{}").expect("a policy");
    assert_eq!(compilers(), Vec::<i32>::new());
}

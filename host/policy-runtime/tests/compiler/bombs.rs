//! Small components that take gigabytes or minutes to compile.

use std::env;
use std::fmt::Write as _;
use std::process::{Command, ExitCode};
use std::time::Duration;

use portcullis_each_user::Test;
use portcullis_policy_runtime::{
    CachePlace, CompileLimit, CompileLimits, Compiler, Limits, LoadError, Runtime,
};
use rustix::process::{Resource, Rlimit, setrlimit};

use crate::shipped::SECRETS;
use crate::{runtime, status_kib};

pub(crate) const TESTS: &[Test] = &[
    ("br_if_takes_no_more_memory_than_the_bound", br_if_takes_no_more_memory_than_the_bound),
    ("br_table_takes_no_more_memory_than_the_bound", br_table_takes_no_more_memory_than_the_bound),
    ("processor_time_is_bounded", processor_time_is_bounded),
    ("time_on_the_clock_is_bounded", time_on_the_clock_is_bounded),
];

/// The argument of the control: compile in this process.
pub(crate) const HERE: &str = "__compile_here";

const MIB: u64 = 1 << 20;
/// Enough memory for a policy, and a fraction of what the bombs need.
const BOUND: u64 = 256 * MIB;
/// The control stops at this limit, so that it does not exhaust the machine's memory.
const END_OF_CONTROL: u64 = 1024 * MIB;

/// A function that is expensive to compile.
///
/// It changes a local variable before each of many branches to the same target, so that the compiler keeps a
/// value for each pair of variable and branch. It has only one `block`, `loop` or `if`, so an estimate that
/// counts those misses it.
fn function(branches: usize, branch: &str) -> Vec<u8> {
    let locals = 1500;
    let mut body = String::new();
    for at in 0..branches {
        let local = at % locals;
        write!(body, "(local.set {local} (i32.const {at})) {branch}").expect("memory");
    }
    let reads: String = (0..locals).map(|local| format!("(drop (local.get {local}))")).collect();
    let locals = "i32 ".repeat(locals);
    let text = format!("(component (core module (func (local {locals}) (block {body}) {reads})))");
    wat::parse_str(text).expect("a component")
}

pub(crate) fn br_if() -> Vec<u8> {
    function(24_000, "(br_if 0 (local.get 0))")
}

fn br_table() -> Vec<u8> {
    function(12_000, "(block (br_table 0 1 0 1 (local.get 0)))")
}

fn is_stopped(bomb: &[u8]) {
    let runtime = runtime(CompileLimits { memory: BOUND, ..CompileLimits::default() });
    let before = status_kib("self", "VmHWM");
    let error = runtime.load("bomb", bomb, "{}").expect_err("it is refused");
    let expected = CompileLimit::Memory(BOUND);
    assert!(matches!(&error, LoadError::CompileLimit { limit } if *limit == expected), "{error}");
    assert!(error.to_string().contains("more than 256 MiB of memory"), "{error}");
    let grown = status_kib("self", "VmHWM").saturating_sub(before);
    assert!(grown < 64 << 10, "the host itself took {grown} KiB");
    // The host can still use the same runtime.
    runtime.load("secrets", SECRETS, "{}").expect("the next policy loads");
    assert!(bomb.len() < 512 << 10, "{} bytes", bomb.len());
}

/// Compiles the same component without the limit: it succeeds, and takes more memory than the limit.
fn control(bomb: &[u8]) {
    let place = tempfile::tempdir().expect("a directory");
    let file = place.path().join("bomb.wasm");
    std::fs::write(&file, bomb).expect("a file");
    let run = Command::new(env::current_exe().expect("own path")).args([HERE]).arg(&file).output();
    let output = run.expect("it starts");
    let said =
        format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    let peak = said.lines().find_map(|line| line.strip_prefix("peak "));
    let took = peak.map(|peak| peak.parse::<u64>().expect("a number") << 10);
    println!("    without the bound: {took:?} bytes; {} bytes of component", bomb.len());
    let ran_out = took.is_none() && said.contains("memory allocation of");
    assert!(ran_out || took.is_some_and(|took| took > 2 * BOUND), "{said}");
}

/// Compiles the component of a file in this process, with only the control's limit, and prints the memory
/// that it took.
pub(crate) fn compile_here() -> ExitCode {
    let most = Rlimit { current: Some(END_OF_CONTROL), maximum: Some(END_OF_CONTROL) };
    setrlimit(Resource::Data, most).expect("a limit");
    let component = std::fs::read(env::args_os().nth(2).expect("a file")).expect("a component");
    let runtime = Runtime::new(Limits::default(), &CachePlace::None, Compiler::InProcess).expect("an engine");
    let error = runtime.load("bomb", &component, "{}").expect_err("it is no policy");
    assert!(matches!(error, LoadError::MissingExports { .. }), "{error}");
    println!("peak {}", status_kib("self", "VmHWM"));
    ExitCode::SUCCESS
}

fn br_if_takes_no_more_memory_than_the_bound() {
    is_stopped(&br_if());
    control(&br_if());
}

fn br_table_takes_no_more_memory_than_the_bound() {
    is_stopped(&br_table());
    control(&br_table());
}

fn processor_time_is_bounded() {
    let cpu = Duration::from_secs(1);
    let runtime = runtime(CompileLimits { cpu, memory: 8 << 30, ..CompileLimits::default() });
    let error = runtime.load("bomb", &br_if(), "{}").expect_err("it is refused");
    let expected = CompileLimit::ProcessorTime(cpu);
    assert!(matches!(&error, LoadError::CompileLimit { limit } if *limit == expected), "{error}");
}

fn time_on_the_clock_is_bounded() {
    let time = Duration::from_millis(500);
    let runtime = runtime(CompileLimits { time, memory: 8 << 30, ..CompileLimits::default() });
    let error = runtime.load("bomb", &br_if(), "{}").expect_err("it is refused");
    let expected = CompileLimit::Time(time);
    assert!(matches!(&error, LoadError::CompileLimit { limit } if *limit == expected), "{error}");
}

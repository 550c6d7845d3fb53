//! Bounds of what a command may use.

use std::time::{Duration, Instant};

use portcullis_confine::{Breach, Command, Exit, Force, Layer, Limits};

use crate::kit::Session;
use crate::{Test, cannot_run, exists};

pub(crate) const TESTS: &[Test] = &[
    ("limits::processes_are_refused_above_their_number", processes_are_refused_above_their_number),
    ("limits::a_fork_bomb_is_bounded_and_ends", a_fork_bomb_is_bounded_and_ends),
    ("limits::memory_of_all_processes_is_added_up", memory_of_all_processes_is_added_up),
    ("limits::shared_memory_is_bounded", shared_memory_is_bounded),
    ("limits::what_a_process_may_have_is_refused_to_it", what_a_process_may_have_is_refused_to_it),
    ("limits::processor_time_ends_with_its_own_signal", processor_time_ends_with_its_own_signal),
];

const MIB: u64 = 1 << 20;

fn with(limits: Limits) -> Session {
    Session::with(|_, wanted| wanted.limits = limits)
}

/// Runs a script and returns how it ended, what it said, and the limit it met.
fn run(session: &Session, script: &str) -> (Exit, String, Option<Breach>) {
    let (running, mut output) = session.start(session.command(&["sh", "-c", script])).expect("sh starts");
    let mut text = String::new();
    std::io::Read::read_to_string(&mut output, &mut text).expect("output");
    (running.wait(), text, running.breach())
}

/// What the kernel does not refuse is counted, and the command killed.
fn is_refused(session: &Session) -> bool {
    session.confinement.report().layers.contains(&(Layer::Limits, Force::Full))
}

fn processes_are_refused_above_their_number() {
    let session = with(Limits { processes: Some(60), ..Limits::default() });
    // The first 300 numbers are given out once only, so that many come on top.
    let script = "i=0; while [ $i -lt 700 ]; do sleep 5 & i=$((i+1)); echo $i; done 2>/dev/null; \
                  echo done; sleep 0.3";
    let (exit, output, breach) = run(&session, script);
    let started = output.lines().filter(|line| line.parse::<u32>().is_ok()).count();
    assert!(!output.contains("done"), "{exit:?} {started}");
    assert!(started <= 360, "{started} were started");
    if is_refused(&session) {
        assert_ne!(exit, Exit::Signal(libc::SIGKILL));
    } else {
        assert_eq!(breach, Some(Breach::TooManyProcesses));
    }
    assert!(session.control(&script.replace("sleep 5", "sleep 1")), "control");
    // The numbers are free again.
    session.allows("true");
    // A command that stays at its limit for a while is told so.
    let script = "i=0; while [ $i -lt 700 ]; do sleep 2 & i=$((i+1)); done 2>/dev/null";
    let script = format!("({script}) ; sleep 0.6");
    let (_, _, breach) = run(&session, &script);
    assert!(breach.is_some(), "it was at its limit");
}

fn a_fork_bomb_is_bounded_and_ends() {
    let session = with(Limits { processes: Some(100), ..Limits::default() });
    let script = "echo ready; f() { f | f & }; f 2>/dev/null; sleep 9";
    let (running, mut output) = session.start(session.command(&["sh", "-c", script])).expect("sh starts");
    std::io::Read::read_exact(&mut output, &mut [0; 6]).expect("it is ready");
    std::thread::sleep(Duration::from_millis(300));
    let start = Instant::now();
    running.kill();
    assert_eq!(running.wait(), Exit::Signal(libc::SIGKILL));
    assert!(start.elapsed() < Duration::from_secs(1), "{:?}", start.elapsed());
    session.allows("true");
}

fn memory_of_all_processes_is_added_up() {
    if !exists("/usr/bin/perl") {
        return cannot_run("perl (package perl-base)");
    }
    let session = with(Limits { memory_bytes: Some(150 * MIB), ..Limits::default() });
    let one = "perl -e '$x = q(x) x 70_000_000; sleep 2' &";
    let (exit, _, breach) = run(&session, &format!("{one} wait; exit 0"));
    assert_eq!((exit, breach), (Exit::Code(0), None), "one is below");
    let script = format!("{one} {one} {one} wait; exit 0");
    let (exit, _, breach) = run(&session, &script);
    assert_eq!((exit, breach), (Exit::Signal(libc::SIGKILL), Some(Breach::Memory)));
    assert!(session.control(&script), "control");
    // What processes share counts once.
    let forks = "perl -e '$x = q(x) x 70_000_000; for (1..4) { fork or last } sleep 1'; exit 0";
    let (exit, _, breach) = run(&session, forks);
    assert_eq!((exit, breach), (Exit::Code(0), None), "they share one copy");
}

fn shared_memory_is_bounded() {
    let session = with(Limits { memory_bytes: Some(16 * MIB), ..Limits::default() });
    session.sh("head -c 20000000 /dev/zero > /dev/shm/x").assert_fails();
    session.allows("rm /dev/shm/x");
    session.allows("head -c 8000000 /dev/zero > /dev/shm/y");
}

fn what_a_process_may_have_is_refused_to_it() {
    if !exists("/usr/bin/perl") {
        return cannot_run("perl (package perl-base)");
    }
    let session = with(Limits { data_bytes: Some(100 * MIB), ..Limits::default() });
    let script = "perl -e '$x = q(x) x 300_000_000' 2>&1";
    let (exit, output, _) = run(&session, script);
    assert!(exit != Exit::Code(0) && output.contains("Out of memory"), "{exit:?} {output}");
    assert!(session.control(script), "control");
}

fn processor_time_ends_with_its_own_signal() {
    let session = Session::new();
    let limits = Limits { cpu_seconds: Some(1), ..Limits::default() };
    let command = Command { limits, ..session.command(&["sh", "-c", "while :; do :; done"]) };
    assert_eq!(session.run(command).expect("starts").exit, Exit::Signal(libc::SIGXCPU));
}

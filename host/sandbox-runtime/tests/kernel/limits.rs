//! Limits on the resources of a command.

use std::time::{Duration, Instant};

use portcullis_sandbox::{Command, Force, Layer, Limits};
use portcullis_sandbox_runtime::{Breach, Exit, LaunchError};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use crate::kit::Session;
use crate::{Test, cannot_run, exists};

pub(crate) const TESTS: &[Test] = &[
    ("limits::processes_are_refused_above_their_number", processes_are_refused_above_their_number),
    ("limits::a_fork_bomb_is_bounded_and_ends", a_fork_bomb_is_bounded_and_ends),
    ("limits::memory_of_all_processes_is_added_up", memory_of_all_processes_is_added_up),
    ("limits::shared_memory_is_bounded", shared_memory_is_bounded),
    ("limits::memory_that_no_process_has_is_counted", memory_that_no_process_has_is_counted),
    ("limits::segments_go_with_the_commands", segments_go_with_the_commands),
    ("limits::half_of_what_can_be_watched_is_the_users", half_of_what_can_be_watched_is_the_users),
    ("limits::descriptors_in_flight_do_not_end_a_session", descriptors_in_flight_do_not_end_a_session),
    ("limits::what_a_process_may_have_is_refused_to_it", what_a_process_may_have_is_refused_to_it),
    ("limits::processor_time_ends_with_its_own_signal", processor_time_ends_with_its_own_signal),
];

const MIB: u64 = 1 << 20;

fn with(limits: Limits) -> Session {
    Session::with(|_, wanted| wanted.limits = limits)
}

/// Runs a script and returns how it ended, its output, and the limit that it exceeded.
fn run(session: &Session, script: &str) -> (Exit, String, Option<Breach>) {
    let (running, mut output) = session.start(session.command(&["sh", "-c", script])).expect("sh starts");
    let mut text = String::new();
    std::io::Read::read_to_string(&mut output, &mut text).expect("output");
    (running.wait(), text, running.breach())
}

/// Returns true if the kernel refuses processes above the limit; otherwise they are counted, and the command is killed.
fn is_refused(session: &Session) -> bool {
    session.confinement.report().layers.contains(&(Layer::Limits, Force::Full))
}

fn processes_are_refused_above_their_number() {
    let session = with(Limits { processes: Some(60), ..Limits::default() });
    // The first 300 pids are used only once, so that many are added.
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
    // The pids are free again.
    session.allows("true");
    // A command that stays at its limit for a while reports so.
    let script = "i=0; while [ $i -lt 700 ]; do sleep 9 & i=$((i+1)); done >/dev/null 2>&1";
    let script = format!("({script}) ; exec sleep 2");
    let (_, _, breach) = run(&session, &script);
    assert!(breach.is_some(), "it was at its limit");
}

fn a_fork_bomb_is_bounded_and_ends() {
    let session = with(Limits { processes: Some(100), ..Limits::default() });
    let script = "echo ready; f() { f | f & }; f 2>/dev/null; exec sleep 9";
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
    // Memory that processes share counts once.
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

/// Memfds that are only written to, and segments that no process has mapped any more.
fn memory_that_no_process_has_is_counted() {
    if !exists("/usr/bin/perl") {
        return cannot_run("perl (package perl-base)");
    }
    let session = with(Limits { memory_bytes: Some(150 * MIB), ..Limits::default() });
    let file = |mib: u32| {
        format!(
            "perl -e '$n = q(x); $d = syscall({}, $n, 0); open(F, qq(>&=$d)) or die; $m = q(x) x (1 << 20); \
             for (1..{mib}) {{ syswrite(F, $m) == 1 << 20 or die }} sleep 1'",
            libc::SYS_memfd_create
        )
    };
    let segments = |mib: u32| {
        format!(
            "perl -e '$m = q(x) x (1 << 20); for (1..{mib}) {{ defined($i = shmget(0, 1 << 20, 0600)) or die; \
             push @all, $i; shmwrite($i, $m, 0, 1 << 20) or die }} sleep 1; shmctl($_, 0, 0) for @all'"
        )
    };
    for script in [file(60), segments(60)] {
        let (exit, _, breach) = run(&session, &script);
        assert_eq!((exit, breach), (Exit::Code(0), None), "it is below: {script}");
    }
    for script in [file(250), segments(250)] {
        let (exit, _, breach) = run(&session, &script);
        assert_eq!((exit, breach), (Exit::Signal(libc::SIGKILL), Some(Breach::Memory)), "{script}");
        assert!(session.control(&script), "control: {script}");
    }
}

fn segments_go_with_the_commands() {
    if !exists("/usr/bin/perl") {
        return cannot_run("perl (package perl-base)");
    }
    let session = Session::new();
    session.sh("perl -e 'defined(shmget(0, 4096, 0600)) or die'; wc -l < /proc/sysvipc/shm").assert(0, "2");
    session.sh("wc -l < /proc/sysvipc/shm").assert(0, "1");
}

fn half_of_what_can_be_watched_is_the_users() {
    if !exists("/usr/bin/perl") {
        return cannot_run("perl (package perl-base)");
    }
    let all = std::fs::read_to_string("/proc/sys/fs/inotify/max_user_instances").expect("a setting");
    let half: u32 = all.trim().parse::<u32>().expect("a number") / 2;
    let session = Session::new();
    let take = |count| {
        format!("perl -e 'for (1..{count}) {{ syscall({}, 0) >= 0 or die }}'", libc::SYS_inotify_init1)
    };
    session.allows(&take(half / 2));
    session.refuses(&take(half + 1));
}

/// The number of descriptors that a command keeps in flight, for a host with a lower limit of open ones.
const IN_FLIGHT: u64 = 300;

fn descriptors_in_flight_do_not_end_a_session() {
    let session = Session::new();
    let program = crate::attacks::visible_copy(&session);
    let count = IN_FLIGHT.to_string();
    let flood = session.command(&[&program, crate::attacks::ATTEMPT, "in-flight", &count]);
    let (running, mut output) = session.start(flood).expect("starts");
    std::io::Read::read_exact(&mut output, &mut [0; 6]).expect("it is ready");
    let own = getrlimit(Resource::Nofile);
    let few = Rlimit { current: Some(IN_FLIGHT / 2), ..own };
    setrlimit(Resource::Nofile, few).expect("fewer");
    let launched = session.run(session.command(&["true"]));
    setrlimit(Resource::Nofile, own).expect("as before");
    // Root is not limited.
    if !rustix::process::geteuid().is_root() {
        assert!(matches!(launched, Err(LaunchError::NotSent { .. })), "{launched:?}");
    }
    running.kill();
    running.wait();
    session.allows("true");
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

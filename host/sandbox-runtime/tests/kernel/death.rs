//! No process outlives its owner.

use std::fs;
use std::io::{BufRead, BufReader, Read};
use std::path::Path;
use std::process::{ExitCode, Stdio};
use std::time::{Duration, Instant};

use portcullis_sandbox_runtime::{Confinement, Exit, LaunchError};
use rustix::process::{Pid, Signal, kill_process, pidfd_send_signal};

use crate::Test;
use crate::kit::{self, Session, eventually};

pub(crate) const TESTS: &[Test] = &[
    ("death::the_end_of_a_command_ends_what_it_left", the_end_of_a_command_ends_what_it_left),
    ("death::kill_ends_the_whole_tree", kill_ends_the_whole_tree),
    ("death::a_dropped_command_is_killed", a_dropped_command_is_killed),
    ("death::the_end_of_the_session_ends_all", the_end_of_the_session_ends_all),
    ("death::a_killed_keeper_takes_all_with_it", a_killed_keeper_takes_all_with_it),
    ("death::a_killed_host_takes_all_with_it", a_killed_host_takes_all_with_it),
    ("death::a_stuck_broker_keeps_no_keeper", a_stuck_broker_keeps_no_keeper),
    ("death::the_view_is_closed_when_the_keeper_is_dead", the_view_is_closed_when_the_keeper_is_dead),
    ("death::nothing_is_left_in_the_hosts_mounts", nothing_is_left_in_the_hosts_mounts),
    ("death::a_failed_start_leaves_nothing", a_failed_start_leaves_nothing),
];

/// The argument with which this program is a host that waits to be killed.
pub(crate) const HOST: &str = "__host";

/// Starts many processes that try to survive: in other sessions, and ignoring signals.
const A_TREE: &str = "i=0; while [ $i -lt 20 ]; do setsid sleep MARK & (trap '' TERM HUP INT; exec nohup sleep MARK) \
                      2>/dev/null & i=$((i+1)); done; echo ready; ";

/// Returns a number of seconds that no other process sleeps for.
fn mark() -> String {
    use std::sync::atomic::{AtomicU32, Ordering};
    static LAST: AtomicU32 = AtomicU32::new(0);
    format!("{}.{}", 100_000 + std::process::id(), LAST.fetch_add(1, Ordering::Relaxed))
}

/// Counts the processes on this machine that sleep for the mark.
fn sleepers(mark: &str) -> usize {
    let processes = fs::read_dir("/proc").expect("readable").filter_map(Result::ok);
    let lines = processes.filter_map(|process| fs::read(process.path().join("cmdline")).ok());
    lines.filter(|line| line.windows(mark.len()).any(|part| part == mark.as_bytes())).count()
}

fn start_tree(session: &Session, mark: &str, then: &str) -> (portcullis_sandbox_runtime::Running, fs::File) {
    let script = format!("trap '' TERM; {}{then}", A_TREE.replace("MARK", mark));
    let (running, mut output) = session.start(session.command(&["sh", "-c", &script])).expect("starts");
    output.read_exact(&mut [0; 6]).expect("it is ready");
    eventually("control: the tree is seen while it lives", || sleepers(mark) >= 40);
    (running, output)
}

fn the_end_of_a_command_ends_what_it_left() {
    let (session, mark) = (Session::new(), mark());
    let (running, _output) = start_tree(&session, &mark, "sleep 1; exit 3");
    assert_eq!(running.wait(), Exit::Code(3));
    assert_eq!(sleepers(&mark), 0);
}

fn kill_ends_the_whole_tree() {
    let (session, mark) = (Session::new(), mark());
    let (running, _output) = start_tree(&session, &mark, "sleep 99");
    running.signal(libc::SIGTERM);
    assert_eq!(running.wait_timeout(Duration::from_millis(50)), None, "it is deaf");
    let start = Instant::now();
    running.kill();
    assert_eq!(running.wait(), Exit::Signal(libc::SIGKILL));
    assert!(start.elapsed() < Duration::from_millis(500));
    assert_eq!(sleepers(&mark), 0);
    session.allows("true");
}

fn a_dropped_command_is_killed() {
    let (session, mark) = (Session::new(), mark());
    let (running, _output) = start_tree(&session, &mark, "sleep 99");
    drop(running);
    eventually("the tree is gone", || sleepers(&mark) == 0);
}

fn the_end_of_the_session_ends_all() {
    let (session, mark) = (Session::new(), mark());
    let (running, _output) = start_tree(&session, &mark, "sleep 99");
    drop(session);
    assert_eq!(sleepers(&mark), 0);
    assert_eq!(running.wait(), Exit::Lost);
}

fn a_killed_keeper_takes_all_with_it() {
    let (session, mark) = (Session::new(), mark());
    let (running, _output) = start_tree(&session, &mark, "sleep 99");
    pidfd_send_signal(session.confinement.view().keeper(), Signal::KILL).expect("sent");
    assert_eq!(running.wait(), Exit::Lost);
    eventually("the tree is gone", || sleepers(&mark) == 0);
    let error = session.run(session.command(&["true"])).expect_err("there is no sandbox any more");
    assert!(matches!(error, LaunchError::Lost), "{error:?}");
}

fn a_killed_host_takes_all_with_it() {
    // On a busy machine the check takes longer than the deaths, so the best of several attempts counts.
    let best = (0..5).map(|_| time_to_die()).min().expect("five tries");
    assert!(best < Duration::from_millis(100), "it took {best:?}");
}

fn time_to_die() -> Duration {
    let mark = mark();
    let mut host = std::process::Command::new(kit::own_program())
        .args([HOST, &mark])
        .args(kit::walls())
        .stdout(Stdio::piped())
        .spawn()
        .expect("a host");
    let mut ready = String::new();
    BufReader::new(host.stdout.take().expect("a pipe")).read_line(&mut ready).expect("read");
    // A process that is just executing `sleep` is not visible for a moment.
    eventually("control: the tree is seen while it lives", || sleepers(&mark) >= 40);
    let start = Instant::now();
    host.kill().expect("killed");
    eventually("the tree is gone", || sleepers(&mark) == 0);
    let time = start.elapsed();
    host.wait().expect("reaped");
    fs::remove_dir_all(Path::new(ready.trim())).expect("nothing is mounted in it");
    time
}

/// A command that the broker is tracing, at the end of its execve, can only be reaped by the broker: a keeper that
/// waits for it would wait forever if the broker is stuck.
fn a_stuck_broker_keeps_no_keeper() {
    let mut host = std::process::Command::new(kit::own_program())
        .args([HOST, TRACED])
        .stdout(Stdio::piped())
        .spawn()
        .expect("a host");
    let mut said = String::new();
    BufReader::new(host.stdout.take().expect("a pipe")).read_line(&mut said).expect("read");
    let (keeper, place) = said.trim().split_once(' ').expect("two words");
    let (broker, traced) = stop_while_tracing(keeper);
    let is_there = |process: &str| status(process, "State:").is_some_and(|state| !state.starts_with('Z'));
    assert!(is_there(&broker) && is_there(&traced), "control: it is stuck");
    host.kill().expect("killed");
    host.wait().expect("reaped");
    eventually("all of it is gone", || ![keeper, &broker, &traced].into_iter().any(is_there));
    fs::remove_dir_all(Path::new(place)).expect("nothing is mounted in it");
}

/// Stops the broker of a keeper while it traces a process, and returns both.
fn stop_while_tracing(keeper: &str) -> (String, String) {
    let children = || fs::read_to_string(format!("/proc/{keeper}/task/{keeper}/children")).expect("readable");
    // The keeper creates it before there is any command.
    let broker = children().split_ascii_whitespace().next().expect("a broker").to_owned();
    let process = Pid::from_raw(broker.parse().expect("a number")).expect("a process");
    let threads = format!("/proc/{broker}/task");
    let mut traced = None;
    eventually("the broker is stopped while it traces a process", || {
        kill_process(process, Signal::STOP).expect("stopped");
        eventually("it has stopped", || {
            status(&broker, "State:").is_some_and(|state| state.starts_with('T'))
        });
        let is_thread = |tracer: &String| Path::new(&threads).join(tracer).exists();
        let numbers = fs::read_dir("/proc").expect("readable").filter_map(Result::ok);
        let mut numbers = numbers.filter_map(|entry| entry.file_name().into_string().ok());
        traced = numbers.find(|number| status(number, "TracerPid:").is_some_and(|tracer| is_thread(&tracer)));
        if traced.is_none() {
            kill_process(process, Signal::CONT).expect("goes on");
        }
        traced.is_some()
    });
    (broker, traced.expect("found"))
}

/// Returns a line of a process's `status`; `None` if it has ended.
fn status(process: &str, name: &str) -> Option<String> {
    let text = fs::read_to_string(format!("/proc/{process}/status")).ok()?;
    Some(text.lines().find_map(|line| line.strip_prefix(name))?.trim().to_owned())
}

/// Runs as a host whose command keeps executing programs, which the broker traces.
fn be_a_host_that_traces() -> ExitCode {
    let session = Session::with(|_, profile| {
        let rules = crate::names::rules("hide .no-such");
        profile.names =
            Some(portcullis_sandbox::NameRules { reads: portcullis_sandbox::Reads::Judged, ..rules });
    });
    let command = session.command(&["sh", "-c", "echo ready; while :; do /bin/true & /bin/true; done"]);
    let (_running, mut output) = session.start(command).expect("starts");
    output.read_exact(&mut [0; 6]).expect("it is ready");
    let own = std::process::id();
    let children = fs::read_to_string(format!("/proc/self/task/{own}/children")).expect("readable");
    println!("{} {}", children.trim(), session.place.path().display());
    loop {
        std::thread::sleep(Duration::from_secs(1));
    }
}

/// The argument of such a host.
const TRACED: &str = "traced";

/// Runs as a host with a session and a running command, until it is killed.
pub(crate) fn be_a_host(arguments: &[String]) -> ExitCode {
    kit::take_walls(arguments.get(1));
    if arguments[0] == TRACED {
        return be_a_host_that_traces();
    }
    let session = Session::new();
    let _running = start_tree(&session, &arguments[0], "sleep 99");
    println!("{}", session.place.path().display());
    loop {
        std::thread::sleep(Duration::from_secs(1));
    }
}

fn the_view_is_closed_when_the_keeper_is_dead() {
    let session = Session::new();
    let view = session.confinement.view();
    assert!(view.root().is_ok());
    pidfd_send_signal(view.keeper(), Signal::KILL).expect("sent");
    eventually("the view is closed", || view.root().is_err());
    drop(session);
    assert!(view.root().is_err());
}

fn nothing_is_left_in_the_hosts_mounts() {
    let mounts = || fs::read_to_string("/proc/self/mountinfo").expect("readable");
    let before = mounts();
    let session = Session::new();
    session.allows("true");
    assert_eq!(mounts(), before);
    let place = session.place.path().to_owned();
    drop(session);
    assert_eq!(mounts(), before);
    assert!(!place.exists());
}

fn a_failed_start_leaves_nothing() {
    let place = kit::make_place();
    let children = || {
        let own = format!("/proc/self/task/{}/children", std::process::id());
        fs::read_to_string(own).expect("readable")
    };
    let before = children();
    let mut wanted = kit::profile(place.path());
    wanted.hostname = "x".repeat(100);
    assert!(Confinement::start(&kit::own_program(), &wanted).is_err());
    assert!(Confinement::start(Path::new("/bin/false"), &kit::profile(place.path())).is_err());
    assert!(Confinement::start(Path::new("/no/such"), &kit::profile(place.path())).is_err());
    assert_eq!(children(), before);
}

//! Landlock rules hold where mounts do not.

use std::fs::{self, File, OpenOptions};
use std::io::Read;
use std::os::fd::OwnedFd;
use std::process::Stdio;

use portcullis_sandbox::{Force, Layer};
use portcullis_sandbox_runtime::Exit;

use crate::kit::{self, Session};
use crate::{Test, cannot_run};

pub(crate) const TESTS: &[Test] = &[
    ("below::a_file_to_read_cannot_be_written", a_file_to_read_cannot_be_written),
    ("below::a_file_to_write_can_be_opened_anew", a_file_to_write_can_be_opened_anew),
    ("below::a_directory_of_the_host_cannot_be_changed", a_directory_of_the_host_cannot_be_changed),
    ("below::one_command_is_not_given_the_files_of_another", one_command_is_not_given_the_files_of_another),
    ("below::the_init_gets_no_signals", the_init_gets_no_signals),
    ("below::abstract_sockets_stay_inside_a_command", abstract_sockets_stay_inside_a_command),
    ("below::terminals_take_requests", terminals_take_requests),
];

/// Reports if the kernel has less than these tests need.
fn is_full(session: &Session) -> bool {
    let full = session.confinement.report().layers.contains(&(Layer::Landlock, Force::Full));
    if !full {
        cannot_run("Landlock of Linux 6.12 or later");
    }
    full
}

/// Runs a script with a file of the host as standard input, inside or outside.
fn run(session: &Session, script: &str, input: File) -> bool {
    let (_read, write) = kit::pipe();
    let copy = write.try_clone().expect("a copy");
    let command = session.command(&["sh", "-c", script]);
    let running = session.confinement.launch(command, [input.into(), write, copy]).expect("sh starts");
    running.wait() == Exit::Code(0)
}

fn run_outside(script: &str, input: File) -> bool {
    let quiet = Stdio::null;
    let mut shell = std::process::Command::new("sh");
    let status = shell.args(["-c", script]).stdin(input).stdout(quiet()).stderr(quiet()).status();
    status.expect("sh runs").success()
}

fn a_file_to_read_cannot_be_written() {
    let session = Session::new();
    if !is_full(&session) {
        return;
    }
    let path = session.path("other");
    fs::write(&path, "content").expect("a file");
    let file = || File::open(&path).expect("a file");
    for script in ["echo x > /dev/stdin", "echo x >> /proc/self/fd/0", "truncate -s 0 /dev/stdin"] {
        assert!(!run(&session, script, file()), "{script}");
        assert_eq!(fs::read_to_string(&path).expect("read"), "content", "{script}");
        assert!(run_outside(script, file()), "control: {script}");
        fs::write(&path, "content").expect("a file");
    }
    assert!(run(&session, "test $(cat /dev/stdin) = content", file()));
}

fn a_file_to_write_can_be_opened_anew() {
    let session = Session::new();
    let path = session.path("log");
    let log: OwnedFd = OpenOptions::new().create(true).append(true).open(&path).expect("a file").into();
    let copy = || log.try_clone().expect("a copy");
    let command =
        session.command(&["sh", "-c", "echo one; echo two >> /dev/stdout; echo three | tee -a /dev/stderr"]);
    let running = session.confinement.launch(command, [kit::null(), copy(), copy()]).expect("starts");
    assert_eq!(running.wait(), Exit::Code(0));
    assert_eq!(fs::read_to_string(&path).expect("read"), "one\ntwo\nthree\nthree\n");
}

fn a_directory_of_the_host_cannot_be_changed() {
    let session = Session::new();
    if !is_full(&session) {
        return;
    }
    let directory = || File::open(session.place.path()).expect("a directory");
    for script in ["echo x > new", "mkdir d", "rm home/open/file", "echo x >> secret/key", "mv home work/"] {
        let script = format!("cd /proc/self/fd/0/ && {script}");
        assert!(!run(&session, &script, directory()), "{script}");
        assert!(run_outside(&script, directory()), "control: {script}");
    }
    // The workspace, too, can only be written through the session's own mounts.
    assert!(!run(&session, "cd /proc/self/fd/0/work && echo x > file", directory()));
}

fn one_command_is_not_given_the_files_of_another() {
    let session = Session::new();
    if !is_full(&session) {
        return;
    }
    let path = session.path("log");
    let file = |write: bool| {
        let mut options = OpenOptions::new();
        options.read(true).write(write).create(write).open(&path).expect("a file")
    };
    assert!(run(&session, "echo x > /dev/stdin", file(true)));
    assert!(!run(&session, "echo x > /dev/stdin", file(false)));
    assert!(run_outside("echo x > /dev/stdin", file(false)), "control");
}

fn the_init_gets_no_signals() {
    let session = Session::new();
    if !is_full(&session) {
        return;
    }
    session.sh("kill -0 1").assert_fails();
    session.sh("sleep 9 & kill -0 $! && kill $!; { wait $!; } 2>/dev/null; test $? = 143").assert(0, "");
}

fn abstract_sockets_stay_inside_a_command() {
    let session = Session::new();
    if !is_full(&session) {
        return;
    }
    let program = crate::attacks::visible_copy(&session);
    let attempt = |how: &str| session.command(&[&program, crate::attacks::ATTEMPT, how, "portcullis-inside"]);
    let (running, mut output) = session.start(attempt("abstract-listen")).expect("starts");
    output.read_exact(&mut [0; 6]).expect("it is ready");
    assert_ne!(session.run(attempt("abstract")).expect("starts").exit, Exit::Code(0));
    running.kill();
    running.wait();
    assert_eq!(session.run(attempt("abstract-echo")).expect("starts").exit, Exit::Code(0));
}

fn terminals_take_requests() {
    if !crate::exists("/usr/bin/script") {
        return cannot_run("`script` for a terminal (package bsdutils)");
    }
    let session = Session::new();
    // Opened again by its own name and by the common one, and queried for its size.
    let script = "script -qec 'stty rows 7 < /dev/tty && stty size < $(tty)' /dev/null";
    assert!(session.sh(script).output.starts_with("7 "), "{:?}", session.sh(script));
}

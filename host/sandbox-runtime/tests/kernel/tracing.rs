//! Debuggers: a process may trace others of its own command, and gains nothing by it.

use portcullis_sandbox::{NameRules, Reads};
use portcullis_sandbox_runtime::Exit;

use crate::kit::Session;
use crate::names::rules;
use crate::{Test, cannot_run, exists};

pub(crate) const TESTS: &[Test] = &[
    ("tracing::a_child_is_traced", a_child_is_traced),
    ("tracing::a_call_that_a_tracer_makes_of_another_is_judged", changed_calls_are_judged),
    ("tracing::a_name_that_a_tracer_writes_is_judged", changed_names_are_judged),
    ("tracing::the_init_and_the_filter_stay_out_of_reach", the_init_and_the_filter_stay_out_of_reach),
    ("tracing::the_init_traces_nobody", the_init_traces_nobody),
    ("tracing::nobody_traces_where_reading_is_judged", nobody_traces_where_reading_is_judged),
];

/// Perl that starts a traced child: it stops, and then does what `$child` holds. `trace` is the system call.
const TRACED: &str = r#"
    sub trace { syscall(101, @_) }
    # Returns the status of a child, which Perl itself leaves out when it has stopped.
    sub status { my $p = shift; my $b = "\0" x 4; syscall(61, $p, $b, 0, 0); unpack("l", $b) }
    sub stops { (status(shift) & 0xff) == 0x7f }
    sub traced { my $child = shift; my $p = fork // die; if (!$p) { trace(0, 0, 0, 0) == 0 or exit 9; kill "STOP", $$; $child->() }
        stops($p) or exit 8; $p }
    sub register { my $b = "\0" x 8; trace(3, $_[0], $_[1] * 8, $b); unpack("q", $b) }
    # Runs to the entry of a call.
    sub until_call { my ($p, $number) = @_; while (1) { trace(24, $p, 0, 0); stops($p) or exit 7;
        return if register($p, 15) == $number } }
    sub ended { my $p = shift; while (1) { trace(7, $p, 0, 0); my $s = status($p); ($s & 0xff) == 0x7f or exit($s >> 8) } }
"#;

fn perl(script: &str) -> String {
    format!("perl -e '{TRACED}{script}'")
}

/// Returns true if these tests can run: registers have the numbers of this architecture.
fn can_run() -> bool {
    let can = cfg!(target_arch = "x86_64") && exists("/usr/bin/perl");
    if !can {
        cannot_run("perl (package perl-base), on x86-64");
    }
    can
}

fn a_child_is_traced() {
    if can_run() {
        Session::new().sh(&perl("ended(traced(sub { exit 33 }))")).assert(33, "");
    }
}

/// Call 110 is getppid(2), and becomes unshare(2).
fn changed_calls_are_judged() {
    if !can_run() {
        return;
    }
    let script = perl(
        "my $p = traced(sub { my $r = syscall(110); exit($r == -1 ? $! + 0 : 0) }); until_call($p, 110); \
         trace(6, $p, 15 * 8, 272); trace(6, $p, 14 * 8, 0); ended($p)",
    );
    let session = Session::new();
    session.sh(&script).assert(1, "");
    assert!(session.control(&script), "control: unshare(2) of nothing succeeds");
}

/// Call 83 is mkdir(2); its path is written over when the call has begun.
fn changed_names_are_judged() {
    if !can_run() {
        return;
    }
    let script = perl(
        "my $p = traced(sub { my $path = \"good\"; my $r = syscall(83, $path, 0755); exit($r == -1 ? 1 : 0) }); \
         until_call($p, 83); trace(5, $p, register($p, 14), unpack(\"q\", \"bad\\0\\0\\0\\0\\0\")); ended($p)",
    );
    let session = Session::with(|_, profile| profile.names = Some(rules("refuse bad")));
    session.sh(&format!("{script}; test -e bad")).assert_fails();
    assert!(session.control(&format!("{script} && test -d bad && rmdir bad")), "control: it is made");
}

/// The request 0x4206 attaches; the option 1 << 21 would switch a filter off.
fn the_init_and_the_filter_stay_out_of_reach() {
    if !can_run() {
        return;
    }
    let session = Session::new();
    session.sh(&perl("exit(trace(0x4206, 1, 0, 0) == -1 ? $! + 0 : 0)")).assert(1, "");
    session.sh(&perl("exit(trace(16, 1, 0, 0) == -1 ? $! + 0 : 0)")).assert(1, "");
    let option = "my $p = traced(sub { exit 0 }); my $r = trace(0x4200, $p, 0, 1 << 21); kill 9, $p; exit($r == -1 ? 3 : 0)";
    session.sh(&perl(option)).assert(3, "");
}

/// A command that asks to be traced by its parent stands still until it is killed, and nothing is taken for its end.
fn the_init_traces_nobody() {
    if !can_run() {
        return;
    }
    let session = Session::new();
    let stopped = "perl -e 'syscall(101, 0, 0, 0, 0); kill \"STOP\", $$; exit 5'";
    let ended = session.sh(&format!("(sleep 0.3; kill -9 $$) & exec {stopped}"));
    assert_eq!(ended.exit, Exit::Signal(9), "{ended:?}");
    session.allows("true");
}

fn nobody_traces_where_reading_is_judged() {
    if !can_run() {
        return;
    }
    let session = Session::with(|_, profile| {
        profile.names = Some(NameRules { reads: Reads::Judged, ..rules("hide .pem") });
    });
    session.sh(&perl("ended(traced(sub { exit 33 }))")).assert_fails();
}

//! Probes find what a machine lacks, and no start on it is half completed.

use std::process::{Command, Stdio};

use portcullis_sandbox::{Finding, Primitive, Tier, advice};
use portcullis_sandbox_runtime::{Confinement, Exit, PROBE_ARGUMENT, StartError, probe, read_facts};
use portcullis_sys::seccomp::{Handing, Instruction, load};

use crate::Test;
use crate::kit::{self, Session};

pub(crate) const TESTS: &[Test] = &[
    ("probes::this_machine_gives_everything", this_machine_gives_everything),
    ("probes::a_filter_like_a_containers_is_found", a_filter_like_a_containers_is_found),
    ("probes::another_listener_is_found", another_listener_is_found),
    ("probes::a_limit_on_namespaces_is_found", a_limit_on_namespaces_is_found),
];

/// The argument with which this program loads a filter and then probes.
pub(crate) const FILTERED: &str = "__filtered";
/// The argument with which this program listens to system calls and then probes.
pub(crate) const LISTENED: &str = "__listened";
/// The argument with which this program only probes.
pub(crate) const PROBING: &str = "__probing";

fn this_machine_gives_everything() {
    for Finding { primitive, outcome } in probe(&kit::own_program()) {
        // Control groups depend on the machine; the kernels of the tests give them to version 1.
        let is_free = primitive == Primitive::ControlGroup;
        assert!(is_free || outcome.is_ok(), "{primitive:?}: {outcome:?}");
    }
    assert_eq!(Session::new().confinement.report().tier(), Tier::Full);
    let unknown = Command::new(kit::own_program()).args([PROBE_ARGUMENT, "no-such"]).status().expect("runs");
    assert!(!unknown.success());
}

fn a_filter_like_a_containers_is_found() {
    let said = run(Command::new(kit::own_program()).arg(FILTERED));
    for line in ["user-namespace 1", "mounts 1", "proc 1", "landlock ok", "filter ok", "start refused 1"] {
        assert!(said.contains(line), "{line}: {said}");
    }
    assert!(said.contains("filter of system calls"), "{said}");
    assert_stands_without(&said);
}

fn another_listener_is_found() {
    let said = run(Command::new(kit::own_program()).arg(LISTENED));
    for line in [
        "user-namespace ok",
        "filter ok",
        "listener 16",
        "landlock ok",
        "start refused 16",
        "without refused 16",
    ] {
        assert!(said.contains(line), "{line}: {said}");
    }
}

fn a_limit_on_namespaces_is_found() {
    if !crate::exists("/usr/bin/unshare") {
        return crate::cannot_run("`unshare` (package util-linux)");
    }
    let script = "echo 0 > /proc/sys/user/max_user_namespaces && exec \"$@\"";
    let mut command = Command::new("unshare");
    command.args(["-Ur", "sh", "-c", script, "sh"]).arg(kit::own_program()).arg(PROBING);
    let said = run(&mut command);
    for line in ["user-namespace 28", "mounts 28", "landlock ok", "start refused 28"] {
        assert!(said.contains(line), "{line}: {said}");
    }
    assert!(said.contains("user.max_user_namespaces is 0"), "{said}");
    assert_stands_without(&said);
}

/// Without namespaces the sandbox of Landlock still starts and holds.
#[track_caller]
fn assert_stands_without(said: &str) {
    for line in
        ["scopes ok", "listener ok", "tier landlock", "without ok", "inside written", "outside closed"]
    {
        assert!(said.contains(line), "{line}: {said}");
    }
}

/// Prints the result of a start without namespaces, and whether the sandbox holds.
fn report_without(place: &std::path::Path) {
    match Confinement::start_without_namespaces(&kit::own_program(), &kit::profile(place)) {
        Ok(confinement) => println!("without ok\ntier {}", confinement.report().tier()),
        Err(StartError::Refused { source, .. }) => {
            return println!("without refused {}", source.raw_os_error().unwrap_or_default());
        }
        Err(other) => return println!("without failed {other:?}"),
    }
    kit::without_namespaces(|| {
        let session = Session::new();
        let works = |script: &str| session.sh(script).exit == Exit::Code(0);
        println!("inside {}", if works("echo x > new && git init -q r") { "written" } else { "closed" });
        let attacks =
            ["echo x > $P/home/new", "cat $P/secret/key", "git init -q s && echo x > s/.git/hooks/h"];
        let is_open = attacks.iter().any(|attack| works(attack));
        println!("outside {}", if is_open { "OPEN" } else { "closed" });
    });
}

fn run(command: &mut Command) -> String {
    let output = command.stdin(Stdio::null()).output().expect("runs");
    assert!(output.status.success(), "{output:?}");
    String::from_utf8(output.stdout).expect("text")
}

/// Prints the results of the probes, and of a start.
pub(crate) fn report() -> std::process::ExitCode {
    let facts = read_facts();
    for finding in probe(&kit::own_program()) {
        let outcome = match &finding.outcome {
            Ok(text) => format!("ok {text}"),
            Err(refused) => refused.errno.to_string(),
        };
        println!("{} {outcome}", finding.primitive.name());
        if let Some(advice) = advice(&finding, &facts).filter(|_| finding.primitive == Primitive::Mounts) {
            println!("{advice:?}");
        }
    }
    let place = kit::make_place();
    match Confinement::start(&kit::own_program(), &kit::profile(place.path())) {
        Ok(_) => println!("start"),
        Err(StartError::Refused { source, .. }) => {
            println!("start refused {}", source.raw_os_error().unwrap_or_default());
        }
        Err(other) => println!("start failed {other:?}"),
    }
    report_without(place.path());
    std::process::ExitCode::SUCCESS
}

/// Refuses what Docker's default filter refuses, with the same errors, and reports.
pub(crate) fn report_under_filter() -> std::process::ExitCode {
    const LOAD_WORD: u16 = 0x20;
    const JUMP_IF_EQUAL: u16 = 0x15;
    const JUMP_IF_BITS_SET: u16 = 0x45;
    const RETURN: u16 = 0x06;
    let instruction = |code, jt, jf, k| Instruction { code, jt, jf, k };
    let answer = |errno: i32| instruction(RETURN, 0, 0, libc::SECCOMP_RET_ERRNO | errno.cast_unsigned());
    let equal = |number: i64, otherwise| {
        instruction(JUMP_IF_EQUAL, 0, otherwise, u32::try_from(number).expect("a small number"))
    };
    let new_namespaces = libc::CLONE_NEWUSER | libc::CLONE_NEWNS | libc::CLONE_NEWPID | libc::CLONE_NEWNET;
    let mut program = vec![instruction(LOAD_WORD, 0, 0, 0)];
    for number in [
        libc::SYS_mount,
        libc::SYS_umount2,
        libc::SYS_unshare,
        libc::SYS_setns,
        libc::SYS_fsopen,
        libc::SYS_open_tree,
        libc::SYS_move_mount,
        libc::SYS_mount_setattr,
    ] {
        program.extend([equal(number, 1), answer(libc::EPERM)]);
    }
    program.extend([
        equal(libc::SYS_clone3, 1),
        answer(libc::ENOSYS),
        equal(libc::SYS_clone, 3),
        // The low half of the first argument.
        instruction(LOAD_WORD, 0, 0, 16),
        instruction(JUMP_IF_BITS_SET, 0, 1, new_namespaces.cast_unsigned()),
        answer(libc::EPERM),
        instruction(RETURN, 0, 0, libc::SECCOMP_RET_ALLOW),
    ]);
    rustix::thread::set_no_new_privs(true).expect("no new privileges");
    load(&program, Handing::None).expect("loaded");
    report()
}

/// Another program already listens to system calls, as some container runtimes do.
pub(crate) fn report_under_a_listener() -> std::process::ExitCode {
    rustix::thread::set_no_new_privs(true).expect("no new privileges");
    let all = Instruction { code: 0x06, jt: 0, jf: 0, k: libc::SECCOMP_RET_ALLOW };
    let _listener = load(&[all], Handing::ToListener).expect("loaded");
    report()
}

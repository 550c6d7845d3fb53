//! Starting and ending commands, and their input and environment.

use std::ffi::OsString;
use std::fs;
use std::io::{Read, Write};
use std::os::unix::ffi::OsStringExt;
use std::os::unix::fs::PermissionsExt;
use std::time::{Duration, Instant};

use portcullis_sandbox::{Force, Layer, Limits};
use portcullis_sandbox_runtime::{Exit, LaunchError};

use crate::Test;
use crate::kit::{self, Session};

pub(crate) const TESTS: &[Test] = &[
    ("commands::exit_codes_are_passed_on", exit_codes_are_passed_on),
    ("commands::what_cannot_be_started_says_why", what_cannot_be_started_says_why),
    ("commands::signals_end_commands_as_outside", signals_end_commands_as_outside),
    ("commands::handled_signals_are_handled", handled_signals_are_handled),
    ("commands::signals_have_their_default_meaning", signals_have_their_default_meaning),
    ("commands::orphans_are_reaped", orphans_are_reaped),
    ("commands::the_environment_is_what_was_given", the_environment_is_what_was_given),
    ("commands::it_starts_where_it_is_told", it_starts_where_it_is_told),
    ("commands::long_scripts_arrive_whole", long_scripts_arrive_whole),
    ("commands::input_and_both_outputs_are_connected", input_and_both_outputs_are_connected),
    ("commands::it_has_no_other_descriptors", it_has_no_other_descriptors),
    ("commands::it_has_a_session_of_its_own", it_has_a_session_of_its_own),
    ("commands::the_user_is_the_same", the_user_is_the_same),
    ("commands::limits_hold", limits_hold),
    ("commands::eight_at_once_do_not_mix", eight_at_once_do_not_mix),
    ("commands::several_threads_can_wait", several_threads_can_wait),
    ("commands::ends_are_told_to_whom_they_concern", ends_are_told_to_whom_they_concern),
    ("commands::two_hundred_leave_nothing_behind", two_hundred_leave_nothing_behind),
    ("commands::a_thousand_cost_no_memory", a_thousand_cost_no_memory),
    ("commands::a_closed_output_is_seen_before_the_end", a_closed_output_is_seen_before_the_end),
    ("commands::killed_at_any_moment_others_live", killed_at_any_moment_others_live),
    ("commands::the_report_tells_what_is_in_force", the_report_tells_what_is_in_force),
];

fn exit_codes_are_passed_on() {
    let session = Session::new();
    for code in [0, 1, 3, 126, 127, 255] {
        assert_eq!(session.sh(&format!("exit {code}")).exit, Exit::Code(code));
    }
}

fn what_cannot_be_started_says_why() {
    let session = Session::new();
    fs::write(session.path("work/plain"), "#!/bin/sh\n").expect("a file");
    fs::set_permissions(session.path("work/plain"), PermissionsExt::from_mode(0o644)).expect("permissions");
    let launch = |argv: &[&str]| session.run(session.command(argv)).expect_err("not started");
    for missing in ["no-such-program", "/no/such", "./no-such", ""] {
        let error = launch(&[missing]);
        assert_eq!(error.exit_code(), 127, "{missing:?}: {error:?}");
        assert!(matches!(error, LaunchError::NotFound { .. }));
    }
    for unfit in ["./plain", "/usr", "/etc/passwd"] {
        let error = launch(&[unfit]);
        assert_eq!(error.exit_code(), 126, "{unfit:?}: {error:?}");
        assert!(matches!(error, LaunchError::NotExecutable { .. }));
    }
    for malformed in [&[][..], &["sh", "a\0b"]] {
        assert!(matches!(launch(malformed), LaunchError::Malformed { .. }));
    }
    let mut nowhere = session.command(&["true"]);
    nowhere.cwd = session.path("secret/deep");
    let error = session.run(nowhere).expect_err("not started");
    assert!(matches!(error, LaunchError::Directory { .. }), "{error:?}");
    assert_eq!(error.exit_code(), 125);
    session.allows("true");
}

fn signals_end_commands_as_outside() {
    let session = Session::new();
    for (signal, code) in [("TERM", 143), ("SEGV", 139), ("KILL", 137), ("ABRT", 134), ("HUP", 129)] {
        let exit = session.sh(&format!("kill -{signal} $$; sleep 5")).exit;
        assert_eq!(exit.shell_code(), code);
        assert_eq!(exit, Exit::Signal(code - 128));
    }
}

fn handled_signals_are_handled() {
    let session = Session::new();
    let script = "trap 'exit 5' TERM; echo ready; while :; do sleep 0.01; done";
    let (running, mut output) = session.start(session.command(&["sh", "-c", script])).expect("starts");
    output.read_exact(&mut [0; 6]).expect("it is ready");
    assert_eq!(running.wait_timeout(Duration::from_millis(20)), None);
    running.signal(0);
    running.signal(-1);
    running.signal(4096);
    running.signal(libc::SIGTERM);
    assert_eq!(running.wait(), Exit::Code(5));
    running.signal(libc::SIGTERM);
}

fn signals_have_their_default_meaning() {
    let session = Session::new();
    // A writer whose reader has closed the pipe is ended by SIGPIPE, which Rust programs ignore.
    let outcome = session.sh("(yes; echo $? >&2) | head -n1; grep -E 'Sig(Blk|Ign)' /proc/self/status");
    assert!(outcome.output.contains("141"), "{outcome:?}");
    // glibc's posix_spawn leaves its own two signals, 32 and 33, ignored, outside the sandbox as well.
    let masks: Vec<u64> = outcome
        .output
        .lines()
        .filter_map(|line| u64::from_str_radix(line.split_once(":\t")?.1, 16).ok())
        .collect();
    assert!(matches!(masks[..], [0, ignored] if ignored & !(0b11 << 31) == 0), "{outcome:?}");
}

fn orphans_are_reaped() {
    let session = Session::new();
    let script = "i=0; while [ $i -lt 300 ]; do (sleep 0.01 &); i=$((i+1)); done; sleep 0.3; \
                  grep -l 'State:.Z' /proc/[0-9]*/status | wc -l; ls -d /proc/[0-9]* | wc -l";
    // Its init, the shell, ls and wc, and the subshell of the pipe.
    let outcome = session.sh(script);
    let counts: Vec<u32> =
        outcome.output.split_whitespace().map(|count| count.parse().expect("a number")).collect();
    assert!(matches!(counts[..], [0, ..=5]), "{outcome:?}");
}

fn the_environment_is_what_was_given() {
    let session = Session::new();
    let mut command = session.command(&["/usr/bin/env", "-0"]);
    command.env = vec![
        ("Z".into(), "1".into()),
        ("A".into(), "with = and\nline".into()),
        ("BASH_FUNC_f%%".into(), OsString::from_vec(vec![0xff])),
        ("EMPTY".into(), OsString::new()),
    ];
    let (running, mut output) = session.start(command).expect("starts");
    let mut bytes = Vec::new();
    output.read_to_end(&mut bytes).expect("output");
    assert_eq!(running.wait(), Exit::Code(0));
    assert_eq!(bytes, b"Z=1\0A=with = and\nline\0BASH_FUNC_f%%=\xff\0EMPTY=\0");
}

fn it_starts_where_it_is_told() {
    let session = Session::new();
    let mut command = session.command(&["/bin/pwd"]);
    command.cwd = session.path("work/sub");
    let outcome = session.run(command).expect("starts");
    outcome.assert(0, &session.path("work/sub").display().to_string());
}

fn long_scripts_arrive_whole() {
    let session = Session::new();
    for kilobytes in [10, 40, 100] {
        let script = format!("exit 3 #{}", "x".repeat(kilobytes * 1024));
        assert_eq!(session.sh(&script).exit, Exit::Code(3));
    }
    // One argument cannot be longer than 128 KiB on Linux, but there can be many.
    let mut command = session.command(&["sh", "-c", "echo $#", "sh"]);
    command.argv.extend((0..20).map(|_| OsString::from("y".repeat(100_000))));
    session.run(command).expect("starts").assert(0, "20");
    let too_long = session.run(session.command(&["true", &"z".repeat(200_000)])).expect_err("too long");
    assert!(matches!(too_long, LaunchError::NotExecutable { .. }), "{too_long:?}");
    session.sh_reading("sh", &format!("exit 4 #{}", "x".repeat(2 * 1024 * 1024))).assert(4, "");
}

fn input_and_both_outputs_are_connected() {
    let session = Session::new();
    session.sh_reading("cat; echo err >&2", "some text\n").assert(0, "some text\nerr");
    let (out_read, out) = kit::pipe();
    let (error_read, error) = kit::pipe();
    let command = session.command(&["sh", "-c", "echo out; echo err >&2; echo again > /dev/stdout"]);
    let running = session.confinement.launch(command, [kit::null(), out, error]).expect("starts");
    let read = |end| {
        let mut text = String::new();
        fs::File::from(end).read_to_string(&mut text).map(|_| text).expect("output")
    };
    assert_eq!((read(out_read), read(error_read)), ("out\nagain\n".into(), "err\n".into()));
    assert_eq!(running.wait(), Exit::Code(0));
}

fn it_has_no_other_descriptors() {
    let session = Session::new();
    // The fourth is the directory that ls reads.
    session.sh("ls /proc/self/fd | tr '\\n' ' '").assert(0, "0 1 2 3");
    // The descriptors of its init cannot be inspected; root sees their numbers, if there are any.
    session.sh("for f in /proc/1/fd/*; do readlink $f && exit; done; exit 1").assert_fails();
}

fn it_has_a_session_of_its_own() {
    let session = Session::new();
    // Pid, process group and session of the command: 2, below its init.
    session.sh("cut -d' ' -f1,4,5,6,7 /proc/$$/stat").assert(0, "2 1 2 2 0");
    session.sh("echo x > /dev/tty").assert_fails();
}

fn the_user_is_the_same() {
    let session = Session::new();
    let (uid, gid) = (rustix::process::geteuid().as_raw(), rustix::process::getegid().as_raw());
    session.sh("id -u; id -g; uname -n").assert(0, &format!("{uid}\n{gid}\nbox"));
    session
        .sh("grep -E '^(Cap|NoNewPrivs|Seccomp:)' /proc/self/status | cut -f2 | sort -u | tr '\\n' ' '")
        .assert(0, "0000000000000000 1 2");
}

fn limits_hold() {
    let session = Session::with(|_, wanted| {
        wanted.limits = Limits { open_files: Some(64), file_bytes: Some(1 << 20), ..Limits::default() };
    });
    session.sh("ulimit -n; ulimit -Hn; ulimit -c; ulimit -Hc").assert(0, "64\n64\n0\n0");
    let mut command = session.command(&["sh", "-c", "ulimit -n; ulimit -t"]);
    command.limits = Limits { open_files: Some(1000), cpu_seconds: Some(7), ..Limits::default() };
    session.run(command).expect("starts").assert(0, "64\n7");
    let too_big = session.sh("head -c 2000000 /dev/zero > big; stat -c %s big");
    assert!(too_big.output.trim().ends_with("1048576"), "{too_big:?}");
}

fn eight_at_once_do_not_mix() {
    let session = Session::new();
    std::thread::scope(|scope| {
        for number in 10..18 {
            let session = &session;
            scope.spawn(move || {
                let script = format!(
                    "for i in 1 2 3 4 5 6 7 8 9; do echo {number} >> f{number}; done; \
                                      cat f{number} | sort -u; exit {number}"
                );
                session.sh(&script).assert(number, &number.to_string());
            });
        }
    });
}

fn several_threads_can_wait() {
    let session = Session::new();
    let (running, _output) = session.start(session.command(&["sleep", "9"])).expect("starts");
    std::thread::scope(|scope| {
        let waiters = [scope.spawn(|| running.wait()), scope.spawn(|| running.wait())];
        running.kill();
        for waiter in waiters {
            assert_eq!(waiter.join().expect("no panic"), Exit::Signal(libc::SIGKILL));
        }
    });
}

fn ends_are_told_to_whom_they_concern() {
    let session = Session::new();
    let start = |seconds: &str| session.start(session.command(&["sleep", seconds])).expect("starts");
    // No thread waited when it ended, and other commands ran since.
    let (early, _output) = start("0");
    session.allows("true; sleep 0.05");
    assert_eq!(early.wait_timeout(Duration::ZERO), Some(Exit::Code(0)));
    let (long, _output) = start("99");
    let (short, _output) = start("0.3");
    std::thread::scope(|scope| {
        let first = scope.spawn(|| long.wait());
        std::thread::sleep(Duration::from_millis(20));
        assert_eq!(short.wait_timeout(Duration::ZERO), None);
        assert_eq!(short.wait_timeout(Duration::from_millis(20)), None);
        let second = scope.spawn(|| short.wait());
        assert_eq!(short.wait(), Exit::Code(0));
        assert_eq!(second.join().expect("no panic"), Exit::Code(0));
        long.kill();
        assert_eq!(first.join().expect("no panic"), Exit::Signal(libc::SIGKILL));
    });
    // The first waiter returns first.
    let (one, _output) = start("0.1");
    let (other, _output) = start("0.3");
    std::thread::scope(|scope| {
        let first = scope.spawn(|| one.wait());
        std::thread::sleep(Duration::from_millis(20));
        let second = scope.spawn(|| other.wait_timeout(Duration::from_secs(9)));
        assert_eq!(first.join().expect("no panic"), Exit::Code(0));
        assert_eq!(second.join().expect("no panic"), Some(Exit::Code(0)));
    });
}

fn two_hundred_leave_nothing_behind() {
    let session = Session::new();
    let descriptors = || fs::read_dir("/proc/self/fd").expect("readable").count();
    let mounts = || fs::read_to_string("/proc/self/mountinfo").expect("readable");
    // The keeper's open descriptors change the numbers of new ones, so they are counted from outside, as root.
    let keepers = || keeper_descriptors(&session);
    session.allows("true");
    let before = (descriptors(), keepers(), mounts());
    for round in 0..200 {
        let program = if round % 10 == 0 { "no-such-program" } else { "true" };
        assert_eq!(session.run(session.command(&[program])).is_ok(), program == "true");
    }
    // The keeper and the last command's threads close theirs a moment after the command's end was told.
    let deadline = Instant::now() + Duration::from_secs(10);
    while (descriptors() > before.0 || keepers() > before.1) && Instant::now() < deadline {
        std::thread::sleep(Duration::from_millis(10));
    }
    let after = (descriptors(), keepers(), mounts());
    assert!(after.0 <= before.0 && after.1 <= before.1, "more descriptors: {before:?}, then {after:?}");
    assert_eq!(after.2, before.2);
}

/// Counts the keeper's open descriptors; `None` for an ordinary user, who may not see them.
fn keeper_descriptors(session: &Session) -> Option<usize> {
    Some(fs::read_dir(format!("/proc/{}/fd", keeper_pid(session))).ok()?.count())
}

fn keeper_pid(session: &Session) -> String {
    let view = session.confinement.view();
    let number = std::os::fd::AsRawFd::as_raw_fd(&view.keeper());
    let info = fs::read_to_string(format!("/proc/self/fdinfo/{number}")).expect("readable");
    info.lines().find_map(|line| line.strip_prefix("Pid:")).expect("a pidfd").trim().to_owned()
}

fn a_thousand_cost_no_memory() {
    let session = Session::new();
    let status = format!("/proc/{}/status", keeper_pid(&session));
    // The whole address space: it would show a leaked stack, although hardly any of it was touched.
    let kilobytes = || -> u64 {
        let status = fs::read_to_string(&status).expect("readable");
        let line = status.lines().find_map(|line| line.strip_prefix("VmSize:")).expect("a size");
        line.trim().trim_end_matches(" kB").parse().expect("a number")
    };
    let run = |count| (0..count).for_each(|_| drop(session.run(session.command(&["true"]))));
    run(50);
    let before = kilobytes();
    run(1000);
    assert!(kilobytes() <= before + 512, "from {before} to {} KiB", kilobytes());
}

fn a_closed_output_is_seen_before_the_end() {
    let session = Session::new();
    let script = "echo x; exec > /dev/null 2>&1; sleep 99";
    let (running, mut output) = session.start(session.command(&["sh", "-c", script])).expect("starts");
    let mut text = String::new();
    output.read_to_string(&mut text).expect("output");
    assert_eq!((text.as_str(), running.wait_timeout(Duration::ZERO)), ("x\n", None));
}

fn killed_at_any_moment_others_live() {
    let session = Session::new();
    std::thread::scope(|scope| {
        for thread in 0..4_u32 {
            let session = &session;
            scope.spawn(move || {
                for round in 0..40_u32 {
                    let script = "echo ready; (sleep 9 &); sleep 9";
                    let command = session.command(&["sh", "-c", script]);
                    let (running, _output) = session.start(command).expect("starts");
                    std::thread::sleep(Duration::from_micros(u64::from(round * 50 + thread)));
                    running.kill();
                    assert_eq!(running.wait(), Exit::Signal(libc::SIGKILL));
                    session.sh("exit 5").assert(5, "");
                }
            });
        }
    });
}

fn the_report_tells_what_is_in_force() {
    let session = Session::new();
    let report = session.confinement.report();
    assert!(report.layers.contains(&(Layer::Seccomp, Force::Full)));
    assert!(report.to_string().contains("mounts: full"));
    let start = Instant::now();
    std::io::stdout().flush().expect("flushed");
    drop(session);
    assert!(start.elapsed() < Duration::from_secs(2), "the end does not take long");
}

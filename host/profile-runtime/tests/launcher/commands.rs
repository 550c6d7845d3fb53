//! Commands: their limits, signals and ends.

use std::process::{ExitCode, Stdio};
use std::time::{Duration, Instant};

use portcullis_each_user::{Test, has_ended};
use portcullis_sandbox::Limits;
use portcullis_sandbox_runtime::Exit;

use crate::kit::{CONFINES, Ground};

pub(crate) const TESTS: &[Test] = &[
    ("a_command_runs_confined", a_command_runs_confined),
    ("it_ends_as_it_ended", it_ends_as_it_ended),
    ("its_limits_hold", its_limits_hold),
    ("it_has_no_terminal", it_has_no_terminal),
    ("a_signal_is_for_the_command", a_signal_is_for_the_command),
    ("what_it_leaves_behind_ends_with_it", what_it_leaves_behind_ends_with_it),
    ("killing_it_kills_its_group", killing_it_kills_its_group),
    ("it_ends_with_its_host", it_ends_with_its_host),
];

/// The argument of a process that starts a command and is then killed.
pub(crate) const HOST: &str = "__host";

fn a_command_runs_confined() {
    let ground = Ground::new(CONFINES);
    let sandbox = ground.sandbox();
    let outside = ground.at("outside");
    let script = format!("echo in > here && cat here; echo x > '{}' || echo refused", outside.display());
    let (exit, text) = ground.run(&sandbox, &script, Limits::default());
    assert_eq!(exit, Exit::Code(0), "{text}");
    assert!(text.starts_with("in\n") && text.ends_with("refused\n"), "{text}");
    assert!(!outside.exists());
}

fn it_ends_as_it_ended() {
    let ground = Ground::new(CONFINES);
    let sandbox = ground.sandbox();
    for (script, expected) in
        [("exit 7", Exit::Code(7)), ("kill -KILL $$", Exit::Signal(9)), ("kill -TERM $$", Exit::Signal(15))]
    {
        assert_eq!(ground.run(&sandbox, script, Limits::default()).0, expected, "{script}");
    }
}

fn its_limits_hold() {
    let ground = Ground::new(CONFINES);
    let sandbox = ground.start(Limits { open_files: Some(64), ..Limits::default() }).expect("a sandbox");
    let limits =
        Limits { open_files: Some(128), file_bytes: Some(1024), cpu_seconds: Some(9), ..Limits::default() };
    let (_, text) = ground.run(&sandbox, "ulimit -n -f -t -c", limits);
    let values: Vec<&str> = text.lines().filter_map(|line| line.split_whitespace().last()).collect();
    assert_eq!(
        values,
        ["64", "1", "9", "0"],
        "the session's and the command's, the stricter of each: {text}"
    );
    let (exit, _) = ground.run(&sandbox, "exec head -c 100000 /dev/zero > big", limits);
    assert_eq!(exit, Exit::Signal(25), "SIGXFSZ");
}

fn it_has_no_terminal() {
    let ground = Ground::new(CONFINES);
    let (_, text) = ground.run(&ground.sandbox(), "ps -o sid= -p $$; ps -o sid= -p $PPID", Limits::default());
    let own = own_session();
    assert!(text.split_whitespace().count() == 2 && text.split_whitespace().all(|sid| sid != own), "{text}");
}

/// The session of this process: the sixth field of `/proc/self/stat`.
///
/// It is 0 if the session began outside this PID namespace, as in a container; `rustix::process::getsid`
/// has no value for that.
fn own_session() -> String {
    let stat = std::fs::read_to_string("/proc/self/stat").expect("the state of this process");
    let (_, after_name) = stat.rsplit_once(')').expect("a name in parentheses");
    after_name.split_whitespace().nth(3).expect("a session").to_owned()
}

fn a_signal_is_for_the_command() {
    let ground = Ground::new(CONFINES);
    let sandbox = ground.sandbox();
    let script = "trap 'echo heard; exit 3' INT; touch ready; while :; do sleep 0.05; done";
    let running = ground.script(&sandbox, script, Limits::default());
    wait_for(|| ground.at("open/ready").exists());
    running.signal(2);
    assert_eq!(running.wait_timeout(Duration::from_secs(20)), Some(Exit::Code(3)));
}

fn what_it_leaves_behind_ends_with_it() {
    let ground = Ground::new(CONFINES);
    let sandbox = ground.sandbox();
    let (exit, text) = ground.run(&sandbox, "sleep 300 >/dev/null 2>&1 & echo $!", Limits::default());
    assert_eq!(exit, Exit::Code(0));
    let left = text.trim().to_owned();
    wait_for(|| has_ended(&left));
}

fn killing_it_kills_its_group() {
    let ground = Ground::new(CONFINES);
    let sandbox = ground.sandbox();
    let running = ground.script(&sandbox, "sleep 300 & echo $! > pid; wait", Limits::default());
    wait_for(|| std::fs::read_to_string(ground.at("open/pid")).is_ok_and(|text| text.ends_with('\n')));
    let child = std::fs::read_to_string(ground.at("open/pid")).expect("a number");
    assert!(!has_ended(child.trim()), "control");
    running.kill();
    assert_eq!(running.wait(), Exit::Signal(9));
    wait_for(|| has_ended(child.trim()));
}

/// A host that is killed can end nothing itself.
fn it_ends_with_its_host() {
    let own = std::env::current_exe().expect("own path");
    let mut host = std::process::Command::new(own);
    // It cannot remove its directory.
    let temporary = tempfile::tempdir().expect("a directory");
    host.arg(HOST).env("TMPDIR", temporary.path()).stdout(Stdio::piped());
    let mut host = Kill(host.spawn().expect("a host"));
    let mut line = String::new();
    let output = host.0.stdout.take().expect("a pipe");
    std::io::BufRead::read_line(&mut std::io::BufReader::new(output), &mut line).expect("a line");
    let command = line.trim().to_owned();
    assert!(!has_ended(&command), "control: {line}");
    drop(host);
    wait_for(|| has_ended(&command));
}

/// A process that is killed with its owner, also if a test fails.
struct Kill(std::process::Child);

impl Drop for Kill {
    fn drop(&mut self) {
        self.0.kill().expect("killed");
        self.0.wait().expect("reaped");
    }
}

/// Starts a command that does not end, and tells its process.
pub(crate) fn be_a_host() -> ExitCode {
    let ground = Ground::new(CONFINES);
    let sandbox = ground.sandbox();
    let running = ground.script(&sandbox, "echo $$ > pid; exec sleep 300", Limits::default());
    wait_for(|| std::fs::read_to_string(ground.at("open/pid")).is_ok_and(|text| text.ends_with('\n')));
    println!("{}", std::fs::read_to_string(ground.at("open/pid")).expect("a number").trim());
    let _ends_with_this_process = running.wait();
    ExitCode::SUCCESS
}

fn wait_for(is_so: impl Fn() -> bool) {
    let start = Instant::now();
    while !is_so() {
        assert!(start.elapsed() < Duration::from_secs(20), "it takes too long");
        std::thread::sleep(Duration::from_millis(10));
    }
}

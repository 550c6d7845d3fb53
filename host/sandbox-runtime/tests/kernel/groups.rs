//! Control groups: creating, entering, killing, removing and sweeping them.
//!
//! The groups are real ones of version 2. Root creates a place for them and gives it to a user, which is what
//! delegation means, and each scene is a program of that user, in a group of that place. The available controllers
//! depend on the machine; kernels that give `memory` and `pids` to version 1 still have huge pages to limit. The values
//! of the other files are tested where they are computed.

use std::fs;
use std::io::{BufRead, BufReader, Read};
use std::os::unix::fs::{MetadataExt, chown};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitCode, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use portcullis_each_user::ORDINARY_USER;
use portcullis_sandbox::{Controller, Force, Layer, Limits};
use portcullis_sandbox_runtime::{Exit, Running, sweep_groups};
use portcullis_sys::seccomp::{Handing, Instruction, load};
use tempfile::TempDir;

use crate::kit::{self, Session, eventually};
use crate::{Test, cannot_run, exists};

pub(crate) const TESTS: &[Test] = &[
    ("groups::commands_are_in_a_group_of_their_own", || delegated("own")),
    ("groups::commands_neither_leave_it_nor_change_it", || delegated("attacked")),
    ("groups::a_killed_hosts_group_is_swept_away", || delegated("swept")),
    ("groups::who_cannot_be_started_in_it_does_without", || delegated("refused")),
    ("groups::without_a_place_everything_goes_on", without_a_place_everything_goes_on),
];

/// The argument with which this program plays a scene in its group.
pub(crate) const SCENE: &str = "__scene-in-a-group";

const LIMITS: Limits = Limits {
    open_files: None,
    processes: Some(500),
    file_bytes: None,
    memory_bytes: Some(1 << 30),
    data_bytes: None,
    cpu_seconds: None,
};

/// A group of the ordinary user's or root's, which contains one group for a program and room for others.
struct Delegated {
    path: PathBuf,
}

/// Plays a scene as root and as an ordinary user, with namespaces and without.
fn delegated(scene: &str) {
    if !rustix::process::geteuid().is_root() {
        return as_nobody_special(scene);
    }
    let program = program();
    for user in [0, ORDINARY_USER] {
        for walls in [None, Some(kit::WITHOUT)] {
            let Some(place) = Delegated::make(user) else {
                return cannot_run("a file system of control groups of version 2 that root can write");
            };
            println!("    {scene} as {user} {}", walls.unwrap_or_default());
            let status = place.play(program.path(), (user, scene, walls)).status().expect("runs");
            assert!(status.success(), "{scene} as {user} {walls:?}: {status}");
        }
    }
}

/// Without root no group can be delegated; if root has started this run, it has played the scene as this user.
fn as_nobody_special(scene: &str) {
    let parent = rustix::process::getppid().map_or(1, |parent| parent.as_raw_nonzero().get());
    let is_roots = fs::metadata(format!("/proc/{parent}")).is_ok_and(|parent| parent.uid() == 0);
    if !is_roots {
        cannot_run(&format!("a control group that is delegated, for `{scene}`: run these tests as root"));
    }
}

/// Copies this program to where every user can run it.
fn program() -> TempDir {
    let place =
        tempfile::Builder::new().prefix("portcullis-test-").tempdir_in("/var/tmp").expect("a directory");
    kit::open_to_all(place.path());
    fs::copy(kit::own_program(), place.path().join("tests")).expect("a copy");
    place
}

impl Delegated {
    /// Creates the group; `None` if there are no groups of version 2.
    fn make(user: u32) -> Option<Self> {
        static LAST: AtomicU32 = AtomicU32::new(0);
        let root = version_2()?;
        let read = |file: &str| fs::read_to_string(root.join(file)).unwrap_or_default();
        let has_one = |text: &str| Controller::ALL.iter().any(|one| text.contains(one.name()));
        if !has_one(&read("cgroup.subtree_control")) {
            let there = read("cgroup.controllers");
            let one = Controller::ALL.into_iter().find(|one| there.contains(one.name()))?;
            fs::write(root.join("cgroup.subtree_control"), format!("+{}", one.name())).ok()?;
        }
        let name = format!("test-{}-{}", std::process::id(), LAST.fetch_add(1, Ordering::Relaxed));
        let path = root.join(name);
        fs::create_dir(&path).ok()?;
        let place = Self { path };
        for group in ["", "program", "other"] {
            let group = place.path.join(group);
            fs::create_dir_all(&group).expect("a group");
            for file in ["", "cgroup.procs", "cgroup.subtree_control", "cgroup.threads"] {
                chown(group.join(file), Some(user), Some(user)).expect("given away");
            }
        }
        Some(place)
    }

    fn play(&self, program: &Path, (user, scene, walls): (u32, &str, Option<&str>)) -> Command {
        let mut command = Command::new("sh");
        command.args(["-c", "echo $$ > \"$0\" && exec \"$@\""]).arg(self.path.join("program/cgroup.procs"));
        if user != 0 {
            command.args([
                "setpriv",
                &format!("--reuid={user}"),
                &format!("--regid={user}"),
                "--clear-groups",
            ]);
        }
        command.arg(program.join("tests")).args([SCENE, scene]).args(walls).current_dir("/");
        command
    }
}

impl Drop for Delegated {
    fn drop(&mut self) {
        // Processes left there after a failure are killed first.
        drop(fs::write(self.path.join("cgroup.kill"), "1"));
        eventually("the place is empty", || {
            let groups = fs::read_dir(&self.path).into_iter().flatten().flatten();
            groups.filter(|entry| entry.path().is_dir()).for_each(|group| drop(fs::remove_dir(group.path())));
            fs::remove_dir(&self.path).is_ok()
        });
    }
}

fn version_2() -> Option<PathBuf> {
    let mounts = fs::read_to_string("/proc/self/mountinfo").expect("readable");
    let line = mounts.lines().find(|line| line.contains(" - cgroup2 "))?;
    line.split(' ').nth(4).map(PathBuf::from)
}

/// Returns the group of a process.
fn group_of(process: &str) -> PathBuf {
    let text = fs::read_to_string(format!("/proc/{process}/cgroup")).expect("readable");
    let own = text.lines().find_map(|line| line.strip_prefix("0::/")).expect("a group");
    version_2().expect("mounted").join(own)
}

/// Returns the groups in the place, except those of the test.
fn groups(place: &Path) -> Vec<PathBuf> {
    let all = fs::read_dir(place).expect("readable").flatten().map(|entry| entry.path());
    all.filter(|path| path.is_dir() && !path.ends_with("program") && !path.ends_with("other")).collect()
}

/// Plays the scene that the arguments name.
pub(crate) fn play(arguments: &[String]) -> ExitCode {
    kit::take_walls(arguments.get(1));
    let place = group_of("self").parent().expect("the place").to_owned();
    match arguments.first().map(String::as_str) {
        Some("own") => own(&place),
        Some("attacked") => attacked(&place),
        Some("swept") => swept(&place),
        Some("refused") => without_clone3(&place),
        Some("host") => be_a_host(),
        other => panic!("no scene {other:?}"),
    }
    ExitCode::SUCCESS
}

fn bounded() -> Session {
    Session::with(|_, wanted| wanted.limits = LIMITS)
}

fn waiting(session: &Session) -> (Running, fs::File) {
    let command = session.command(&["sh", "-c", "sleep 99 & echo ready; sleep 99"]);
    let (running, mut output) = session.start(command).expect("starts");
    output.read_exact(&mut [0; 6]).expect("it is ready");
    (running, output)
}

fn force(session: &Session) -> Force {
    let layers = &session.confinement.report().layers;
    layers.iter().find(|(layer, _)| *layer == Layer::ControlGroup).expect("it is told").1.clone()
}

fn group_of_command(running: &Running) -> PathBuf {
    group_of(&running.init().expect("an init").to_string())
}

fn own(place: &Path) {
    let session = bounded();
    let (running, _output) = waiting(&session);
    let group = group_of_command(&running);
    assert_eq!(group.parent(), Some(place), "it lies beside that of the host");
    assert_ne!(group, group_of("self"), "the host stays where it was");
    assert!(
        !matches!(force(&session), Force::None(_)) && !session.confinement.report().controllers.is_empty()
    );
    // The keeper, the init, the shell and the processes that it has started.
    let members = || fs::read_to_string(group.join("cgroup.procs")).expect("readable").lines().count();
    assert!(members() >= 4, "{} processes", members());
    assert_values(&group);
    processes_are_refused();
    let other = bounded();
    let (another, _more) = waiting(&other);
    assert_ne!(group_of_command(&another), group, "each sandbox has its own");
    assert_eq!(groups(place).len(), 2);
    drop((other, another));
    assert_eq!(groups(place), [group], "it has gone with its sandbox");
    session.allows("true");
    drop(session);
    assert_eq!(groups(place), Vec::<PathBuf>::new());
    let unbounded = Session::new();
    assert!(matches!(force(&unbounded), Force::None(why) if why.contains("no limit is set")));
    assert_eq!(groups(place), Vec::<PathBuf>::new());
}

/// With a pids controller of version 2: the limit applies sooner than that of the pid namespace, which allows at least
/// some 300.
fn processes_are_refused() {
    let limits = Limits { processes: Some(20), ..Limits::default() };
    let session = Session::with(|_, wanted| wanted.limits = limits);
    if session.confinement.report().controllers.contains(&Controller::Processes) {
        let script =
            "i=0; while [ $i -lt 280 ]; do sleep 9 & i=$((i+1)); echo $i; done 2>/dev/null; echo all";
        let outcome = session.sh(script);
        let started = outcome.output.lines().filter(|line| line.parse::<u32>().is_ok()).count();
        assert!(!outcome.output.contains("all") && started < 200, "{started} {:?}", outcome.exit);
        println!("    {started} processes were started");
        session.allows("true");
    }
}

/// The kernel rounds bytes to whole pages, of whatever size.
fn assert_values(group: &Path) {
    let value = |file: &str| fs::read_to_string(group.join(file)).ok()?.trim().parse::<u64>().ok();
    let names = fs::read_dir(group)
        .expect("readable")
        .flatten()
        .filter_map(|entry| entry.file_name().into_string().ok());
    let huge: Vec<String> =
        names.filter(|name| name.starts_with("hugetlb.") && name.ends_with(".max")).collect();
    let mut seen = 0;
    for file in huge.iter().map(String::as_str).chain(["memory.max"]).filter(|file| group.join(file).exists())
    {
        let least = if file.contains("1GB") { 1 << 30 } else { (1 << 30) + (60 << 20) };
        assert!(
            value(file).is_some_and(|bytes| (least..1_200 << 20).contains(&bytes)),
            "{file}: {:?}",
            value(file)
        );
        seen += 1;
    }
    if group.join("pids.max").exists() {
        assert!(value("pids.max").is_some_and(|number| (500..1000).contains(&number)));
        seen += 1;
    }
    assert!(seen > 0, "nothing is bounded");
}

/// Attempts of a command to change its own group, or to leave it.
fn attacked(place: &Path) {
    if !exists("/usr/bin/perl") {
        return cannot_run("perl (package perl-base)");
    }
    let session = bounded();
    let (running, _output) = waiting(&session);
    let group = group_of_command(&running);
    let bound = fs::read_dir(&group).expect("readable").flatten().map(|entry| entry.file_name());
    let bound = bound.filter_map(|name| name.into_string().ok());
    let is_bound = |name: &String| name.ends_with(".max") && !name.starts_with("cgroup.");
    let bound: Vec<String> = bound.filter(is_bound).collect();
    let other = place.join("other");
    let (inside, outside, place) = (group.display(), other.display(), place.display());
    // The kernel checks permission to write the files behind it, and not how they are mounted.
    let start_in = "perl -e 'sysopen(D, shift, 0200000) or exit 9; $a = pack(q(Q11), 0x200000000, 0, 0, 0, 17, 0, 0, 0, 0, 0, \
                    fileno(D)); $p = syscall(435, $a, 88); exit 8 if $p < 0; exit 0 if $p == 0; waitpid($p, 0); exit($? >> 8)'";
    let fd = "exec 3<";
    let mut attacks = vec![
        (format!("{start_in} {outside}"), "starting a process elsewhere"),
        (format!("{start_in} {place}/program"), "starting a process beside the host"),
        (format!("sh -c 'echo $$ > {outside}/cgroup.procs'"), "leaving it"),
        (format!("echo $$ > {place}/program/cgroup.procs"), "going to where the host is"),
        (format!("mkdir {outside}/new && rmdir {outside}/new"), "making groups"),
        (format!("{fd} {outside}/cgroup.procs && echo $$ > /proc/self/fd/3"), "leaving it by a descriptor"),
        (format!("chmod 777 {outside}"), "opening it to others"),
    ];
    for name in &bound {
        attacks.push((format!("echo max > {inside}/{name}"), "widening it"));
    }
    attacks.push((format!("echo 1 > {inside}/cgroup.kill"), "killing others"));
    for (script, what) in &attacks {
        let outcome = session.sh(script);
        assert!(!matches!(outcome.exit, Exit::Code(0) | Exit::Lost), "{what}: {script}: {outcome:?}");
    }
    assert_eq!(group_of_command(&running), group);
    session.allows("true");
    // The last of them kills the group.
    for (script, what) in &attacks {
        assert!(session.control(script), "control: {what} works outside: {script}");
    }
    assert_eq!(running.wait(), Exit::Lost, "control: the group's files were the real ones");
}

/// Runs as a host with a running command, until it is killed.
fn be_a_host() {
    let session = bounded();
    let (running, _output) = waiting(&session);
    println!("{} {}", group_of_command(&running).display(), session.place.path().display());
    loop {
        std::thread::sleep(Duration::from_secs(1));
    }
}

fn host() -> (Child, PathBuf, PathBuf) {
    let mut host = Command::new(kit::own_program())
        .args([SCENE, "host"])
        .args(kit::walls())
        .stdout(Stdio::piped())
        .spawn()
        .expect("a host");
    let mut said = String::new();
    BufReader::new(host.stdout.take().expect("a pipe")).read_line(&mut said).expect("read");
    let (group, place) = said.trim().split_once(' ').expect("two paths");
    (host, group.into(), place.into())
}

fn swept(place: &Path) {
    let living = bounded();
    let (running, _output) = waiting(&living);
    let (mut host, left, files) = host();
    assert!(left.is_dir(), "control: it was there");
    sweep_groups();
    assert_eq!(groups(place).len(), 2, "both hosts live");
    host.kill().expect("killed");
    host.wait().expect("reaped");
    let is_empty =
        || fs::read_to_string(left.join("cgroup.events")).is_ok_and(|events| events.contains("populated 0"));
    eventually("what was in it has ended", is_empty);
    assert!(left.is_dir(), "control: nobody is left to remove it");
    let next = bounded();
    assert!(!left.exists(), "who makes the next removes it");
    assert_eq!(groups(place).len(), 2);
    living.allows("true");
    next.allows("true");
    assert!(running.wait_timeout(Duration::ZERO).is_none());
    drop((living, next));
    assert_eq!(groups(place), Vec::<PathBuf>::new());
    fs::remove_dir_all(files).expect("removed");
}

/// As in containers whose filter refuses clone3, and on kernels that cannot start a process in a group.
fn without_clone3(place: &Path) {
    rustix::thread::set_no_new_privs(true).expect("no new privileges");
    let instruction = |code, jt, jf, k| Instruction { code, jt, jf, k };
    let number = u32::try_from(libc::SYS_clone3).expect("a small number");
    let unknown = libc::SECCOMP_RET_ERRNO | libc::ENOSYS.cast_unsigned();
    let program = [
        instruction(0x20, 0, 0, 0),
        instruction(0x15, 0, 1, number),
        instruction(0x06, 0, 0, unknown),
        instruction(0x06, 0, 0, libc::SECCOMP_RET_ALLOW),
    ];
    load(&program, Handing::None).expect("loaded");
    let session = bounded();
    let said = force(&session).to_string();
    assert!(said.starts_with("none: starting the sandbox in a control group: Function not"), "{said}");
    assert_eq!(groups(place), Vec::<PathBuf>::new(), "it was removed again");
    assert!(session.confinement.report().controllers.is_empty());
    let (running, _output) = waiting(&session);
    assert_eq!(group_of_command(&running), group_of("self"));
    session.allows("true");
}

/// An ordinary user without a delegated group; root has a place on every machine with such groups.
fn without_a_place_everything_goes_on() {
    let session = bounded();
    let (running, _output) = waiting(&session);
    match force(&session) {
        Force::None(why) => {
            assert!(!why.is_empty());
            assert_eq!(group_of_command(&running), group_of("self"));
        }
        Force::Full | Force::Partial(_) => assert_ne!(group_of_command(&running), group_of("self")),
    }
    session.allows("true");
    session.refuses("echo x > $P/home/new");
}

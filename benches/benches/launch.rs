//! The cost of starting a command: bare, in a running sandbox, in a fresh one, in bubblewrap with an equal profile, and
//! with sandbox-runtime. `cargo bench -p portcullis-benches --bench launch`; after `--` it takes names of races:
//! `start`, `rules`, `trees`, `at-once`.
//!
//! sandbox-runtime takes part if `SANDBOX_RUNTIME` names a directory in which it has been installed
//! (`npm install @anthropic-ai/sandbox-runtime`); it needs `rg`, `bwrap` and `socat` on `PATH`.

#![expect(clippy::expect_used, clippy::print_stdout, reason = "a benchmark ends where it cannot measure")]

use std::cell::RefCell;
use std::fs::File;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::process::{Command as Bare, ExitCode, Stdio};

use portcullis_benches::{Contestant, Race, Told, is_wanted};
use portcullis_sandbox::{
    Access, Command, Judgement, Limits, NameOrder, NameRules, Names, PathAccess, Profile, Reads, Terminal,
};
use portcullis_sandbox_runtime::{Confinement, Exit, KEEPER_ARGUMENT, keeper_main};

const PROGRAM: &str = "/bin/true";

fn main() -> ExitCode {
    if std::env::args().nth(1).is_some_and(|first| first == KEEPER_ARGUMENT) {
        return keeper_main(|_| Some(Box::new(NoRules)));
    }
    let scratch = tempfile::tempdir_in("/var/tmp").expect("a directory to work in");
    let project = scratch.path().canonicalize().expect("the directory").join("project");
    let temp = scratch.path().join("tmp");
    for directory in [&project, &temp] {
        std::fs::create_dir(directory).expect("a directory");
    }
    let profile = profile(&project, temp);
    let myself = PathBuf::from("/proc/self/exe");
    let ready = Confinement::start(&myself, &profile).expect("a sandbox");

    let runtime = runtime(&project).map(RefCell::new);
    if is_wanted("start") {
        start(&myself, &profile, (&ready, &project), runtime.as_ref());
    }
    if is_wanted("rules") {
        rules(&myself, scratch.path());
    }
    if is_wanted("trees") {
        trees(&myself, scratch.path());
    }
    if is_wanted("at-once") {
        throughput(&ready, &project, runtime.as_ref());
    }
    ExitCode::SUCCESS
}

fn start(
    myself: &Path,
    profile: &Profile,
    (ready, project): (&Confinement, &Path),
    runtime: Option<&RefCell<Told>>,
) {
    let mut contestants = vec![
        Contestant::new("posix_spawn", 20, bare),
        Contestant::new("sandbox that stands ready", 20, || launch(ready, project)),
        Contestant::new("fresh sandbox", 5, || {
            launch(&Confinement::start(myself, profile).expect("a sandbox"), project);
        }),
    ];
    if has_bubblewrap() {
        contestants.push(Contestant::new("bwrap", 5, || bubblewrap(project)));
    } else {
        println!("bwrap is not on PATH, so it takes no part; `cargo xtask setup` fetches it");
    }
    if let Some(runtime) = runtime {
        contestants.push(Contestant::new("sandbox-runtime", 2, || runtime.borrow_mut().say("run 1")));
    }
    println!("{}", Race::new("launch of /bin/true").run(contestants));
}

/// A judge that has nothing to say: the broker is there and asks it.
struct NoRules;

impl Names for NoRules {
    fn judge_reading(&self, _path: &Path) -> Judgement {
        Judgement::Free
    }

    fn judge(&self, _path: &Path) -> Judgement {
        Judgement::Free
    }

    fn is_plain(&self, _path: &Path) -> bool {
        false
    }

    fn is_own(&self, _path: &Path) -> bool {
        false
    }

    fn is_alike_below(&self, _one: &Path, _other: &Path) -> bool {
        true
    }

    fn restricts_alike_below(&self, _path: &Path, _other: &Path) -> bool {
        true
    }
}

/// What many rules on paths cost a fresh sandbox, and bubblewrap with as many binds.
fn rules(myself: &Path, scratch: &Path) {
    let few = Ruled::make(&scratch.join("few"), 5);
    let many = Ruled::make(&scratch.join("many"), 500);
    let fresh = |ruled: &Ruled| {
        launch(&Confinement::start(myself, &ruled.profile).expect("a sandbox"), &ruled.project);
    };
    let contestants = vec![
        Contestant::new("5 rules on paths", 3, || fresh(&few)),
        Contestant::new("500 rules on paths", 3, || fresh(&many)),
    ];
    println!("{}", Race::new("fresh sandbox with rules").run(contestants));
}

/// A project with directories in it that are read-only and hidden by turns.
struct Ruled {
    project: PathBuf,
    profile: Profile,
}

impl Ruled {
    fn make(root: &Path, rules: u32) -> Self {
        let (project, temp) = (root.join("project"), root.join("tmp"));
        std::fs::create_dir_all(&project).expect("a directory");
        std::fs::create_dir(&temp).expect("a directory");
        let mut profile = profile(&project, temp);
        for number in 0..rules {
            let path = project.join(format!("d{}/e{number}", number % 20));
            std::fs::create_dir_all(&path).expect("a directory");
            let access = if number % 2 == 0 { Access::ReadOnly } else { Access::Hidden };
            profile.places.push(PathAccess { path, access });
        }
        Self { project, profile }
    }
}

/// Files of a large project.
const FILES: usize = 50_000;
/// Commands in flight when throughput is measured.
const IN_FLIGHT: usize = 8;
/// How many commands each of them starts in a round.
const EACH: usize = 10;

fn throughput(ready: &Confinement, project: &Path, runtime: Option<&RefCell<Told>>) {
    let at_once = |act: &(dyn Fn() + Sync)| {
        std::thread::scope(|scope| {
            for _ in 0..IN_FLIGHT {
                scope.spawn(|| (0..EACH).for_each(|_| act()));
            }
        });
    };
    let mut contestants = vec![
        Contestant::new("posix_spawn", 1, || at_once(&bare)),
        Contestant::new("sandbox that stands ready", 1, || at_once(&|| launch(ready, project))),
    ];
    if has_bubblewrap() {
        contestants.push(Contestant::new("bwrap", 1, || at_once(&|| bubblewrap(project))));
    }
    if let Some(runtime) = runtime {
        let turns = || (0..EACH).for_each(|_| runtime.borrow_mut().say(&format!("at-once {IN_FLIGHT}")));
        contestants.push(Contestant::new("sandbox-runtime", 1, turns));
    }
    let title = format!("{} commands, {IN_FLIGHT} in flight", IN_FLIGHT * EACH);
    println!("{}", Race::new(&title).run(contestants));
}

/// What a project of many files costs against an empty one: nobody looks at them.
fn trees(myself: &Path, scratch: &Path) {
    let empty = Ruled::make(&scratch.join("empty"), 0);
    let full = Ruled::make(&scratch.join("full"), 0);
    for number in 0..FILES {
        let directory = full.project.join(format!("d{}/e{}", number % 50, number % 4400));
        std::fs::create_dir_all(&directory).expect("a directory");
        std::fs::write(directory.join(format!("f{number}")), "").expect("a file");
    }
    let fresh = |ruled: &Ruled| {
        launch(&Confinement::start(myself, &ruled.profile).expect("a sandbox"), &ruled.project);
    };
    let contestants = vec![
        Contestant::new("empty tree", 3, || fresh(&empty)),
        Contestant::new("tree of 50,000 files", 3, || fresh(&full)),
    ];
    println!("{}", Race::new("fresh sandbox around a tree").run(contestants));
}

/// A program that uses sandbox-runtime, if there is one.
fn runtime(project: &Path) -> Option<Told> {
    let Some(installed) = std::env::var_os("SANDBOX_RUNTIME") else {
        println!("sandbox-runtime takes no part: SANDBOX_RUNTIME names no directory that has it");
        return None;
    };
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/src/runtime.mjs");
    let mut node = Bare::new("node");
    node.arg(script).arg(installed).current_dir(project);
    Some(Told::start(node))
}

fn has_bubblewrap() -> bool {
    Bare::new("bwrap").arg("--version").stdout(Stdio::null()).status().is_ok()
}

/// The system read-only, homes hidden, the project writable.
fn profile(project: &Path, temp: PathBuf) -> Profile {
    let place = |path: &Path, access| PathAccess { path: path.to_owned(), access };
    Profile {
        places: vec![
            place(Path::new("/home"), Access::Hidden),
            place(Path::new("/root"), Access::Hidden),
            place(project, Access::ReadWrite),
        ],
        temp,
        own: Vec::new(),
        closed: Vec::new(),
        devices: Vec::new(),
        hostname: "sandbox".to_owned(),
        limits: Limits::default(),
        names: Some(NameRules {
            data: Vec::new(),
            spared: vec![PathBuf::from("/tmp")],
            workspace: project.to_owned(),
            homes: Vec::new(),
            lifted: Vec::new(),
            links: Vec::new(),
            leading_nowhere: Vec::new(),
            reads: Reads::Free,
            kept_back: Vec::new(),
        }),
        order: Some(NameOrder::open(&project.with_extension("order")).expect("an order of names")),
        acting: None,
    }
}

fn bare() {
    let status = Bare::new(PROGRAM).stdin(Stdio::null()).stdout(Stdio::null()).status().expect("a process");
    assert!(status.success());
}

fn launch(sandbox: &Confinement, project: &Path) {
    let null =
        || -> OwnedFd { File::options().read(true).write(true).open("/dev/null").expect("/dev/null").into() };
    let command = Command {
        argv: vec![PROGRAM.into()],
        env: Vec::new(),
        cwd: project.to_owned(),
        limits: Limits::default(),
        terminal: Terminal::None,
    };
    let running = sandbox.launch(command, [null(), null(), null()]).expect("a command");
    assert_eq!(running.wait(), Exit::Code(0));
}

fn bubblewrap(project: &Path) {
    let status = Bare::new("bwrap")
        .args(["--unshare-all", "--die-with-parent", "--new-session", "--ro-bind", "/", "/"])
        .args(["--tmpfs", "/home", "--tmpfs", "/root", "--tmpfs", "/tmp", "--tmpfs", "/run"])
        .args(["--dev", "/dev", "--proc", "/proc", "--bind"])
        .args([project, project])
        .arg("--chdir")
        .arg(project)
        .arg(PROGRAM)
        .stdin(Stdio::null())
        .status()
        .expect("bwrap");
    assert!(status.success());
}

//! What starting a command costs: bare, in a sandbox that stands ready, in a fresh one, and in bubblewrap
//! with an equal profile. `cargo bench -p portcullis-benches --bench launch`

#![expect(clippy::expect_used, clippy::print_stdout, reason = "a benchmark ends where it cannot measure")]

use std::fs::File;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::process::{Command as Bare, ExitCode, Stdio};

use portcullis_benches::{Contestant, Race};
use portcullis_confine::{
    Access, Command, Confinement, Exit, Judgement, KEEPER_ARGUMENT, Limits, NameRules, Names, Place, Profile,
    keeper_main,
};

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

    let mut contestants = vec![
        Contestant::new("posix_spawn", 20, bare),
        Contestant::new("sandbox that stands ready", 20, || launch(&ready, &project)),
        Contestant::new("fresh sandbox", 5, || {
            launch(&Confinement::start(&myself, &profile).expect("a sandbox"), &project);
        }),
    ];
    if Bare::new("bwrap").arg("--version").stdout(Stdio::null()).status().is_ok() {
        contestants.push(Contestant::new("bwrap", 5, || bubblewrap(&project)));
    } else {
        println!("bwrap is not on PATH, so it takes no part; `cargo xtask setup` fetches it");
    }
    println!("{}", Race::new("launch of /bin/true").run(contestants));
    ExitCode::SUCCESS
}

/// A judge that has nothing to say: the broker is there and asks it.
struct NoRules;

impl Names for NoRules {
    fn judge(&self, _path: &Path) -> Judgement {
        Judgement::Free
    }

    fn is_alike_below(&self, _one: &Path, _other: &Path) -> bool {
        true
    }
}

/// The system read-only, homes hidden, the project writable.
fn profile(project: &Path, temp: PathBuf) -> Profile {
    let place = |path: &Path, access| Place { path: path.to_owned(), access };
    Profile {
        places: vec![
            place(Path::new("/home"), Access::Hidden),
            place(Path::new("/root"), Access::Hidden),
            place(project, Access::ReadWrite),
        ],
        temp,
        hostname: "sandbox".to_owned(),
        limits: Limits::default(),
        names: Some(NameRules { data: Vec::new(), spared: vec![PathBuf::from("/tmp")], lifted: Vec::new() }),
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

//! The cost of write-heavy commands when every name is checked, compared with no sandbox: on disk, and in
//! memory, where the file system costs almost nothing. `cargo bench -p portcullis-benches --bench names`
//!
//! Arguments after `--` select the places: `disk`, `memory`.

#![expect(clippy::expect_used, clippy::print_stdout, reason = "a benchmark ends where it cannot measure")]

use std::fs::File;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::process::{Command as Bare, ExitCode, Stdio};

use portcullis_benches::{Contestant, Race, is_wanted};
use portcullis_decision::Base;
use portcullis_sandbox::{Access, Command, Limits, NameOrder, PathAccess, Profile, Terminal};
use portcullis_sandbox_runtime::{Confinement, Exit, KEEPER_ARGUMENT, keeper_main};
use portcullis_session::{make_names, plain_name_rules};

/// Number of rounds. Each takes some tenths of a second.
const ROUNDS: usize = 10;
/// Number of files in the tree, and of directories for them.
const FILES: usize = 2500;
const DIRECTORIES: usize = 250;

/// The commands, which run in a directory with `tree`, `tree.tar` and `repository`.
const WORK: [(&str, &str); 4] = [
    ("git clone", "git clone -q --no-hardlinks repository clone && rm -rf clone"),
    ("tar x", "mkdir out && tar xf tree.tar -C out && rm -rf out"),
    ("cp -r", "cp -r tree copy && rm -rf copy"),
    ("sed -i", "find tree -name '*1.txt' | xargs sed -i s/a/a/"),
];

fn main() -> ExitCode {
    if std::env::args().nth(1).is_some_and(|first| first == KEEPER_ARGUMENT) {
        return keeper_main(make_names);
    }
    let scratch = tempfile::tempdir_in("/var/tmp").expect("a directory to work in");
    let scratch = scratch.path().canonicalize().expect("the directory");
    let memory = scratch.join("memory");
    std::fs::create_dir(&memory).expect("a directory");
    if is_wanted("disk") {
        compare("the project's disk", &scratch.join("disk"), &scratch.join("temp-of-disk"));
    }
    if is_wanted("memory") {
        in_memory(&scratch, &memory);
    }
    ExitCode::SUCCESS
}

fn in_memory(scratch: &Path, memory: &Path) {
    let mount = Bare::new("mount").args(["-t", "tmpfs", "tmpfs"]).arg(memory).stderr(Stdio::null()).status();
    if mount.is_ok_and(|status| status.success()) {
        compare("memory", &memory.join("project"), &scratch.join("temp-of-memory"));
        let status = Bare::new("umount").arg("-l").arg(memory).status();
        assert!(status.expect("umount runs").success());
    } else {
        println!("mounting needs root, so there is no comparison in memory");
    }
}

fn compare(place: &str, project: &Path, temp: &Path) {
    for directory in [project, temp] {
        std::fs::create_dir(directory).expect("a directory");
    }
    make_tree(project);
    let profile = profile(project, temp.to_owned());
    let sandbox = Confinement::start(Path::new("/proc/self/exe"), &profile).expect("a sandbox");
    for (name, script) in WORK {
        let mut race = Race::new(&format!("{name}, on {place}"));
        race.rounds = ROUNDS;
        println!(
            "{}",
            race.run(vec![
                Contestant::new("no sandbox", 1, || bare(project, script)),
                Contestant::new("sandbox", 1, || inside(&sandbox, project, script)),
            ])
        );
    }
}

fn make_tree(project: &Path) {
    let script = format!(
        "mkdir tree && cd tree && for d in $(seq {DIRECTORIES}); do mkdir d$d; for f in $(seq {}); do \
         echo a $d $f > d$d/$f.txt; done; done; cd .. && tar cf tree.tar tree && git init -q repository && \
         cp -r tree repository && cd repository && git add . && \
         git -c user.name=a -c user.email=a@b commit -q -m a",
        FILES / DIRECTORIES
    );
    bare(project, &script);
}

fn bare(project: &Path, script: &str) {
    let null = Stdio::null;
    let status = Bare::new("sh").args(["-c", script]).current_dir(project).stdin(null()).status();
    assert!(status.expect("sh runs").success(), "{script}");
}

fn inside(sandbox: &Confinement, project: &Path, script: &str) {
    let null =
        || -> OwnedFd { File::options().read(true).write(true).open("/dev/null").expect("/dev/null").into() };
    let command = Command {
        argv: ["sh", "-c", script].map(Into::into).to_vec(),
        env: ["PATH", "HOME"]
            .into_iter()
            .filter_map(|name| Some((name.into(), std::env::var_os(name)?)))
            .collect(),
        cwd: project.to_owned(),
        limits: Limits::default(),
        terminal: Terminal::None,
    };
    let running = sandbox.launch(command, [null(), null(), null()]).expect("a command");
    assert_eq!(running.wait(), Exit::Code(0), "{script}");
}

/// The profile of a session with only the base rules.
fn profile(project: &Path, temp: PathBuf) -> Profile {
    let base = Base {
        workspace: vec![project.to_owned()],
        temp: "/tmp".into(),
        closed: vec!["/home".into()],
        ..Base::default()
    };
    Profile {
        acting: None,
        places: vec![PathAccess { path: project.to_owned(), access: Access::ReadWrite }],
        temp,
        own: Vec::new(),
        closed: Vec::new(),
        devices: Vec::new(),
        hostname: "sandbox".to_owned(),
        limits: Limits::default(),
        names: Some(plain_name_rules(base).expect("rules that can be passed on")),
        order: Some(NameOrder::open(&project.with_extension("order")).expect("an order of names")),
    }
}

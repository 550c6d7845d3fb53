//! The cost of a system call that the broker executes, and of reads when every name is checked. `cargo bench
//! -p portcullis-benches --bench calls`

#![expect(clippy::expect_used, clippy::print_stdout, reason = "a benchmark ends where it cannot measure")]

use std::fs::{self, File, OpenOptions};
use std::os::fd::{AsRawFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::process::{Command as Bare, ExitCode, Stdio};

use portcullis_benches::{Contestant, Race};
use portcullis_decision::Base;
use portcullis_sandbox::{Access, Command, Limits, NameOrder, PathAccess, Profile, Reads, Terminal};
use portcullis_sandbox_runtime::{Confinement, Exit, KEEPER_ARGUMENT, keeper_main};
use portcullis_session::{make_names, plain_name_rules};

/// The argument that makes this program repeat one of [`KINDS`].
const DO: &str = "__do";
/// Kinds of calls, and the number of them in a round. Each call is followed by the one that undoes it.
const KINDS: [(&str, usize); 7] = [
    ("make and remove a file", 500),
    ("make and remove a directory", 500),
    ("rename", 500),
    ("open to write", 1000),
    ("open to read", 1000),
    ("look at a name", 1000),
    ("execute", 20),
];
/// Number of commands before memory is measured.
const COMMANDS: usize = 200;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match arguments.iter().map(String::as_str).collect::<Vec<_>>().as_slice() {
        [KEEPER_ARGUMENT, ..] => return keeper_main(make_names),
        [DO, kind, count] => {
            repeat(kind, count.parse().expect("a number"));
            return ExitCode::SUCCESS;
        }
        _ => {}
    }
    let scratch = tempfile::tempdir_in("/var/tmp").expect("a directory to work in");
    let scratch = scratch.path().canonicalize().expect("the directory");
    let project = scratch.join("project");
    fs::create_dir(&project).expect("a directory");
    fs::write(project.join("file"), "text").expect("a file");
    // A copy in the project, so that commands can execute it.
    let program = project.join("program");
    fs::copy("/proc/self/exe", &program).expect("a copy");
    let plain = sandbox(&project, &scratch.join("plain"), Reads::Free);
    let strict = sandbox(&project, &scratch.join("strict"), Reads::Judged);
    for (kind, count) in KINDS {
        let mut race = Race::new(&format!("{kind}, {count} times"));
        race.rounds = 10;
        println!(
            "{}",
            race.run(vec![
                Contestant::new("no sandbox", 1, || bare(&program, &project, kind, count)),
                Contestant::new("sandbox", 1, || inside(&plain, &program, &project, kind, count)),
                Contestant::new("where reading is judged", 1, || {
                    inside(&strict, &program, &project, kind, count);
                }),
            ])
        );
    }
    (0..COMMANDS).for_each(|_| inside(&plain, &program, &project, "look at a name", 1));
    println!("memory after {COMMANDS} commands: {}", memory(&plain));
    ExitCode::SUCCESS
}

fn repeat(kind: &str, count: usize) {
    for _ in 0..count {
        match kind {
            "make and remove a file" => {
                drop(OpenOptions::new().write(true).create_new(true).open("new").expect("made"));
                fs::remove_file("new").expect("removed");
            }
            "make and remove a directory" => {
                fs::create_dir("new").expect("made");
                fs::remove_dir("new").expect("removed");
            }
            "rename" => {
                fs::rename("file", "other").expect("renamed");
                fs::rename("other", "file").expect("renamed");
            }
            "open to write" => drop(OpenOptions::new().write(true).open("file").expect("opened")),
            "open to read" => drop(File::open("file").expect("opened")),
            "look at a name" => drop(fs::symlink_metadata("file").expect("there")),
            _ => assert!(Bare::new("/bin/true").status().expect("runs").success()),
        }
    }
}

fn bare(program: &Path, project: &Path, kind: &str, count: usize) {
    let mut command = Bare::new(program);
    let status =
        command.args([DO, kind, &count.to_string()]).current_dir(project).stdin(Stdio::null()).status();
    assert!(status.expect("it runs").success(), "{kind}");
}

fn inside(sandbox: &Confinement, program: &Path, project: &Path, kind: &str, count: usize) {
    let null =
        || -> OwnedFd { File::options().read(true).write(true).open("/dev/null").expect("/dev/null").into() };
    let command = Command {
        argv: vec![program.into(), DO.into(), kind.into(), count.to_string().into()],
        env: Vec::new(),
        cwd: project.to_owned(),
        limits: Limits::default(),
        terminal: Terminal::None,
    };
    let running = sandbox.launch(command, [null(), null(), null()]).expect("a command");
    assert_eq!(running.wait(), Exit::Code(0), "{kind}");
}

/// Starts a sandbox as for a session with only the base rules.
fn sandbox(project: &Path, temp: &Path, reads: Reads) -> Confinement {
    fs::create_dir(temp).expect("a directory");
    let base = Base {
        workspace: vec![project.to_owned()],
        temp: "/tmp".into(),
        closed: vec!["/home".into()],
        ..Base::default()
    };
    let mut names = plain_name_rules(base).expect("rules that can be passed on");
    names.reads = reads;
    let profile = Profile {
        acting: None,
        places: vec![PathAccess { path: project.to_owned(), access: Access::ReadWrite }],
        temp: temp.to_owned(),
        own: Vec::new(),
        closed: Vec::new(),
        devices: Vec::new(),
        hostname: "sandbox".to_owned(),
        limits: Limits::default(),
        names: Some(names),
        order: Some(NameOrder::open(&temp.with_extension("order")).expect("an order of names")),
    };
    Confinement::start(&PathBuf::from("/proc/self/exe"), &profile).expect("a sandbox")
}

/// Returns the memory use of the keeper and the broker.
fn memory(sandbox: &Confinement) -> String {
    let view = sandbox.view();
    let info =
        fs::read_to_string(format!("/proc/self/fdinfo/{}", view.keeper().as_raw_fd())).expect("its number");
    let keeper =
        info.lines().find_map(|line| line.strip_prefix("Pid:")).expect("its number").trim().to_owned();
    let children = fs::read_to_string(format!("/proc/{keeper}/task/{keeper}/children")).unwrap_or_default();
    let broker = children.split_whitespace().next().unwrap_or_default().to_owned();
    let of = |pid: &str| {
        let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
        let value = |name: &str| {
            let line = status.lines().find_map(|line| line.strip_prefix(name));
            line.map_or("?", str::trim).to_owned()
        };
        format!("{} resident, {} of its own", value("VmRSS:"), value("RssAnon:"))
    };
    format!("keeper {}, broker {}", of(&keeper), of(&broker))
}

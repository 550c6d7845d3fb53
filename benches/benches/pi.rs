//! The cost of the path from pi to the host: the extension's own connection in a real Node, with the real
//! host. `cargo xtask build --release`, then `cargo bench -p portcullis-benches --bench pi`
//!
//! Arguments after `--` select the races: `calls`, `once`.
//!
//! `PORTCULLIS_BIN` is the path of the host, if it is not in the target directory. The `node` on `PATH` must
//! read TypeScript, like the one that `cargo xtask setup` fetches. sandbox-runtime takes part as in the
//! benchmark `launch`.

#![expect(clippy::expect_used, clippy::print_stdout, reason = "a benchmark ends where it cannot measure")]

use std::cell::RefCell;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use portcullis_benches::{Contestant, Race, Told, is_wanted};

/// Size of Node's own heap in the second half of the measurements, in megabytes.
const HELD: u32 = 300;
/// Bytes of output of a command.
const OUTPUT: u32 = 100_000_000;

fn main() {
    let scratch = tempfile::tempdir_in("/var/tmp").expect("a directory to work in");
    let scratch = scratch.path().canonicalize().expect("the directory");
    let (home, project) = (scratch.join("home"), scratch.join("project"));
    for directory in [&home, &project] {
        fs::create_dir(directory).expect("a directory");
    }
    fs::write(project.join("small"), "a line of text\n".repeat(60)).expect("a file");
    let place = Place { host: host(), home, project };
    if is_wanted("calls") {
        for held in [0, HELD] {
            calls(&place, held);
        }
    }
    if is_wanted("once") {
        once(&place);
    }
}

/// The paths that the benchmarks use.
struct Place {
    host: PathBuf,
    home: PathBuf,
    project: PathBuf,
}

impl Place {
    fn command(&self, program: impl AsRef<std::ffi::OsStr>) -> Command {
        let mut command = Command::new(program);
        command.env("HOME", &self.home).current_dir(&self.project);
        command
    }
}

/// Returns the path of the host: `PORTCULLIS_BIN`, or the program beside this one.
fn host() -> PathBuf {
    let named = std::env::var_os("PORTCULLIS_BIN").map(PathBuf::from);
    let host = named.unwrap_or_else(|| {
        let myself = std::env::current_exe().expect("this program's path");
        myself.ancestors().nth(2).expect("the target directory").join("portcullis")
    });
    assert!(host.exists(), "there is no host at `{}`: `cargo xtask build --release`", host.display());
    host
}

fn calls(place: &Place, held: u32) {
    let sources = concat!(env!("CARGO_MANIFEST_DIR"), "/../pi/src");
    let mut node = place.command("node");
    node.arg(concat!(env!("CARGO_MANIFEST_DIR"), "/src/extension.mjs")).arg(sources);
    node.arg(&place.host).arg(&place.project).arg(held.to_string());
    let node = RefCell::new(Told::start(node));
    println!("the idle host holds {} kB", node.borrow_mut().ask("memory"));
    let told = |name: &str, what: &str, count: u32| {
        let line = format!("{what} {count}");
        let node = &node;
        Contestant::new(name, 1, move || node.borrow_mut().say(&line))
    };
    let race = |title: &str, contestants| println!("{}", Race::new(title).run(contestants));
    race(
        &format!("20 times `bash -c true`, Node holding {held} MB"),
        vec![
            told("Node's own spawn", "bare", 20),
            told("extension and host", "confined", 20),
            told("20 decisions", "decide", 20),
        ],
    );
    race(
        "20 times a small file",
        vec![told("Node's own read", "fs", 20), told("extension and host", "read", 20)],
    );
    race(
        &format!("{OUTPUT} bytes of output"),
        vec![
            told("Node's own pipe", "flood bare", OUTPUT),
            told("extension and host", "flood confined", OUTPUT),
        ],
    );
}

/// Measures the cost of starting a host for a single task.
fn once(place: &Place) {
    let run = |mut command: Command| {
        let status = command.stdin(Stdio::null()).stdout(Stdio::null()).status().expect("a process");
        assert!(status.success(), "{command:?}");
    };
    let with = |program: &Path, arguments: &[&str]| {
        let mut command = place.command(program);
        command.args(arguments);
        run(command);
    };
    let mut contestants = vec![
        Contestant::new("/bin/true", 5, || with(Path::new("/bin/true"), &[])),
        Contestant::new("host up to its first verdict", 5, || with(&place.host, &["check", "read", "small"])),
        Contestant::new("host that runs one command", 5, || with(&place.host, &["run", "--", "true"])),
        Contestant::new("node -e 0", 2, || with(Path::new("node"), &["-e", "0"])),
    ];
    if let Some(installed) = std::env::var_os("SANDBOX_RUNTIME").map(PathBuf::from) {
        let srt = installed.join("node_modules/.bin/srt");
        contestants.push(Contestant::new("srt true", 1, move || with(&srt, &["true"])));
    }
    println!("{}", Race::new("once").run(contestants));
}

//! The cost of a brokered host, whose requests the gate reads: against one that is not brokered, and without the gate.
//! `cargo build --release -p portcullis-cli`, then `cargo bench -p portcullis-benches --bench brokered`
//!
//! The client runs for the whole race. It speaks HTTP/1.1 over TLS to servers outside of the sandbox, on 127.0.0.1:
//! requests with an answer of 300 bytes, on a kept connection and on new ones; the same with curl, Node and Python; and
//! clones of a repository of random files with git's own HTTP server. `BENCH_CLONE_MIB` changes its size.

#![expect(clippy::expect_used, clippy::print_stdout, reason = "a benchmark ends where it cannot measure")]

#[path = "brokered/client.rs"]
mod client;
#[path = "brokered/programs.rs"]
mod programs;
#[path = "brokered/server.rs"]
mod server;

use std::cell::RefCell;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

use client::TOKEN;
use portcullis_benches::{Contestant, Race, Told, is_wanted};

/// The argument that makes this program the client.
const CLIENT: &str = "--client";
/// The variable with the credential outside.
const SECRET: &str = "BENCH_SECRET";
/// Rounds of a race of clones, which take seconds each, and of one with large clones.
const CLONES: usize = 7;
const LARGE_CLONES: usize = 3;
/// The size of the repository, in MiB.
const CLONE_MIB: usize = 200;

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().collect();
    if words.get(1).is_some_and(|first| first == CLIENT) {
        client::run();
        return ExitCode::SUCCESS;
    }
    let scratch = tempfile::tempdir_in("/var/tmp").expect("a directory to work in");
    let scratch = scratch.path().canonicalize().expect("the directory");
    let project = scratch.join("project");
    std::fs::create_dir(&project).expect("a directory");
    // The original file may be in a directory that the sandbox hides.
    let program = project.join("client");
    std::fs::copy(std::env::current_exe().expect("own path"), &program).expect("a copy");
    let repository = is_wanted("clone").then(|| repository(&scratch));
    let (brokered, plain) = server::start(&scratch, &scratch.join("authority.pem"));
    let Some(binary) = portcullis() else {
        println!("portcullis takes no part: build it first, in this profile");
        return ExitCode::SUCCESS;
    };
    let gated = {
        let mut command = Command::new(binary);
        command.args(["run", "--ask", "deny", "--settings"]).arg(settings(&scratch, brokered, plain));
        command.arg("--").arg(&program);
        RefCell::new(station(command, &scratch, &project))
    };
    let direct = RefCell::new(station(Command::new(&program), &scratch, &project));
    let mut kinds = vec![
        ("kept", format!("{} requests on a kept connection", client::KEPT)),
        ("new", format!("{} requests on new connections", client::NEW)),
        ("clone", format!("a clone of {} MiB", clone_mib())),
    ];
    let title = |name| format!("{} requests of {name} on a kept connection", programs::REQUESTS);
    kinds.extend(programs::ALL.map(|name| (name, title(name))));
    for (kind, title) in kinds {
        if !is_wanted(kind) {
            continue;
        }
        let say = |station: &RefCell<Told>, port: u16| station.borrow_mut().say(&format!("{kind} {port}"));
        let mut race = Race::new(&title);
        if kind == "clone" {
            race.rounds = if clone_mib() > 2 * CLONE_MIB { LARGE_CLONES } else { CLONES };
        }
        let contestants = vec![
            Contestant::new("direct", 1, || say(&direct, plain)),
            Contestant::new("through the gate", 1, || say(&gated, plain)),
            Contestant::new("brokered", 1, || say(&gated, brokered)),
        ];
        let outcome = race.run(contestants);
        println!("{outcome}");
        let against = outcome.ratio("brokered", "through the gate").expect("both took part");
        println!("  brokered against through the gate: {:.2}x, p25 {:.2}x\n", against.median, against.calm);
    }
    drop(repository);
    ExitCode::SUCCESS
}

/// Starts a client, which executes orders and reports each as done.
fn station(mut command: Command, scratch: &Path, project: &Path) -> Told {
    let authority = scratch.join("authority.pem");
    command.arg(CLIENT).current_dir(project).env(SECRET, server::SECRET);
    for name in ["SSL_CERT_FILE", "GIT_SSL_CAINFO", "CURL_CA_BUNDLE", "NODE_EXTRA_CA_CERTS"] {
        command.env(name, &authority);
    }
    Told::start(command)
}

/// Returns the path of portcullis: `PORTCULLIS_BIN`, or the program beside this one.
fn portcullis() -> Option<PathBuf> {
    if let Some(named) = std::env::var_os("PORTCULLIS_BIN") {
        return Some(named.into());
    }
    let own = std::env::current_exe().ok()?;
    own.ancestors().nth(2).map(|folder| folder.join("portcullis")).filter(|path| path.exists())
}

fn settings(directory: &Path, brokered: u16, plain: u16) -> PathBuf {
    let path = directory.join("settings.json");
    let text = format!(
        r#"{{ "network": {{ "allowedDomains": ["127.0.0.1:{brokered}", "127.0.0.1:{plain}"], "deniedDomains": [] }},
             "filesystem": {{ "denyRead": [], "allowRead": ["."], "allowWrite": ["."], "denyWrite": [] }},
             "credentials": {{ "brokered": [{{
                 "name": "bench", "source": {{ "env": "{SECRET}" }}, "host": "127.0.0.1:{brokered}",
                 "form": "bearer", "for": ["* /**"], "variables": ["{TOKEN}"] }}] }} }}"#
    );
    std::fs::write(&path, text).expect("settings");
    path
}

fn clone_mib() -> usize {
    std::env::var("BENCH_CLONE_MIB").ok().and_then(|text| text.parse().ok()).unwrap_or(CLONE_MIB)
}

/// Makes a repository of random files, in one pack.
fn repository(scratch: &Path) -> PathBuf {
    let made = scratch.join("git/repository");
    std::fs::create_dir_all(&made).expect("a directory");
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    for number in 0..clone_mib() {
        let words = std::iter::repeat_with(|| {
            // Xorshift (Marsaglia 2003): nothing in it can be compressed.
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            state.to_le_bytes()
        });
        let bytes: Vec<u8> = words.take(1 << 17).flatten().collect();
        std::fs::write(made.join(format!("file-{number}")), bytes).expect("a file");
    }
    let git = |words: &[&str]| {
        let identity =
            ["-c", "user.name=n", "-c", "user.email=e", "-c", "core.compression=0", "-c", "gc.auto=0"];
        let done = Command::new("git").args(identity).args(words).current_dir(&made).status().expect("git");
        assert!(done.success(), "git {words:?}");
    };
    git(&["init", "-q"]);
    git(&["add", "."]);
    git(&["commit", "-q", "-m", "random files"]);
    git(&["repack", "-adq", "--window=0"]);
    made
}

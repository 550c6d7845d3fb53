//! The cost of the record for `portcullis undo`: write-heavy commands in a sandbox with a record and in one without.
//! `cargo bench -p portcullis-benches --bench undo`
//!
//! Arguments after `--` select commands by their names here.

#![expect(clippy::expect_used, clippy::print_stdout, reason = "a benchmark ends where it cannot measure")]

use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use portcullis_benches::write_heavy::{bare, inside, make_npm_package, make_tree, profile};
use portcullis_benches::{Contestant, Race, is_wanted};
use portcullis_changes::{Bounds, SessionChanges, make};
use portcullis_sandbox::NameOrder;
use portcullis_sandbox_runtime::{Confinement, KEEPER_ARGUMENT, keeper_main};
use portcullis_session::make_names;

/// Number of rounds. Each takes some tenths of a second.
const ROUNDS: usize = 10;
/// Number of files in the tree, and of directories for them.
const FILES: usize = 2000;
const DIRECTORIES: usize = 100;
/// More than any run keeps.
const BOUNDS: Bounds = Bounds { file: 64 << 20, session: 1 << 40 };

/// Number of packages that npm installs, and of files in each.
const PACKAGES: usize = 40;
const IN_A_PACKAGE: usize = 50;
const NPM_CI: &str = "cd app && npm ci --offline --no-audit --no-fund --silent --cache ../npm-cache";

/// The command that changes nothing.
const READS: &str = "read";

/// The commands: name, preparation and script. They run in a directory with `tree`, `tree.tar`,
/// `repository` and `app`.
const WORK: [(&str, &str, &str); 10] = [
    (READS, "true", "find tree -type f | xargs cat"),
    ("rm", "cp -r tree victim", "rm -r victim"),
    ("tar", "rm -rf out && mkdir out", "tar xf tree.tar -C out"),
    ("cp", "rm -rf copy", "cp -a tree copy"),
    ("clone", "rm -rf clone", "git clone -q --no-hardlinks repository clone"),
    ("npm-ci", "rm -rf app/node_modules", NPM_CI),
    ("clone-and-rm", "rm -rf clone", "git clone -q --no-hardlinks repository clone && rm -rf clone"),
    ("sed", "true", "find tree -name '*1.txt' | xargs sed -i s/a/a/"),
    ("chmod", "true", "chmod -R g-w tree"),
    ("touch-h", "true", "find tree -type f | xargs touch -h -d 2001-01-01"),
];

fn main() -> ExitCode {
    if std::env::args().nth(1).is_some_and(|first| first == KEEPER_ARGUMENT) {
        return keeper_main(make_names);
    }
    let scratch = tempfile::tempdir_in(std::env::var_os("BENCH_PLACE").unwrap_or("/var/tmp".into()))
        .expect("a directory to work in");
    let scratch = scratch.path().canonicalize().expect("the directory");
    let (project, store) = (scratch.join("project"), scratch.join("store"));
    for directory in [&project, &store] {
        std::fs::create_dir(directory).expect("a directory");
    }
    make_tree(&project, FILES, DIRECTORIES);
    if is_wanted("npm-ci") {
        make_npm_package(&project, PACKAGES, IN_A_PACKAGE);
    }
    make(&store, BOUNDS).expect("a store");
    let changes = SessionChanges::open(&store).expect("a record");
    let order = NameOrder::open(&scratch.join("order")).expect("an order of names");
    let open = |path: &Path| File::open(path).expect("a directory");
    let recording = order.clone().keeping_changes_in(open(&store), open(&project));
    let plain = sandbox(&project, scratch.join("plain"), order);
    let recorded = sandbox(&project, scratch.join("recorded"), recording);
    for (name, prepare, script) in WORK.into_iter().filter(|(name, ..)| is_wanted(name)) {
        let mut race = Race::new(&format!("{name}: {script}"));
        race.rounds = ROUNDS;
        println!(
            "{}",
            race.run(vec![
                Contestant::new("without a record", 1, || {
                    drop(inside(&plain, &project, script));
                })
                .after(|| bare(&project, prepare)),
                Contestant::new("with a record", 1, || {
                    let start = changes.length().expect("a length");
                    let call = inside(&recorded, &project, script).in_changes();
                    let left = changes.finish(call, start, None, script).expect("finished");
                    assert!((left.names > 0) == (name != READS) && left.lost.is_empty(), "{left:?}");
                })
                .after(|| bare(&project, prepare)),
            ])
        );
    }
    ExitCode::SUCCESS
}

/// Starts a sandbox as for a session with only the base rules.
fn sandbox(project: &Path, temp: PathBuf, order: NameOrder) -> Confinement {
    std::fs::create_dir(&temp).expect("a directory");
    Confinement::start(Path::new("/proc/self/exe"), &profile(project, temp, order)).expect("a sandbox")
}

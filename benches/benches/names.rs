//! The cost of write-heavy commands when every name is checked, compared with no sandbox: on disk, and in
//! memory, where the file system costs almost nothing. `cargo bench -p portcullis-benches --bench names`
//!
//! Arguments after `--` select the places: `disk`, `memory`.

#![expect(clippy::expect_used, clippy::print_stdout, reason = "a benchmark ends where it cannot measure")]

use std::path::Path;
use std::process::{Command as Bare, ExitCode, Stdio};

use portcullis_benches::write_heavy::{bare, inside, make_tree, profile};
use portcullis_benches::{Contestant, Race, is_wanted};
use portcullis_sandbox::NameOrder;
use portcullis_sandbox_runtime::{Confinement, KEEPER_ARGUMENT, keeper_main};
use portcullis_session::make_names;

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
    make_tree(project, FILES, DIRECTORIES);
    let order = NameOrder::open(&project.with_extension("order")).expect("an order of names");
    let profile = profile(project, temp.to_owned(), order);
    let sandbox = Confinement::start(Path::new("/proc/self/exe"), &profile).expect("a sandbox");
    for (name, script) in WORK {
        let mut race = Race::new(&format!("{name}, on {place}"));
        race.rounds = ROUNDS;
        println!(
            "{}",
            race.run(vec![
                Contestant::new("no sandbox", 1, || bare(project, script)),
                Contestant::new("sandbox", 1, || drop(inside(&sandbox, project, script))),
            ])
        );
    }
}

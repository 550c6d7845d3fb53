//! Races against a hostile process that keeps exchanging two names.
//!
//! The names are a directory and a link, or a file and a hard link to another. Meanwhile files are read, written,
//! edited and listed.

use std::env;
use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitCode};
use std::time::{Duration, Instant};

use portcullis_decision::request::FileOperation;
use portcullis_each_user::Test;
use portcullis_file_gate::{FileContent, Limits, Links, Purpose};
use rustix::fs::{CWD, RenameFlags};

use crate::edits::begin;
use crate::kit::{Failure, TestDir};

/// Runs this program as the hostile process: `__flip <one name> <other name> <pause in µs>`.
pub(crate) const FLIP: &str = "__flip";

/// Multiplies the number of tries, for long runs.
const MORE: &str = "PORTCULLIS_RACE_FACTOR";

/// Pauses between two exchanges, in µs. The one that hits a window best depends on the machine.
pub(crate) const PAUSES: [u64; 4] = [0, 20, 50, 500];

/// How long a control may take to show the leak that the gate must not have.
const PATIENCE: Duration = Duration::from_secs(60);

pub(crate) const TESTS: &[Test] = &[
    ("no_read_leaks_in_a_race", no_read_leaks_in_a_race),
    ("no_write_leaks_in_a_race", no_write_leaks_in_a_race),
    ("no_edit_leaks_in_a_race", no_edit_leaks_in_a_race),
    ("no_listing_leaks_in_a_race", no_listing_leaks_in_a_race),
    ("no_other_name_leaks_in_a_race", no_other_name_leaks_in_a_race),
];

pub(crate) fn flip_for_ever(arguments: &[String]) -> ExitCode {
    let [one, other, pause] = arguments else { return ExitCode::FAILURE };
    let pause = Duration::from_micros(pause.parse().expect("a number"));
    loop {
        if rustix::fs::renameat_with(CWD, one, CWD, other, RenameFlags::EXCHANGE).is_err() {
            return ExitCode::FAILURE;
        }
        if !pause.is_zero() {
            std::thread::sleep(pause);
        }
    }
}

/// The hostile process; it ends when this is dropped.
pub(crate) struct Attacker(Child);

impl Attacker {
    pub(crate) fn start(place: &TestDir, pause: u64) -> Self {
        Self::exchanging(place, ["p/real", "p/link"], pause)
    }

    fn exchanging(place: &TestDir, names: [&str; 2], pause: u64) -> Self {
        let program = env::current_exe().expect("own path");
        let names = names.map(|name| place.path(name));
        let child = Command::new(program).arg(FLIP).args(names).arg(pause.to_string()).spawn();
        Self(child.expect("it starts"))
    }

    pub(crate) fn is_alive(&mut self) -> bool {
        self.0.try_wait().expect("known").is_none()
    }
}

impl Drop for Attacker {
    fn drop(&mut self) {
        drop(self.0.kill());
        drop(self.0.wait());
    }
}

/// Makes `p/real` a directory with a file, and `p/link` a link to the secret.
pub(crate) fn contest(place: &TestDir) {
    fs::create_dir(place.path("p/real")).expect("a directory");
    place.put("p/real/f", "public");
    place.link("../secret", "p/link");
}

/// Returns the number of tries. A normal run tries the portable gate less often; with `PORTCULLIS_EVERY_TASK`
/// (`cargo xtask test --full`), as often as the other.
pub(crate) fn tries(least: usize) -> usize {
    let factor: usize = env::var(MORE).map_or(1, |factor| factor.parse().expect("a number"));
    let is_short = cfg!(feature = "portable") && env::var_os("PORTCULLIS_EVERY_TASK").is_none();
    least * factor / if is_short { 10 } else { 1 }
}

/// Imitates a gate that checks a name and then opens it: it resolves the real path first, and then returns the name.
fn naively(place: &TestDir) -> Option<PathBuf> {
    let name = place.path("p/real/f");
    let real = fs::canonicalize(&name).ok()?;
    real.starts_with(place.path("p")).then_some(name)
}

/// Repeats `leaks` under attack until it returns true; fails if it never does.
fn control(place: &TestDir, leaks: impl Fn(&Path) -> bool) {
    let start = Instant::now();
    let mut tries = 0_usize;
    for pause in PAUSES.iter().cycle() {
        let _attacker = Attacker::start(place, *pause);
        for _ in 0..2_000 {
            tries += 1;
            if naively(place).is_some_and(|name| leaks(&name)) {
                println!("    control: checked by name, it leaked after {tries} tries");
                return;
            }
        }
        assert!(start.elapsed() < PATIENCE, "the control did not leak, so the test shows nothing");
    }
}

#[derive(Default)]
struct Count {
    done: usize,
    denied: usize,
    failed: usize,
}

impl Count {
    fn add<T>(&mut self, result: &Result<T, Failure>) {
        match result {
            Ok(_) => self.done += 1,
            Err(Failure::Denied) => self.denied += 1,
            Err(Failure::Failed(_)) => self.failed += 1,
        }
    }
}

fn no_read_leaks_in_a_race() {
    let place = TestDir::new();
    contest(&place);
    control(&place, |name| fs::read(name).is_ok_and(|content| content == b"TOPSECRET"));
    let mut count = Count::default();
    for pause in PAUSES {
        let mut attacker = Attacker::start(&place, pause);
        for _ in 0..tries(5_000) {
            let result = place.read("p/real/f");
            assert!(result.as_ref().map_or(true, |content| content.bytes == b"public"), "it leaked");
            count.add(&result);
        }
        assert!(attacker.is_alive());
    }
    report("reads", &count);
}

fn no_write_leaks_in_a_race() {
    let place = TestDir::new();
    contest(&place);
    control(&place, |name| {
        let written = fs::write(name, "overwritten").is_ok();
        let leaked = place.content("secret/f") != "TOPSECRET";
        place.put("secret/f", "TOPSECRET");
        written && leaked
    });
    let mut count = Count::default();
    for pause in PAUSES {
        let mut attacker = Attacker::start(&place, pause);
        for round in 0..tries(1_250) {
            // Every second write goes to a new name in a directory that does not exist either.
            let name = if round % 2 == 0 { "p/real/f".into() } else { format!("p/real/{round}/new") };
            count.add(&place.write(name, &round.to_string()));
            assert_eq!(place.content("secret/f"), "TOPSECRET");
        }
        assert!(attacker.is_alive());
        assert_eq!(place.names("secret"), ["f"]);
    }
    report("writes", &count);
}

/// An edit has two steps, and names are exchanged between them as well.
fn no_edit_leaks_in_a_race() {
    let place = TestDir::new();
    contest(&place);
    control(&place, |name| {
        let content = fs::read(name).unwrap_or_default();
        let edited = fs::write(name, [content.as_slice(), b"!"].concat()).is_ok();
        let leaked = place.content("secret/f") != "TOPSECRET";
        place.put("secret/f", "TOPSECRET");
        edited && leaked
    });
    // The control has written to either file, and stopped with the names in either order.
    let real = ["p/real", "p/link"].into_iter().find(|name| !place.path(name).is_symlink()).expect("one is");
    place.put(&format!("{real}/f"), "public");
    let mut count = Count::default();
    for pause in PAUSES {
        let mut attacker = Attacker::start(&place, pause);
        for round in 0..tries(1_250) {
            let result = begin(&place, "p/real/f").and_then(|editing| {
                assert!(editing.content().bytes.starts_with(b"public"), "it was read");
                Ok(place.gate.replace(editing, format!("public {round}").as_bytes(), Links::Refuse)?)
            });
            count.add(&result);
            assert_eq!(place.content("secret/f"), "TOPSECRET");
        }
        assert!(attacker.is_alive());
        assert_eq!(place.names("secret"), ["f"]);
    }
    report("edits", &count);
}

fn no_listing_leaks_in_a_race() {
    let place = TestDir::new();
    contest(&place);
    place.put("secret/hidden", "x");
    let shows = |directory: &Path| {
        fs::read_dir(directory).is_ok_and(|mut entries| {
            entries.any(|entry| entry.is_ok_and(|entry| entry.file_name() == "hidden"))
        })
    };
    control(&place, |name| name.parent().is_some_and(shows));
    let mut count = Count::default();
    for pause in PAUSES {
        let mut attacker = Attacker::start(&place, pause);
        for _ in 0..tries(2_500) {
            let result = place.list("p/real", Limits::default(), &mut |_, _| true);
            let names = result.as_ref().map(|listing| listing.entries.as_slice()).unwrap_or_default();
            assert!(!names.iter().any(|entry| entry.name == "hidden"), "it leaked");
            count.add(&result);
        }
        assert!(attacker.is_alive());
    }
    report("listings", &count);
}

/// The number of names is checked on the file that is read, not on a name.
fn no_other_name_leaks_in_a_race() {
    let place = TestDir::new();
    place.put("p/f", "public");
    fs::hard_link(place.path("secret/f"), place.path("p/other")).expect("linked");
    let start = Instant::now();
    let attack = |pause| Attacker::exchanging(&place, ["p/f", "p/other"], pause);
    let naive = |name: &Path| {
        let is_alone = fs::symlink_metadata(name).is_ok_and(|metadata| metadata.nlink() == 1);
        is_alone && fs::read(name).is_ok_and(|content| content == b"TOPSECRET")
    };
    let mut pauses = PAUSES.iter().cycle();
    while !pauses.next().is_some_and(|pause| {
        let _attacker = attack(*pause);
        (0..2_000).any(|_| naive(&place.path("p/f")))
    }) {
        assert!(start.elapsed() < PATIENCE, "the control did not leak, so the test shows nothing");
    }
    let mut count = Count::default();
    for pause in PAUSES {
        let mut attacker = attack(pause);
        for _ in 0..tries(2_500) {
            let result = read_if_alone(&place, "p/f");
            assert!(result.as_ref().map_or(true, |content| content.bytes == b"public"), "it leaked");
            count.add(&result);
        }
        assert!(attacker.is_alive());
    }
    report("reads of what may have other names", &count);
}

/// Reads a file as the session does: only if all its names are in the project.
fn read_if_alone(place: &TestDir, name: &str) -> Result<FileContent, Failure> {
    let located = place.locate(name, Purpose::Existing)?;
    let names = place.gate.names_of(&located, &[place.path("p")])?;
    let permit = place.decide(&located, FileOperation::Read).filter(|_| names.is_complete);
    Ok(place.gate.read(located, permit.ok_or(Failure::Denied)?, Limits::default())?)
}

fn report(what: &str, count: &Count) {
    let Count { done, denied, failed } = count;
    println!(
        "    {what}: 0 leaks in {}: {done} done, {denied} denied, {failed} failed",
        done + denied + failed
    );
    assert!(*done > 0 && *denied > 0, "both sides of the exchange were met");
}

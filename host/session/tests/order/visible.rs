//! The visibility of a file that a tool creates, before the file has its name.

use std::io::{PipeReader, Read as _, pipe};
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::{fs, thread};

use portcullis_decision::request::Origin;
use portcullis_each_user::{Test, cannot_run};
use portcullis_session::{Cancel, CommandCall, Program, commands};
use portcullis_settings_format::RequiredTier;

use crate::installers::{Ending, Installer, Old, OldOrder, Write};
use crate::scene::Scene;

pub(crate) const TESTS: &[Test] = &[
    ("order::a_command_hears_of_a_file_without_a_name_and_can_do_nothing_with_it", in_the_tier_full),
    ("order::nor_can_one_that_sees_the_processes_of_the_host", in_the_tier_landlock),
];

/// The argument with which this program is started where there are no namespaces.
pub(crate) const WITHOUT_NAMESPACES: &str = "__without_namespaces";
/// Arguments for `unshare`, before a program, that take user namespaces away.
const NO_NAMESPACES: &[&str] =
    &["-Ur", "sh", "-c", "echo 0 > /proc/sys/user/max_user_namespaces && exec \"$@\"", "sh"];

/// How many files are written while somebody spies; every second one replaces the one before.
const FILES: usize = 40;
/// How often the control may be tried until its spy has got hold of one.
const ROUNDS: usize = 20;
const LENGTH: usize = 4 << 20;

/// What the spy says in the end; see `spy.c`.
#[derive(Debug, PartialEq, Eq)]
struct Spied {
    heard: u32,
    seen: u32,
    opened: u32,
    named: u32,
    used: u32,
}

fn in_the_tier_full() {
    nothing_can_be_done(RequiredTier::Full);
}

fn in_the_tier_landlock() {
    let mut unshare = Command::new("unshare");
    unshare.args(NO_NAMESPACES).arg(std::env::current_exe().expect("own path")).arg(WITHOUT_NAMESPACES);
    let ended = unshare.status().expect("unshare starts");
    assert!(ended.success(), "{ended}");
}

/// The test in the tier `landlock`, in a process that can make no namespaces.
pub(crate) fn without_namespaces() {
    nothing_can_be_done(RequiredTier::Landlock);
}

fn nothing_can_be_done(tier: RequiredTier) {
    let Some(mut scene) = Scene::new() else { return cannot_run("a C compiler (`cc`)") };
    scene.least = tier;
    let Some(spy) = scene.compile("spy", include_str!("spy.c")) else { return cannot_run("a C compiler") };
    let directory = scene.project.join("w");
    fs::create_dir(&directory).expect("a directory");
    let argv = [spy, directory.clone(), PathBuf::from(std::process::id().to_string())];

    let caught = (0..ROUNDS).map(|_| spied_on_old_order(&scene, &argv)).find(|spied| spied.named > 0);
    let caught = caught.expect("control: outside of the sandbox the spy never got hold of a file");
    assert!(caught.seen > 0 && stolen(&directory) > 0, "control: {caught:?}");
    println!("    outside of the sandbox: {caught:?}");
    clear(&directory);

    let session = scene.session("one", &scene.project, Arc::default());
    let (input, end) = pipe().expect("a pipe");
    let (mut said, output) = pipe().expect("a pipe");
    let spied = thread::scope(|scope| {
        let cancel = Cancel::default();
        let call = CommandCall {
            program: Program::Argv(argv.iter().map(Into::into).collect()),
            cwd: &scene.project,
            environment: Vec::new(),
            timeout: None,
            origin: Origin::Agent,
            call: None,
        };
        let errors: OwnedFd = output.try_clone().expect("a copy").into();
        let started = commands::start(&session, call, [input.into(), output.into(), errors], &cancel);
        let (started, session) = (started.expect("it starts"), &session);
        scope.spawn(move || commands::finish(session, &started));
        let written = write_all(&mut said, &mut Write(&scene, session));
        assert_eq!(written, FILES, "the tool writes beside the spy");
        drop(end);
        last_words(&mut said)
    });
    session.close();
    println!("    in the sandbox: {spied:?}");
    assert!(spied.heard > 0, "it says that something happens in the directory");
    assert_eq!((spied.seen, spied.opened, spied.named, spied.used), (0, 0, 0, 0));
    assert_eq!(stolen(&directory), 0);
}

fn spied_on_old_order(scene: &Scene, argv: &[PathBuf; 3]) -> Spied {
    let [spy, arguments @ ..] = argv;
    let (input, end) = pipe().expect("a pipe");
    let (mut said, output) = pipe().expect("a pipe");
    let mut spy = Command::new(spy).args(arguments).stdin(input).stdout(output).spawn().expect("a spy");
    write_all(&mut said, &mut OldOrder::new(scene, Old::Write));
    drop(end);
    spy.wait().expect("it ends");
    last_words(&mut said)
}

/// Writes all files when the spy is ready; returns how many came through.
fn write_all(said: &mut PipeReader, installer: &mut dyn Installer) -> usize {
    let mut ready = [0; 2];
    said.read_exact(&mut ready).expect("read");
    assert_eq!(&ready, b"r\n", "the spy is ready");
    let content = "#".repeat(LENGTH);
    let mut written = 0;
    for number in 0..FILES {
        let ending = installer.finish(&format!("w/f{}", number / 2), &content, &|| ());
        written += usize::from(ending == Ending::Done);
    }
    written
}

fn last_words(said: &mut PipeReader) -> Spied {
    let mut words = String::new();
    said.read_to_string(&mut words).expect("read");
    let mut numbers = words.split_whitespace().map(|word| word.parse().expect(&words));
    let mut next = || numbers.next().expect("a number");
    Spied { heard: next(), seen: next(), opened: next(), named: next(), used: next() }
}

/// Files that the spy has given a name.
fn stolen(directory: &Path) -> usize {
    let names = fs::read_dir(directory).expect("listed").flatten();
    names.filter(|entry| entry.file_name().to_string_lossy().starts_with("stolen")).count()
}

fn clear(directory: &Path) {
    fs::remove_dir_all(directory).expect("removed");
    fs::create_dir(directory).expect("a directory");
}

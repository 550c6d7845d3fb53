//! Test sessions, and helpers to run commands inside and outside them.

use std::cell::Cell;
use std::ffi::OsString;
use std::fs::{self, File, Permissions};
use std::io::{Read, Write};
use std::os::fd::OwnedFd;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use portcullis_sandbox::{Access, Command, IsolationMode, Limits, NameOrder, PathAccess, Profile, Terminal};
use portcullis_sandbox_runtime::{Confinement, Exit, Held, LaunchError, Next, Running};
use tempfile::TempDir;

/// A directory with a workspace, secrets and a temporary directory, and a sandbox around it.
pub(crate) struct Session {
    pub(crate) place: TempDir,
    pub(crate) confinement: Confinement,
}

/// Waits for the next call that needs an answer; `None` when the command has ended.
pub(crate) fn next_held(running: &Running) -> Option<Held> {
    loop {
        match running.next(Duration::from_mins(1)) {
            Next::Held(held) => return Some(held),
            Next::Ended(_) => return None,
            Next::Nothing => {}
        }
    }
}

/// The result of a command.
#[derive(Debug)]
pub(crate) struct Outcome {
    pub(crate) exit: Exit,
    pub(crate) output: String,
}

impl Outcome {
    #[track_caller]
    pub(crate) fn assert(&self, code: i32, output: &str) {
        assert_eq!((self.exit, self.output.trim()), (Exit::Code(code), output));
    }

    #[track_caller]
    pub(crate) fn assert_fails(&self) {
        assert!(!matches!(self.exit, Exit::Code(0) | Exit::Lost), "{self:?}");
    }
}

/// Creates the directory `place` with `work`, `secret/key`, `home/open/file`, `home/closed` and `temp` in it.
pub(crate) fn make_place() -> TempDir {
    // Not below `/tmp`, which the sandbox replaces.
    let place =
        tempfile::Builder::new().prefix("portcullis-test-").tempdir_in("/var/tmp").expect("a directory");
    open_to_all(place.path());
    for directory in ["work/sub", "secret", "home/open/deep", "home/closed", "temp"] {
        fs::create_dir_all(place.path().join(directory)).expect("a directory");
    }
    for file in [
        "work/file",
        "work/sub/file",
        "secret/key",
        "home/open/file",
        "home/open/deep/file",
        "home/closed/file",
    ] {
        fs::write(place.path().join(file), "content\n").expect("a file");
    }
    place
}

/// The profile for [`make_place`]: the workspace is writable, the secret and the home are hidden, and `home/open` is
/// shown again.
pub(crate) fn profile(place: &Path) -> Profile {
    let places = [
        ("work", Access::ReadWrite),
        ("secret", Access::Hidden),
        ("home", Access::Hidden),
        ("home/open", Access::ReadOnly),
    ];
    let places = places.map(|(path, access)| PathAccess { path: place.join(path), access });
    Profile {
        places: places.into(),
        temp: place.join("temp"),
        own: Vec::new(),
        closed: Vec::new(),
        devices: Vec::new(),
        hostname: "box".into(),
        acting: None,
        limits: Limits::default(),
        // So that all other tests run with a broker.
        names: Some(crate::names::rules("")),
        order: Some(NameOrder::open(&place.join("order")).expect("an order of names")),
    }
}

impl Session {
    pub(crate) fn new() -> Self {
        Self::with(|_, _| ())
    }

    /// Changes the usual profile before the start.
    pub(crate) fn with(change: impl FnOnce(&Path, &mut Profile)) -> Self {
        let place = make_place();
        let mut wanted = profile(place.path());
        change(place.path(), &mut wanted);
        let confinement = start(&wanted);
        Self { place, confinement }
    }

    pub(crate) fn path(&self, below: &str) -> PathBuf {
        self.place.path().join(below)
    }

    /// Returns the session's temporary directory as commands see it.
    fn temp(&self) -> PathBuf {
        match WALLS.get() {
            IsolationMode::Namespaces => "/tmp".into(),
            IsolationMode::Landlock => self.path("temp"),
        }
    }

    pub(crate) fn command(&self, argv: &[&str]) -> Command {
        Command {
            argv: argv.iter().map(OsString::from).collect(),
            env: vec![
                ("PATH".into(), "/usr/bin:/bin:/usr/sbin:/sbin".into()),
                ("P".into(), self.place.path().into()),
                ("TMPDIR".into(), self.temp().into()),
            ],
            cwd: self.path("work"),
            limits: Limits::default(),
            terminal: Terminal::None,
        }
    }

    /// Runs a script, with `$P` for the place, and waits.
    #[track_caller]
    pub(crate) fn sh(&self, script: &str) -> Outcome {
        self.run(self.command(&["sh", "-c", script])).expect("sh starts")
    }

    pub(crate) fn run(&self, command: Command) -> Result<Outcome, LaunchError> {
        let (running, mut output) = self.start(command)?;
        let mut text = Vec::new();
        output.read_to_end(&mut text).expect("output");
        let exit = running.wait();
        Ok(Outcome { exit, output: String::from_utf8_lossy(&text).into_owned() })
    }

    /// Starts a command without input, and with one pipe for both outputs.
    pub(crate) fn start(&self, command: Command) -> Result<(Running, File), LaunchError> {
        let (read, write) = pipe();
        let copy = write.try_clone().expect("a copy");
        let running = self.confinement.launch(command, [null(), write, copy])?;
        Ok((running, File::from(read)))
    }

    /// Runs a script with a text as its input.
    pub(crate) fn sh_reading(&self, script: &str, input: &str) -> Outcome {
        let (theirs, ours) = pipe();
        let (read, write) = pipe();
        let copy = write.try_clone().expect("a copy");
        let command = self.command(&["sh", "-c", script]);
        let running = self.confinement.launch(command, [theirs, write, copy]).expect("sh starts");
        File::from(ours).write_all(input.as_bytes()).expect("written");
        let mut output = String::new();
        File::from(read).read_to_string(&mut output).expect("output");
        Outcome { exit: running.wait(), output }
    }

    /// Runs the same script without the sandbox.
    pub(crate) fn control(&self, script: &str) -> bool {
        std::process::Command::new("sh")
            .args(["-c", script])
            .env("P", self.place.path())
            .current_dir(self.path("work"))
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .status()
            .expect("sh runs")
            .success()
    }

    /// Asserts that a script works outside and fails inside.
    #[track_caller]
    pub(crate) fn refuses(&self, script: &str) {
        self.sh(script).assert_fails();
        assert!(self.control(script), "control: `{script}` works outside");
    }

    /// Asserts that a script works inside.
    #[track_caller]
    pub(crate) fn allows(&self, script: &str) {
        let outcome = self.sh(script);
        assert_eq!(outcome.exit, Exit::Code(0), "{outcome:?}");
    }
}

thread_local! {
    static WALLS: Cell<IsolationMode> = const { Cell::new(IsolationMode::Namespaces) };
}

/// The argument that makes a program use the kind of sandbox that this process uses.
pub(crate) const WITHOUT: &str = "without-namespaces";

/// Returns that argument, if this process uses sandboxes without namespaces.
pub(crate) fn walls() -> Option<&'static str> {
    (WALLS.get() == IsolationMode::Landlock).then_some(WITHOUT)
}

/// Switches to sandboxes without namespaces, if the argument says so.
pub(crate) fn take_walls(argument: Option<&String>) {
    if argument.is_some_and(|argument| argument == WITHOUT) {
        WALLS.set(IsolationMode::Landlock);
    }
}

/// Runs a test in sandboxes without namespaces.
pub(crate) fn without_namespaces(test: fn()) {
    struct Back;
    impl Drop for Back {
        fn drop(&mut self) {
            WALLS.set(IsolationMode::Namespaces);
        }
    }
    WALLS.set(IsolationMode::Landlock);
    let _back = Back;
    test();
}

#[track_caller]
pub(crate) fn start(profile: &Profile) -> Confinement {
    let started = match WALLS.get() {
        IsolationMode::Namespaces => Confinement::start(&own_program(), profile),
        IsolationMode::Landlock => Confinement::start_without_namespaces(&own_program(), profile),
    };
    started.unwrap_or_else(|error| {
        let cause = std::error::Error::source(&error).map(ToString::to_string);
        panic!("the sandbox does not start: {error}: {cause:?}")
    })
}

pub(crate) fn own_program() -> PathBuf {
    std::env::current_exe().expect("own path")
}

pub(crate) fn null() -> OwnedFd {
    File::open("/dev/null").expect("/dev/null").into()
}

pub(crate) fn pipe() -> (OwnedFd, OwnedFd) {
    let (read, write) = std::io::pipe().expect("a pipe");
    (read.into(), write.into())
}

pub(crate) fn open_to_all(path: &Path) {
    fs::set_permissions(path, Permissions::from_mode(0o755)).expect("permissions");
}

/// Waits up to five seconds for a condition.
pub(crate) fn eventually(what: &str, mut holds: impl FnMut() -> bool) {
    let start = std::time::Instant::now();
    while !holds() {
        assert!(start.elapsed().as_secs() < 5, "did not happen: {what}");
        std::thread::sleep(Duration::from_millis(1));
    }
}

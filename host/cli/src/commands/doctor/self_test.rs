//! Attacks on a sandbox that is built for this test, in a directory of its own.
//!
//! Each attack first runs without the sandbox: one that fails there proves nothing.

use std::net::TcpListener;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::process::{Command as Bare, Stdio};
use std::time::Duration;

use anyhow::Context as _;
use portcullis_bootstrap::process_env::{OWN_PROGRAM, ProcessEnv, random_name};
use portcullis_bootstrap::scratch::Scratch;
use portcullis_decision::Base;
use portcullis_sandbox::{
    Access, Command, Limits, OwnPlace, OwnSource, PathAccess, Profile, Stage, Terminal, Tier,
};
use portcullis_sandbox_runtime::{Confinement, Exit, StartError};
use portcullis_session::{plain_name_rules, with_causes};
use serde::Serialize;

/// The result of an attack.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum AttackResult {
    /// It succeeded without the sandbox and failed in it.
    Blocked,
    /// It succeeded in the sandbox.
    Through,
    /// It fails here even without the sandbox.
    Untried,
    /// It is ordinary work, and possible in the sandbox.
    Works,
    /// It is ordinary work, and not possible in the sandbox.
    NotWorking,
}

/// What was found in a sandbox.
#[derive(Debug)]
pub(super) struct Tested {
    pub(super) tier: Tier,
    /// Whether commands see a cache of the user's, and change only a copy of it.
    pub(super) sees_caches: bool,
    pub(super) attacked: Vec<Attacked>,
}

/// An attack with its result.
#[derive(Debug, Serialize)]
pub(super) struct Attacked {
    pub(super) attack: &'static str,
    pub(super) came: AttackResult,
}

/// The attacks, as `sh` scripts; exit status 0 means that the attack succeeded.
const ATTACKS: &[(&str, &str)] = &[
    ("reading a hidden file", "grep -q secret ../secret/key"),
    ("reading it through a link", "ln -s ../secret/key l1; grep -q secret l1"),
    ("reading it through a second name", "ln ../secret/key l2; grep -q secret l2"),
    ("reading it through another process", "grep -q secret /proc/$VICTIM/cwd/secret/key"),
    ("reading another process's environment", "grep -q HIDDEN /proc/$VICTIM/environ"),
    ("writing outside", "echo x > ../outside/new"),
    ("writing outside through a link", "ln -s ../outside l3; echo x > l3/newer"),
    ("writing through a link to a file", "ln -s ../outside/file l4; echo x >> l4"),
    ("renaming files outside", "mv ../outside/file moved"),
    ("seeing other processes", "grep -qa sleep /proc/$VICTIM/cmdline"),
    ("signalling other processes", "kill -0 $VICTIM"),
    ("making namespaces", "unshare -Ur true"),
    ("leaving a set-user-id program", "cp /bin/true s1 && chmod 4755 s1 && test -u s1"),
    ("reaching a server of this machine", "bash -c 'exec 3<>/dev/tcp/127.0.0.1/'$PORT"),
    (
        "changing the kernel's settings",
        "echo 500 > /proc/$VICTIM/oom_score_adj || : >> /proc/sys/kernel/hostname",
    ),
];

/// Attacks that only the rules over names stop. [`Tier::Namespaces`] has none: its report says so.
const NAME_ATTACKS: &[(&str, &str)] = &[
    ("making a hook of git", "git init -q r && echo x > r/.git/hooks/pre-commit"),
    ("making git run a program", "git init -q c && git -C c config core.fsmonitor ./x"),
];

/// Succeeds if the cache is seen, and can be changed.
const USE_CACHE: &str = "grep -q warm ../cache/file && echo x > ../cache/new";

/// Timeout after which an attack has failed.
const PATIENCE: Duration = Duration::from_secs(10);

/// Tests a sandbox, or returns why there is none.
pub(super) fn run(around: &ProcessEnv) -> anyhow::Result<Result<Tested, String>> {
    let place = Scratch::make(&around.state.join("doctor"), &random_name()?)
        .with_context(|| format!("making a directory in `{}`", around.state.display()))?;
    let (free, confined) = (Scene::make(&place, "free")?, Scene::make(&place, "confined")?);
    let confinement = match strongest(&confined.profile()?) {
        Ok(confinement) => confinement,
        Err(error) => return Ok(Err(with_causes(&error))),
    };
    let server = TcpListener::bind("127.0.0.1:0").context("a server to be reached")?;
    let port = server.local_addr()?.port().to_string();
    let attack = |(attack, script): &(&'static str, &str)| {
        let came = match (free.works(script, &port), confined.comes_through(&confinement, script, &port)?) {
            (_, true) => AttackResult::Through,
            (true, false) => AttackResult::Blocked,
            (false, false) => AttackResult::Untried,
        };
        Ok(Attacked { attack, came })
    };
    let tier = confinement.report().tier();
    let sees_caches =
        confined.comes_through(&confinement, USE_CACHE, &port)? && !confined.root.join("cache/new").exists();
    let of_names = if tier == Tier::Namespaces { &[] } else { NAME_ATTACKS };
    let attacked = ATTACKS.iter().chain(of_names).map(attack).collect::<anyhow::Result<_>>()?;
    Ok(Ok(Tested { tier, sees_caches, attacked }))
}

/// Starts the strongest sandbox that this machine supports.
///
/// # Errors
///
/// Returns the first error, which explains why the tier is not higher, if no sandbox starts.
fn strongest(profile: &Profile) -> Result<Confinement, StartError> {
    let own = Path::new(OWN_PROGRAM);
    let error = match Confinement::start(own, profile) {
        Err(error) => error,
        started => return started,
    };
    let started = if matches!(error, StartError::Refused { stage: Stage::Landlock | Stage::Seccomp, .. }) {
        Confinement::start(own, &Profile { names: None, ..profile.clone() })
    } else {
        Confinement::start_without_namespaces(own, profile)
    };
    started.map_err(|_| error)
}

/// A project with files around it, and a process that works there.
struct Scene {
    root: PathBuf,
    victim: Victim,
}

struct Victim(std::process::Child);

impl Drop for Victim {
    fn drop(&mut self) {
        // The process may have exited already; it only must not stay behind.
        drop(self.0.kill());
        drop(self.0.wait());
    }
}

impl Scene {
    fn make(place: &Scratch, name: &str) -> anyhow::Result<Self> {
        let root = place.directory().join(name);
        for directory in ["project", "outside", "secret", "tmp", "cache", "upper", "work", "cold"] {
            std::fs::create_dir_all(root.join(directory)).context("creating the targets of the attacks")?;
        }
        std::fs::write(root.join("outside/file"), "")?;
        std::fs::write(root.join("secret/key"), "secret\n")?;
        std::fs::write(root.join("cache/file"), "warm\n")?;
        let mut sleep = Bare::new("sleep");
        sleep.arg("60").env("HIDDEN", "1").current_dir(&root).stdin(Stdio::null());
        let victim = sleep.stdout(Stdio::null()).stderr(Stdio::null()).spawn();
        Ok(Self { victim: Victim(victim.context("starting a process to attack")?), root })
    }

    /// The project is writable, a secret beside it is hidden, and the rest has the defaults.
    fn profile(&self) -> anyhow::Result<Profile> {
        let place = |name, access| PathAccess { path: self.root.join(name), access };
        let cache = OwnSource::Layered {
            lower: vec![self.root.join("cache")],
            upper: self.root.join("upper"),
            work: self.root.join("work"),
            cold: Some(self.root.join("cold")),
        };
        Ok(Profile {
            places: vec![place("project", Access::ReadWrite), place("secret", Access::Hidden)],
            temp: self.root.join("tmp"),
            own: vec![OwnPlace { path: self.root.join("cache"), source: cache }],
            closed: Vec::new(),
            devices: Vec::new(),
            hostname: "sandbox".to_owned(),
            limits: Limits::default(),
            acting: None,
            order: None,
            names: Some(plain_name_rules(Base::default()).context("the rules over names")?),
        })
    }

    fn variables(&self, port: &str) -> [(&'static str, String); 3] {
        let path = "/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin".to_owned();
        [("VICTIM", self.victim.0.id().to_string()), ("PORT", port.to_owned()), ("PATH", path)]
    }

    fn works(&self, script: &str, port: &str) -> bool {
        let mut shell = Bare::new("sh");
        shell
            .args(["-c", script])
            .env_clear()
            .envs(self.variables(port))
            .current_dir(self.root.join("project"));
        let quiet = shell.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        quiet.status().is_ok_and(|status| status.success())
    }

    fn comes_through(&self, confinement: &Confinement, script: &str, port: &str) -> anyhow::Result<bool> {
        let null = || -> std::io::Result<OwnedFd> {
            Ok(std::fs::OpenOptions::new().read(true).write(true).open("/dev/null")?.into())
        };
        let command = Command {
            argv: ["sh", "-c", script].map(Into::into).to_vec(),
            env: self.variables(port).into_iter().map(|(name, value)| (name.into(), value.into())).collect(),
            cwd: self.root.join("project"),
            limits: Limits::default(),
            terminal: Terminal::None,
        };
        let running =
            confinement.launch(command, [null()?, null()?, null()?]).context("starting an attack")?;
        Ok(running.wait_timeout(PATIENCE) == Some(Exit::Code(0)))
    }
}

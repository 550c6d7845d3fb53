//! Runs the programs for another processor under an emulator: everything but the sandbox, which the emulator cannot
//! run.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, Result, ensure};

use crate::dist::target::{COMPILER, MAIN_PROGRAM, Target};
use crate::dist::{archive, tools};
use crate::project;
use crate::run::{quiet, say};

/// A file that every setting denies, and one that the default policy allows.
const DENIED: [&str; 3] = ["check", "read", "/etc/shadow"];
const ALLOWED: [&str; 3] = ["check", "write", "a.txt"];
/// `check` exits with this if the answer is no (`host/command-line/src/exit.rs`).
const NO: i32 = 20;
/// The policies whose cases are run.
const POLICIES: [&str; 3] = ["workspace", "guard", "git-guard"];

/// The unpacked programs, and a home for them.
struct Emulated {
    emulator: PathBuf,
    programs: PathBuf,
    directory: PathBuf,
}

/// Tries the programs in the archive for `target` in `out`.
pub(super) fn programs(out: &Path, target: Target) -> Result<()> {
    let directory = std::env::temp_dir().join(format!("xtask-emulated-{}", std::process::id()));
    fs::create_dir_all(directory.join("project")).context("creating a directory for the programs")?;
    let tried = Emulated::unpack(out, target, &directory).and_then(|emulated| emulated.try_all());
    fs::remove_dir_all(&directory).context("removing the programs")?;
    tried
}

impl Emulated {
    fn unpack(out: &Path, target: Target, directory: &Path) -> Result<Self> {
        let name = archive::name(target);
        let packed = out.join(&name);
        ensure!(packed.exists(), "`{}` is missing: run `cargo xtask dist --target all`", packed.display());
        quiet(Command::new("tar").arg("-xzf").arg(&packed).arg("-C").arg(directory))?;
        let programs = directory.join(name.trim_end_matches(".tar.gz")).join("bin");
        Ok(Self { emulator: tools::whole_emulator(target)?, programs, directory: directory.to_owned() })
    }

    fn try_all(&self) -> Result<()> {
        let version = self.succeeds(MAIN_PROGRAM, &["--version"])?;
        ensure!(version.starts_with("portcullis "), "the version is `{version}`");
        self.succeeds(COMPILER, &["--help"])?;
        self.succeeds(MAIN_PROGRAM, &ALLOWED)?;
        let denied = self.command(MAIN_PROGRAM, &DENIED).output().context("running the emulator")?;
        ensure!(denied.status.code() == Some(NO), "the denied read ended with {}", denied.status);
        say("  version, an allowed write and a denied read");
        for policy in POLICIES {
            let path = project::root().join("policies").join(policy);
            let report =
                self.succeeds(MAIN_PROGRAM, &["policy", "test", path.to_str().context("a path in UTF-8")?])?;
            say(format_args!("  {policy}: {}", report.lines().last().unwrap_or_default()));
        }
        let refused = self.command(MAIN_PROGRAM, &["run", "--", "true"]).output()?;
        let message = String::from_utf8_lossy(&refused.stderr).into_owned();
        ensure!(!refused.status.success(), "a command ran, although there can be no sandbox");
        ensure!(message.contains("commands are refused"), "the refusal says `{message}`");
        say("  a command is refused, because an emulator runs no sandbox");
        Ok(())
    }

    fn succeeds(&self, program: &str, arguments: &[&str]) -> Result<String> {
        quiet(&mut self.command(program, arguments))
    }

    fn command(&self, program: &str, arguments: &[&str]) -> Command {
        let mut command = Command::new(&self.emulator);
        command.arg(self.programs.join(program)).args(arguments);
        command.current_dir(self.directory.join("project"));
        command.env_clear().env("HOME", &self.directory).env("PATH", "/usr/bin:/bin");
        command
    }
}

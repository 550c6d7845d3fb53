//! The sandbox of one session.

use std::fs::OpenOptions;
use std::io::Write as _;
use std::os::fd::OwnedFd;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

use portcullis_sandbox::{Command, Force, Layer, Limits, Report};
use portcullis_sandbox_runtime::LaunchError;

use crate::error::ProfileError;
use crate::findings::Findings;
use crate::launcher::{Host, Launcher, OwnedFile};
use crate::running::RunningUnderProfile;
use crate::self_test::{self, Scene};

/// A sandbox that has passed its self-test.
#[derive(Debug)]
pub struct ProfileSandbox {
    launcher: Launcher,
    limits: Limits,
    report: Report,
    findings: Findings,
}

impl ProfileSandbox {
    /// Writes the text of a profile to `file`, and tests it: the sandbox exists only if every attack fails in it and
    /// every control works.
    ///
    /// `file` must lie where commands cannot write.
    ///
    /// # Errors
    /// If it cannot be tested, or fails.
    pub fn start(
        host: Host,
        (text, file): (&str, PathBuf),
        limits: Limits,
        scene: &Scene<'_>,
    ) -> Result<Self, ProfileError> {
        write(&file, text).map_err(|source| ProfileError::Write { path: file.clone(), source })?;
        let launcher = Launcher { host, profile: OwnedFile(file) };
        let findings = self_test::run(&launcher, scene)?;
        if !findings.are_good() {
            return Err(ProfileError::Failed(findings));
        }
        Ok(Self { launcher, limits, report: report(), findings })
    }

    /// Starts a command. `stdio` becomes its first three file descriptors.
    ///
    /// # Errors
    /// If it cannot be started.
    pub fn launch(&self, command: Command, stdio: [OwnedFd; 3]) -> Result<RunningUnderProfile, LaunchError> {
        let limits = command.limits.strictest(self.limits);
        self.launcher.launch(Command { limits, ..command }, stdio)
    }

    /// Returns what confines commands.
    #[must_use]
    pub fn report(&self) -> &Report {
        &self.report
    }

    /// Returns the results of the self-test.
    #[must_use]
    pub fn findings(&self) -> &Findings {
        &self.findings
    }
}

fn write(file: &Path, text: &str) -> std::io::Result<()> {
    OpenOptions::new().write(true).create_new(true).mode(0o600).open(file)?.write_all(text.as_bytes())
}

/// Returns the layers of a sandbox that has passed its self-test.
fn report() -> Report {
    let partial = |missing: &str| Force::Partial(missing.to_owned());
    let layers = vec![
        (Layer::Profile, Force::Full),
        (Layer::Network, partial("programs reach the gate only through a proxy, others have no network")),
        (
            Layer::Limits,
            partial("for each process, and not for the number of processes and their memory together"),
        ),
    ];
    Report { layers, controllers: Vec::new() }
}

//! Starts commands under a profile.

use std::ffi::OsString;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::process::Stdio;

use portcullis_sandbox::{Command, Stage};
use portcullis_sandbox_runtime::LaunchError;

use crate::running::RunningUnderProfile;
use crate::starter::Task;

/// The programs that start commands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Host {
    /// A program that calls [`crate::starter_main`] when its first argument is [`crate::STARTER_ARGUMENT`].
    pub executable: PathBuf,
    /// `sandbox-exec`, or a program that takes the same arguments: `-f PROFILE PROGRAM ARGUMENT…`.
    pub confiner: PathBuf,
}

/// Starts commands, tested or not; never public.
#[derive(Debug)]
pub(crate) struct Launcher {
    pub(crate) host: Host,
    pub(crate) profile: OwnedFile,
}

impl Launcher {
    pub(crate) fn launch(
        &self,
        command: Command,
        [input, output, errors]: [OwnedFd; 3],
    ) -> Result<RunningUnderProfile, LaunchError> {
        let Command { argv, env, cwd, limits, terminal: _ } = command;
        let program = argv.first().ok_or(LaunchError::Malformed { reason: "it is empty" })?;
        require_program(program, &env)?;
        if !cwd.is_dir() {
            return Err(LaunchError::Directory { path: cwd, source: std::io::ErrorKind::NotFound.into() });
        }
        let confiner = [self.host.confiner.clone().into(), "-f".into(), self.profile.0.clone().into()];
        let confined = confiner.into_iter().chain(argv).collect();
        let mut starter = std::process::Command::new(&self.host.executable);
        starter
            .args(Task { host: std::process::id(), limits, cwd, confined }.into_arguments())
            .env_clear()
            .envs(env)
            .stdin(Stdio::from(input))
            .stdout(Stdio::from(output))
            .stderr(Stdio::from(errors));
        let refused = |source| LaunchError::Refused { stage: Stage::Process, source };
        RunningUnderProfile::new(starter.spawn().map_err(refused)?).map_err(refused)
    }
}

/// Checks that a program exists. Otherwise the confiner's message would tell it.
fn require_program(program: &OsString, env: &[(OsString, OsString)]) -> Result<(), LaunchError> {
    let path = env.iter().find(|(name, _)| name == "PATH").map(|(_, value)| value.clone());
    let is_there = if program.as_encoded_bytes().contains(&b'/') {
        Path::new(program).exists()
    } else {
        std::env::split_paths(&path.unwrap_or_default()).any(|place| place.join(program).is_file())
    };
    let missing = || LaunchError::NotFound { program: program.to_string_lossy().into_owned() };
    is_there.then_some(()).ok_or_else(missing)
}

/// A file that is removed with its owner.
#[derive(Debug)]
pub(crate) struct OwnedFile(pub(crate) PathBuf);

impl Drop for OwnedFile {
    fn drop(&mut self) {
        let _removed_with_its_directory = std::fs::remove_file(&self.0);
    }
}

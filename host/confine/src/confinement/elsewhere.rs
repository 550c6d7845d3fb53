//! Systems on which commands cannot be confined.

use std::os::fd::{BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use crate::{
    Command, LaunchError, Listeners, MakeNames, NoGate, Profile, Report, Running, StartError, View, WayOut,
};

/// The running sandbox of one session; there is none on this system.
#[derive(Debug)]
pub enum Confinement {}

impl Confinement {
    /// Says that this system has no sandbox.
    ///
    /// # Errors
    /// Always.
    pub fn start(_executable: &Path, _profile: &Profile) -> Result<Self, StartError> {
        Err(StartError::Unsupported { system: std::env::consts::OS })
    }

    /// Says that this system has no sandbox.
    ///
    /// # Errors
    /// Always.
    pub fn start_without_namespaces(executable: &Path, profile: &Profile) -> Result<Self, StartError> {
        Self::start(executable, profile)
    }

    /// Says that this system has no sandbox.
    ///
    /// # Errors
    /// Always.
    pub fn start_gated(
        executable: &Path,
        profile: &Profile,
        _way_out: WayOut,
    ) -> Result<(Self, Result<Listeners, NoGate>), StartError> {
        Self::start(executable, profile).map(|confinement| (confinement, Err(NoGate::Lost)))
    }

    /// Returns the files as commands see them.
    pub fn view(&self) -> View {
        match *self {}
    }

    /// Starts a command.
    ///
    /// # Errors
    /// Never called.
    pub fn launch(&self, _command: Command, _stdio: [OwnedFd; 3]) -> Result<Running, LaunchError> {
        match *self {}
    }

    /// Starts a command whose calls somebody answers for.
    ///
    /// # Errors
    /// Never called.
    pub fn launch_asking(&self, _command: Command, _stdio: [OwnedFd; 3]) -> Result<Running, LaunchError> {
        match *self {}
    }

    /// Makes a socket in the session's network.
    ///
    /// # Errors
    /// Never called.
    pub fn socket_inside(&self, _is_v6: bool) -> std::io::Result<OwnedFd> {
        match *self {}
    }

    /// Returns which layers are in force.
    pub fn report(&self) -> &Report {
        match *self {}
    }
}

/// There is nothing here that would need more descriptors; returns how many there may be at most.
pub fn raise_file_limit() -> u64 {
    0
}

/// The keeper's whole life; on this system it has none.
pub fn keeper_main(_names: MakeNames) -> ExitCode {
    ExitCode::FAILURE
}

/// Says that repositories are not looked into on this system.
///
/// # Errors
/// Always.
pub fn examine_repository(
    _directory: BorrowedFd<'_>,
    _path: &Path,
    _roots: &[PathBuf],
    _lifted: &[String],
) -> std::io::Result<()> {
    Err(std::io::Error::from(std::io::ErrorKind::Unsupported))
}

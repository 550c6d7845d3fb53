//! Stubs for systems on which commands cannot be confined.

use std::os::fd::OwnedFd;
use std::path::Path;
use std::process::ExitCode;

use portcullis_sandbox::{Command, MakeNames, Profile, Report, WayOut};

use crate::{LaunchError, Listeners, NoGate, Running, StartError, View};

/// The running sandbox of one session; there is none on this system.
#[derive(Debug)]
pub enum Confinement {}

impl Confinement {
    /// Returns an error: this system has no sandbox.
    ///
    /// # Errors
    /// Always.
    pub fn start(_executable: &Path, _profile: &Profile) -> Result<Self, StartError> {
        Err(StartError::Unsupported { system: std::env::consts::OS })
    }

    /// Returns an error: this system has no sandbox.
    ///
    /// # Errors
    /// Always.
    pub fn start_without_namespaces(executable: &Path, profile: &Profile) -> Result<Self, StartError> {
        Self::start(executable, profile)
    }

    /// Returns an error: this system has no sandbox.
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

    /// Starts a command whose waiting calls the caller answers.
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

    /// Returns the report of the layers in force.
    pub fn report(&self) -> &Report {
        match *self {}
    }
}

/// Returns 0: file descriptors are not raised on this system.
pub fn raise_file_limit() -> u64 {
    0
}

/// The main function of a keeper; there is none on this system.
pub fn keeper_main(_names: MakeNames) -> ExitCode {
    ExitCode::FAILURE
}

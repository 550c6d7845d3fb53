//! How the owner of a session reads credentials for it.

use std::io;
use std::path::PathBuf;
use std::process::Child;

use portcullis_network_gate::{Secret, SshCommand};
use portcullis_settings_format::CredentialSource;

/// Reads credentials, and shows commands the certificates that they trust.
pub trait CredentialReader: Send + Sync {
    /// Reads a credential from its source. May block, since a source may ask the user to unlock it.
    ///
    /// # Errors
    /// When it cannot be read; the error says why in one sentence, and contains nothing of it.
    fn read(&self, source: &CredentialSource) -> Result<Secret, String>;

    /// Writes certificates in the format PEM to a new file, and returns its path as commands see it.
    ///
    /// # Errors
    /// If the file cannot be written.
    fn publish(&self, certificates: &str) -> io::Result<PathBuf>;

    /// Writes the program that git uses as `ssh` to a new file, and returns its path as commands see it.
    ///
    /// # Errors
    /// If the file cannot be written.
    fn publish_git_client(&self) -> io::Result<PathBuf>;

    /// Starts the user's own `ssh` outside the sandbox, with pipes for its input and output.
    ///
    /// # Errors
    /// If it cannot be started.
    fn start_ssh(&self, command: &SshCommand) -> io::Result<Child>;
}

/// Reads nothing, for sessions without commands.
#[derive(Debug, Clone, Copy)]
pub struct NoCredentials;

impl CredentialReader for NoCredentials {
    fn read(&self, _source: &CredentialSource) -> Result<Secret, String> {
        Err("this session runs no commands".to_owned())
    }

    fn publish(&self, _certificates: &str) -> io::Result<PathBuf> {
        Err(io::Error::other("this session runs no commands"))
    }

    fn publish_git_client(&self) -> io::Result<PathBuf> {
        Err(io::Error::other("this session runs no commands"))
    }

    fn start_ssh(&self, _command: &SshCommand) -> io::Result<Child> {
        Err(io::Error::other("this session runs no commands"))
    }
}

//! How the owner of a session reads credentials for it.

use std::io;
use std::os::unix::net::UnixListener;
use std::path::PathBuf;
use std::process::Child;

use portcullis_credential_broker::{Secret, SshCommand};
use portcullis_settings_format::{CredentialForm, CredentialSource, SigningForm};

use crate::basis::Basis;
use crate::credential_offers::{CredentialNeed, CredentialOffers, CredentialProposal};

/// Reads credentials, and shows commands the certificates that they trust.
pub trait CredentialReader: Send + Sync {
    /// Reads a credential from its source. May block, since a source may ask the user to unlock it.
    ///
    /// # Errors
    /// When it cannot be read; the error says why in one sentence, and contains nothing of it.
    fn read(&self, source: &CredentialSource, form: &CredentialForm) -> Result<Secret, String>;

    /// Writes certificates in the format PEM to a new file, and returns its path as commands see it.
    ///
    /// # Errors
    /// If the file cannot be written.
    fn publish(&self, certificates: &str) -> io::Result<PathBuf>;

    /// Writes the program that git uses in the place of another to a new file, and returns its path as commands see it.
    ///
    /// # Errors
    /// If the file cannot be written.
    fn publish_git_client(&self, role: GitClientRole) -> io::Result<PathBuf>;

    /// Listens at a new socket, and returns its path as commands see it.
    ///
    /// # Errors
    /// If it cannot be made.
    fn publish_signer(&self) -> io::Result<(UnixListener, PathBuf)>;

    /// Returns the key as git inside names it: with `ssh`, the public key itself.
    ///
    /// # Errors
    /// When it cannot be read; the error says why in one sentence.
    fn signing_key(&self, form: &SigningForm) -> Result<String, String>;

    /// Has a commit or a tag signed outside the sandbox.
    ///
    /// # Errors
    /// When it cannot be signed; the error says why, and what to do.
    fn sign(&self, form: &SigningForm, object: &[u8]) -> Result<Vec<u8>, String>;

    /// Starts the user's own `ssh` outside the sandbox, with pipes for its input and output.
    ///
    /// # Errors
    /// If it cannot be started.
    fn start_ssh(&self, command: &SshCommand) -> io::Result<Child>;
}

/// The program of the user in whose place git inside uses ours.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum GitClientRole {
    /// `ssh`.
    Ssh,
    /// `ssh-keygen`, for signatures.
    SshKeygen,
    /// `gpg`, for signatures.
    Gpg,
}

/// Reads and offers nothing, for sessions without commands.
#[derive(Debug, Clone, Copy)]
pub struct NoCredentials;

impl CredentialReader for NoCredentials {
    fn read(&self, _source: &CredentialSource, _form: &CredentialForm) -> Result<Secret, String> {
        Err("this session runs no commands".to_owned())
    }

    fn publish(&self, _certificates: &str) -> io::Result<PathBuf> {
        Err(io::Error::other("this session runs no commands"))
    }

    fn publish_git_client(&self, _role: GitClientRole) -> io::Result<PathBuf> {
        Err(io::Error::other("this session runs no commands"))
    }

    fn publish_signer(&self) -> io::Result<(UnixListener, PathBuf)> {
        Err(io::Error::other("this session runs no commands"))
    }

    fn signing_key(&self, _form: &SigningForm) -> Result<String, String> {
        Err("this session runs no commands".to_owned())
    }

    fn sign(&self, _form: &SigningForm, _object: &[u8]) -> Result<Vec<u8>, String> {
        Err("this session runs no commands".to_owned())
    }

    fn start_ssh(&self, _command: &SshCommand) -> io::Result<Child> {
        Err(io::Error::other("this session runs no commands"))
    }
}

impl CredentialOffers for NoCredentials {
    fn propose(&self, _need: &CredentialNeed) -> Option<CredentialProposal> {
        None
    }

    fn accept(&self, _proposal: &CredentialProposal) -> Result<Basis, String> {
        Err("this session runs no commands".to_owned())
    }

    fn target(&self) -> String {
        String::new()
    }
}

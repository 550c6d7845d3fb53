//! Entries of the settings that a session can offer for credentials that commands need.

use std::path::PathBuf;

use portcullis_approvals::question::credential_offer::CredentialOffer;
use serde_json::Value;

use crate::basis::Basis;

/// Proposes entries of the settings for credentials that commands need, and writes them.
pub trait CredentialOffers: Send + Sync {
    /// Returns the entries for a need. `None` if the settings have some for its host, or the user no credential.
    fn propose(&self, need: &CredentialNeed) -> Option<CredentialProposal>;

    /// Writes the entries to the user's settings, and returns the settings and policies with them.
    ///
    /// # Errors
    /// When they cannot be written or read; the text says why.
    fn accept(&self, proposal: &CredentialProposal) -> Result<Basis, String>;

    /// Returns the name of the file that entries are written to.
    fn target(&self) -> String;
}

/// A command that needs a credential.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CredentialNeed {
    /// `git push`.
    Push {
        /// The directory that git works in.
        directory: PathBuf,
        /// The name or the address of the remote, if the command names one.
        remote: Option<String>,
    },
    /// `npm publish`.
    Publish {
        /// The directory of the package.
        directory: PathBuf,
    },
    /// `gh`.
    Forge,
}

/// Entries that the settings could have.
#[derive(Debug, Clone, PartialEq)]
pub struct CredentialProposal {
    /// The facts for the question.
    pub offer: CredentialOffer,
    /// The name of the credential.
    pub name: String,
    /// The lists of the settings, each with the entry to add.
    pub entries: Vec<(Vec<String>, Value)>,
}

//! The setup of a session: what its owner passes in.

use std::sync::Arc;
use std::time::SystemTime;

use portcullis_approvals::{GrantStore, Prompter};
use portcullis_changes::SessionChanges;
use portcullis_decision::{Context, Reader};
use portcullis_session_sandbox::confining::Confining;
use portcullis_session_sandbox::own_directories::OwnDirectories;
use portcullis_session_sandbox::sandbox_subject::SandboxSubject;
use portcullis_settings::Resolved;

use crate::basis::Basis;
use crate::credential_offers::CredentialOffers;
use crate::credential_reader::CredentialReader;
use crate::journal::Journal;
use crate::reservations::Reservations;

/// The setup of a session.
pub struct Setup {
    /// The facts about this session; time and grants are filled in for each request.
    pub context: Context,
    /// The clock; the session has none of its own.
    pub clock: Box<dyn Fn() -> SystemTime + Send + Sync>,
    /// Records decisions before they take effect.
    pub journal: Box<dyn Journal>,
    /// Shows questions.
    pub prompter: Arc<dyn Prompter>,
    /// Stores answers that outlive the session.
    pub keeper: Arc<dyn GrantStore>,
    /// Claims of paths, shared with other sessions.
    pub reservations: Box<dyn Reservations>,
    /// Records what commands and tools change, so that it can be taken back; `None` if nothing is recorded.
    pub changes: Option<SessionChanges>,
    /// How commands are confined.
    pub confinement: Confining,
    /// Directories that the sandbox has of its own, besides its temporary directory.
    pub own: OwnDirectories,
    /// The subject of the sandbox.
    pub inmate: SandboxSubject,
    /// Who reads the notes on commands.
    pub reader: Reader,
    /// Reads credentials from their sources.
    pub credentials: Arc<dyn CredentialReader>,
    /// Proposes entries of the settings for credentials that commands need.
    pub offers: Box<dyn CredentialOffers>,
    /// Returns the additional variables of commands; called once, for the first command.
    pub variables: Box<dyn Fn() -> CommandVariables + Send + Sync>,
}

/// The additional variables of commands.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CommandVariables {
    /// Names and values.
    pub variables: Vec<(String, String)>,
    /// Names, and the names of the files in the temporary directory whose paths are the values.
    pub files: Vec<(String, String)>,
}

impl Setup {
    /// Returns whose sandbox it is, and its directories: the user's number, the processes in it, its own directories.
    pub(crate) fn inside(&self) -> (u32, &SandboxSubject, &OwnDirectories) {
        (self.context.machine.uid, &self.inmate, &self.own)
    }

    /// Returns the time in seconds since 1970-01-01 UTC.
    pub(crate) fn seconds(&self) -> u32 {
        // If the clock is invalid, all grants with an expiry have expired.
        let since = (self.clock)().duration_since(SystemTime::UNIX_EPOCH);
        since.ok().and_then(|since| u32::try_from(since.as_secs()).ok()).unwrap_or(u32::MAX)
    }
}

impl std::fmt::Debug for Setup {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("Setup").field("confinement", &self.confinement).finish_non_exhaustive()
    }
}

/// The settings in force. A reload does not change a value of this type.
#[derive(Debug, Clone)]
pub struct Settings(pub(crate) Arc<Basis>);

impl std::ops::Deref for Settings {
    type Target = Resolved;

    fn deref(&self) -> &Resolved {
        &self.0.resolved
    }
}

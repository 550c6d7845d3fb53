//! The setup of a session: what its owner passes in.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::SystemTime;

use portcullis_approvals::{GrantStore, Prompter};
use portcullis_changes::SessionChanges;
use portcullis_decision::{Context, Reader};
use portcullis_sandbox::NameOrder;
use portcullis_settings::Resolved;

use crate::basis::Basis;
use crate::credential_offers::CredentialOffers;
use crate::credential_reader::CredentialReader;
use crate::journal::Journal;
use crate::own_directories::OwnDirectories;
use crate::reservations::Reservations;
use crate::sandbox_subject::SandboxSubject;

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
    pub variables: Box<dyn Fn() -> Vec<(String, String)> + Send + Sync>,
}

impl Setup {
    pub(crate) fn is_root(&self) -> bool {
        self.context.machine.uid == 0
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

/// How commands are confined.
#[derive(Debug, Clone)]
pub enum Confining {
    /// In a sandbox.
    Sandbox {
        /// Our own program, which is also the keeper of the sandbox.
        executable: PathBuf,
        /// The host's directory that is mounted as `/tmp` in the sandbox.
        temp: PathBuf,
        /// The lock on name changes, shared by all sessions of the user.
        order: NameOrder,
    },
    /// Under a profile, on systems without Linux' sandbox.
    Profile(ProfilePlaces),
    /// No command runs, as for `check` and similar subcommands.
    NoCommands,
}

/// The programs and directories of commands under a profile.
#[derive(Debug, Clone)]
pub struct ProfilePlaces {
    /// The programs that start commands.
    pub host: portcullis_profile_runtime::Host,
    /// A directory that the rules deny to commands, for the host's own files.
    pub files: PathBuf,
    /// The session's temporary directory, to which `TMPDIR` leads.
    pub temp: PathBuf,
    /// The private home, to which `HOME` leads; without one, `HOME` leads to `temp`.
    pub home: Option<PathBuf>,
    /// The lock on name changes, shared by all sessions of the user.
    pub order: NameOrder,
}

impl Confining {
    /// Returns the lock on name changes, or `None` if no command can change names.
    pub(crate) fn order(&self) -> Option<&NameOrder> {
        match self {
            Self::Sandbox { order, .. } | Self::Profile(ProfilePlaces { order, .. }) => Some(order),
            Self::NoCommands => None,
        }
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

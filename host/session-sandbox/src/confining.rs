//! How the commands of a session are confined.

use std::path::PathBuf;

use portcullis_sandbox::NameOrder;

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
    pub fn order(&self) -> Option<&NameOrder> {
        match self {
            Self::Sandbox { order, .. } | Self::Profile(ProfilePlaces { order, .. }) => Some(order),
            Self::NoCommands => None,
        }
    }
}

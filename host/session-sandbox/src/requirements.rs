//! The requirements for every sandbox of a session, from its settings.

use std::path::PathBuf;

use portcullis_sandbox::{Hold, IsolationMode, Tier};
use portcullis_settings::Resolved;
use portcullis_settings_format::RequiredTier;

use crate::own_directories::{Changes, OwnDirectories};
use crate::sandbox_subject::SandboxSubject;
use crate::user_links::UserLinks;

/// Requirements for every sandbox of a session.
#[derive(Debug, Clone, Copy)]
pub struct Requirements<'a> {
    /// The least tier.
    pub tier: Tier,
    /// The user as whom the host runs.
    pub user: u32,
    /// Whether the host runs as root.
    pub is_root: bool,
    /// The user's home directories.
    pub homes: &'a [PathBuf],
    /// Ids of rules on names that the user has lifted.
    pub lifted: &'a [String],
    /// The user's links.
    pub links: &'a UserLinks,
    /// Whether `/tmp` is the machine's.
    pub shares_tmp: bool,
    /// Unix sockets that the settings let commands use.
    pub sockets: &'a [PathBuf],
    /// Whether connections are held before or after they are accepted.
    pub hold: Hold,
    /// How commands are kept apart from the rest of the machine.
    pub walls: IsolationMode,
    /// Directories of the sandbox's own.
    pub own: &'a OwnDirectories,
    /// Whether what commands change in caches is kept.
    pub changes: Changes,
}

impl<'a> Requirements<'a> {
    /// Returns the requirements of a user, the processes and the directories of the sandbox, and the settings.
    #[must_use]
    pub fn new(
        (user, inmate, own): (u32, &SandboxSubject, &'a OwnDirectories),
        (resolved, links): (&'a Resolved, &'a UserLinks),
        walls: IsolationMode,
    ) -> Self {
        let Resolved { homes, lifted, sockets, .. } = resolved;
        let hold = match resolved.ask.hold {
            portcullis_settings_format::Hold::Connect => Hold::Connect,
            portcullis_settings_format::Hold::Accept => Hold::Accept,
        };
        // The agent itself runs as the user who started it: under another user it could not reach its own files.
        let is_root = user == 0 && !inmate.is_agent();
        Self {
            tier: required_tier(resolved),
            user,
            is_root,
            homes,
            lifted,
            links,
            shares_tmp: resolved.shares_tmp && walls == IsolationMode::Namespaces,
            sockets,
            hold,
            walls,
            own,
            changes: own.changes(),
        }
    }
}

/// Returns the minimum tier that the settings require of the sandbox for commands.
#[must_use]
pub fn required_tier(resolved: &Resolved) -> Tier {
    match resolved.required_tier {
        RequiredTier::Landlock => Tier::Landlock,
        RequiredTier::Namespaces => Tier::Namespaces,
        RequiredTier::Full => Tier::Full,
    }
}

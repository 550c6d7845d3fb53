//! The requirements for every sandbox of a session, from its settings.

use std::path::PathBuf;

use portcullis_sandbox::{Hold, IsolationMode, Tier};
use portcullis_settings::Resolved;
use portcullis_settings_format::RequiredTier;

use crate::own_directories::{Changes, OwnDirectories};
use crate::setup::Setup;
use crate::user_links::UserLinks;

/// Requirements for every sandbox of a session.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Requirements<'a> {
    pub(crate) tier: Tier,
    /// The user as whom the host runs.
    pub(crate) user: u32,
    /// Whether the host runs as root.
    pub(crate) is_root: bool,
    /// The user's home directories.
    pub(crate) homes: &'a [PathBuf],
    /// Ids of rules on names that the user has lifted.
    pub(crate) lifted: &'a [String],
    /// The user's links.
    pub(crate) links: &'a UserLinks,
    /// Whether `/tmp` is the machine's.
    pub(crate) shares_tmp: bool,
    /// Unix sockets that the settings let commands use.
    pub(crate) sockets: &'a [PathBuf],
    pub(crate) hold: Hold,
    pub(crate) walls: IsolationMode,
    /// Directories of the sandbox's own.
    pub(crate) own: &'a OwnDirectories,
    /// Whether what commands change in caches is kept.
    pub(crate) changes: Changes,
}

impl<'a> Requirements<'a> {
    pub(crate) fn new(
        setup: &'a Setup,
        (resolved, links): (&'a Resolved, &'a UserLinks),
        walls: IsolationMode,
    ) -> Self {
        let Resolved { homes, lifted, sockets, .. } = resolved;
        let hold = match resolved.ask.hold {
            portcullis_settings_format::Hold::Connect => Hold::Connect,
            portcullis_settings_format::Hold::Accept => Hold::Accept,
        };
        // The agent itself runs as the user who started it: under another user it could not reach its own files.
        let is_root = setup.is_root() && !setup.inmate.is_agent();
        Self {
            tier: required_tier(resolved),
            user: setup.context.machine.uid,
            is_root,
            homes,
            lifted,
            links,
            shares_tmp: resolved.shares_tmp && walls == IsolationMode::Namespaces,
            sockets,
            hold,
            walls,
            own: &setup.own,
            changes: setup.own.changes(),
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

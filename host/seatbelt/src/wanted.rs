//! The input of the compiler.

use std::path::PathBuf;

use portcullis_decision::RuleSet;

/// The rules on the commands of a session, with the facts about the machine that a profile needs.
///
/// All paths are absolute, with links followed. The directories of the sandbox's own in the base of the rules are real
/// directories here: the session's temporary directory to which `TMPDIR` leads, and the private home to which `HOME`
/// leads. Both lie outside of what the rules deny, as the host's own state.
#[derive(Debug, Clone, Copy)]
pub struct Wanted<'a> {
    /// The rules.
    pub rules: &'a RuleSet,
    /// Directories below which the user's programs execute names: the workspace and the other writable places of the
    /// machine.
    pub roots: &'a [PathBuf],
    /// The user's home directories.
    pub homes: &'a [PathBuf],
    /// Ids of rules on executed names that the user has disabled.
    pub lifted: &'a [String],
    /// Git directories below the roots that are not called `.git`.
    pub repositories: &'a [PathBuf],
    /// Targets of the user's links whose names are executed.
    pub link_targets: &'a [PathBuf],
    /// The ports of the gate's proxies on this machine.
    pub ports: &'a [u16],
    /// Unix sockets that commands may use.
    pub sockets: &'a [PathBuf],
}

impl<'a> Wanted<'a> {
    /// Returns the input for rules alone: the names of the workspace are protected, and there is no network.
    #[must_use]
    pub fn of_rules(rules: &'a RuleSet) -> Self {
        Self {
            rules,
            roots: &rules.base().workspace,
            homes: &[],
            lifted: &[],
            repositories: &[],
            link_targets: &[],
            ports: &[],
            sockets: &[],
        }
    }
}

//! The data of the screens, which a host provides.

use std::path::Path;

use portcullis_settings::{Draft, GrantFile};

use super::screen::Line;

/// The data of the screens.
pub(crate) trait World {
    /// Returns true if the sandbox is enabled.
    fn is_on(&self) -> bool;
    /// Returns a short summary of the rules in force.
    fn short(&self) -> Vec<Line>;
    /// Returns the presets that can be switched on.
    fn presets(&self) -> Vec<Offered>;
    /// Returns the policies that can be switched on: those that come with Portcullis, and installed packs.
    fn policies(&self) -> Vec<OfferedPolicy>;
    /// Returns the description of the policy in force.
    fn summary(&self) -> Vec<Line>;
    /// Returns the settings that can be edited.
    fn scopes(&self) -> Vec<Scope>;
    /// Returns a path as people write it, with `~` for the home directory.
    fn path_in_words(&self, path: &Path) -> String;
    /// Opens settings in a draft; the error says why that failed.
    fn open(&self, grant_file: &GrantFile) -> Result<Draft, String>;
    /// Saves edited settings and puts them in force. Returns a description of the result.
    fn save(&self, draft: &Draft) -> Result<String, String>;
    /// Returns all answers in force.
    fn grants(&self) -> Vec<Held>;
    /// Revokes an answer. Returns which part of it other answers still allow, as the end of a sentence.
    fn revoke(&self, id: &str) -> Result<String, String>;
    /// Returns the last decisions of this session, the newest first.
    fn decisions(&self) -> Vec<Decided>;
    /// Explains a decision.
    fn explain(&self, id: &str) -> Result<Explained, String>;
    /// Creates one of the rules that [`World::explain`] returned.
    fn make_rule(&self, id: &str, rule: &str) -> Result<String, String>;
}

/// A preset that can be switched on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Offered {
    /// Its name.
    pub(crate) name: String,
    /// The title: "npm's package registry".
    pub(crate) title: String,
    /// The hosts that it allows.
    pub(crate) hosts: Vec<String>,
}

/// A policy that can be switched on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct OfferedPolicy {
    /// The name that settings use for it.
    pub(crate) name: String,
    /// The description of a shipped policy, or version and signer of a pack.
    pub(crate) title: String,
}

/// Settings that can be edited.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Scope {
    /// Their label.
    pub(crate) label: String,
    /// The projects that they are for, in words.
    pub(crate) projects: String,
    /// Their file.
    pub(crate) grant_file: GrantFile,
}

/// An answer in force.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Held {
    /// Its id, for revoking it.
    pub(crate) id: String,
    /// Its description.
    pub(crate) label: String,
    /// Where it is stored.
    pub(crate) origin: String,
}

/// A decision.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Decided {
    /// Its id in the log.
    pub(crate) id: String,
    /// The action.
    pub(crate) label: String,
    /// Effect and rule.
    pub(crate) value: String,
}

/// The explanation of a decision, with rules that can be made of it.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Explained {
    /// The explanation.
    pub(crate) lines: Vec<Line>,
    /// Descriptions of rules that would have decided.
    pub(crate) rules: Vec<String>,
}

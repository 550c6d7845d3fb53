//! Rules of the settings, and their conversion for the rule set.

use portcullis_decision::pattern::{FilePattern, HostPattern, NetworkPattern, PortSet};
use portcullis_decision::profile::{FileRights, FileRule, NetworkRule};
use portcullis_decision::verdict::Effect;
use portcullis_settings_format::{Layer, Origin};

/// A rule on files.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rule {
    /// The layer that it belongs to.
    pub layer: Layer,
    /// Its id: the field it came from, or a name that starts with `host.`.
    pub id: String,
    /// The paths.
    pub pattern: FilePattern,
    /// The rights.
    pub rights: FileRights,
    /// The effect.
    pub effect: Effect,
    /// One sentence for the user.
    pub reason: String,
    /// Where it was written; `None` for the host's own rules.
    pub origin: Option<Origin>,
}

/// A rule on connections.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConnectionRule {
    /// The layer that it belongs to.
    pub layer: Layer,
    /// Its id: the field it came from.
    pub id: String,
    /// The hosts and ports.
    pub target: NetworkPattern,
    /// The effect.
    pub effect: Effect,
    /// One sentence for the user.
    pub reason: String,
    /// Where it was written.
    pub origin: Option<Origin>,
}

impl Rule {
    pub(crate) fn to_file_rule(&self) -> FileRule {
        FileRule {
            id: self.id.clone(),
            pattern: self.pattern.clone(),
            rights: self.rights,
            effect: self.effect,
            conceal: self.effect == Effect::Deny && self.rights.read,
            condition: String::new(),
            reason: self.reason.clone(),
            setting: setting(self.origin.as_ref()),
        }
    }
}

impl ConnectionRule {
    pub(crate) fn to_network_rule(&self) -> NetworkRule {
        NetworkRule {
            id: self.id.clone(),
            target: self.target.clone(),
            program: "*".to_owned(),
            effect: self.effect,
            reason: self.reason.clone(),
            setting: setting(self.origin.as_ref()),
        }
    }
}

/// Returns where a rule was written, for explanations.
fn setting(origin: Option<&Origin>) -> String {
    origin.map(ToString::to_string).unwrap_or_default()
}

/// Returns a pattern for every port of a host.
pub(crate) fn every_port(host: HostPattern) -> NetworkPattern {
    NetworkPattern { host, ports: PortSet::Every }
}

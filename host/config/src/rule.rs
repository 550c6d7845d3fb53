//! Rules of the settings, and their conversion for the rule set.

use portcullis_decision::pattern::{FilePattern, HostPattern, NetworkPattern, PortSet};
use portcullis_decision::profile::{EnvironmentRule, FileRights, FileRule, NetworkRule, Profile};
use portcullis_decision::rules::RuleLayer;
use portcullis_decision::verdict::Effect;

use crate::sensitive::is_sensitive;
use crate::settings::{Environment, Origin};
use crate::tighten::Layer;

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
    fn to_file_rule(&self) -> FileRule {
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
    fn to_network_rule(&self) -> NetworkRule {
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

/// Returns a rule set layer for each layer that has rules.
///
/// The rules on sensitive files are a separate layer that can only tighten: an exception in it does not allow, but
/// leaves the decision to the other layers.
pub(crate) fn layers(files: &[Rule], connections: &[ConnectionRule]) -> Vec<RuleLayer> {
    let order = [Layer::Host, Layer::User, Layer::Machine, Layer::Project, Layer::Sandbox];
    let (sensitive, files): (Vec<&Rule>, Vec<&Rule>) =
        files.iter().partition(|rule| rule.layer == Layer::Host && is_sensitive(&rule.id));
    let make = |layer: Layer| {
        let files = files.iter().filter(|rule| rule.layer == layer).map(|rule| rule.to_file_rule()).collect();
        let network = connections
            .iter()
            .filter(|rule| rule.layer == layer)
            .map(ConnectionRule::to_network_rule)
            .collect();
        RuleLayer {
            name: layer.name().to_owned(),
            profile: Profile { files, network, ..Profile::default() },
            tightens: false,
        }
    };
    let files = sensitive.into_iter().map(Rule::to_file_rule).collect();
    let sensitive = RuleLayer {
        name: Layer::Host.name().to_owned(),
        profile: Profile { files, ..Profile::default() },
        tightens: true,
    };
    order.into_iter().map(make).chain([sensitive]).collect()
}

/// Returns the rules on variables.
///
/// The last matching rule wins, so `drop` comes after `keep`. Names dropped by layers other than the user's come before
/// the variables that the user sets.
pub(crate) fn environment_rules(environment: &Environment, dropped: &[String]) -> Vec<EnvironmentRule> {
    let rule = |field: &str, effect: Effect, reason: &str| {
        let (id, reason) = (format!("environment.{field}"), reason.to_owned());
        let setting = format!("/environment/{field}");
        move |name: &String| EnvironmentRule {
            id: id.clone(),
            name: name.clone(),
            effect,
            reason: reason.clone(),
            setting: setting.clone(),
        }
    };
    let keep = environment.keep.iter().map(rule("keep", Effect::Allow, "your settings keep it"));
    let drop = environment.drop.iter().map(rule("drop", Effect::Deny, "the settings drop it"));
    let dropped = dropped.iter().map(rule("drop", Effect::Deny, "the settings drop it"));
    let set = environment.set.keys().map(rule("set", Effect::Allow, "your settings set it"));
    keep.chain(dropped).chain(set).chain(drop).collect()
}

//! Rules made of settings, and their form for the rule set.

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
    /// Whose it is.
    pub layer: Layer,
    /// Its id: the field it came from, or a name that starts with `host.`.
    pub id: String,
    /// Which paths.
    pub pattern: FilePattern,
    /// Which rights.
    pub rights: FileRights,
    /// The answer.
    pub effect: Effect,
    /// One sentence for the user.
    pub reason: String,
    /// Where it was written; none for the host's own.
    pub origin: Option<Origin>,
}

/// A rule on connections.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConnectionRule {
    /// Whose it is.
    pub layer: Layer,
    /// Its id: the field it came from.
    pub id: String,
    /// Which hosts and ports.
    pub target: NetworkPattern,
    /// The answer.
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

/// Where a rule was written, for explanations.
fn setting(origin: Option<&Origin>) -> String {
    origin.map(ToString::to_string).unwrap_or_default()
}

/// Returns a pattern for every port of a host.
pub(crate) fn every_port(host: HostPattern) -> NetworkPattern {
    NetworkPattern { host, ports: PortSet::Every }
}

/// Makes one layer of the rule set for each layer that has anything to say. Sensitive files are a layer of their own
/// that can only tighten: what is excepted there is not allowed by it, but left to the other layers.
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

/// Returns the rules on variables; the last one that matches answers, so `drop` stands behind `keep`. What others than
/// the user drop stands before what the user sets.
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

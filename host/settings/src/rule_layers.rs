//! Conversion of rules for the rule set.

use portcullis_decision::profile::{EnvironmentRule, Profile};
use portcullis_decision::rules::RuleLayer;
use portcullis_decision::verdict::Effect;
use portcullis_settings_format::{Environment, Layer};

use crate::rule::{ConnectionRule, Rule};
use crate::sensitive::is_sensitive;

/// Returns a rule set layer for each layer that has rules.
///
/// The rules on sensitive files are a separate layer that can only tighten: an exception in it does not allow, but
/// leaves the decision to the other layers.
pub(crate) fn layers(files: &[Rule], connections: &[ConnectionRule]) -> Vec<RuleLayer> {
    let order = [Layer::Host, Layer::User, Layer::Machine, Layer::Team, Layer::Project, Layer::Sandbox];
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

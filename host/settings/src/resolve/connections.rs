//! Resolves what the settings say about connections.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::path::PathBuf;

use portcullis_decision::pattern::{HostPattern, NetworkPattern};
use portcullis_decision::profile::BudgetRule;
use portcullis_decision::verdict::Effect;
use portcullis_settings_format::error::shown;
use portcullis_settings_format::{ConfigError, Entry, Layer, Network, Origin, PathEntry, UnlistedHosts};

use crate::found::FoundSettings;
use crate::pattern::{PathContext, pattern_error};
use crate::rule::{ConnectionRule, every_port};

/// Returns the connection rules of one layer.
///
/// `allowed` holds the user's hosts, the only ones that `strictAllowlist` permits in any layer.
pub(super) fn connection_rules(
    network: &Network,
    allowed: &[Entry<NetworkPattern>],
    layer: Layer,
) -> Vec<ConnectionRule> {
    let rule =
        |id: String, target: NetworkPattern, effect: Effect, reason: String, origin: Option<Origin>| {
            ConnectionRule { layer, id, target, effect, reason, origin }
        };
    let mut rules = Vec::new();
    if network.strict_allowlist {
        let reason = "only the allowed hosts may be reached".to_owned();
        rules.push(rule(
            "network.strictAllowlist".to_owned(),
            every_port(HostPattern::Any),
            Effect::Deny,
            reason,
            None,
        ));
        for (index, entry) in allowed.iter().enumerate() {
            let (id, reason) =
                (format!("network.allowedDomains[{index}]"), "it is an allowed host".to_owned());
            rules.push(rule(id, entry.value.clone(), Effect::Allow, reason, Some(entry.origin.clone())));
        }
    }
    for (index, entry) in network.denied_domains.iter().enumerate() {
        let reason = match network.denied_domain_reasons.get(&entry.text) {
            Some(reason) => shown(reason),
            None => format!("`{}` is denied in the settings", shown(&entry.text)),
        };
        let id = format!("network.deniedDomains[{index}]");
        rules.push(rule(id, entry.value.clone(), Effect::Deny, reason, Some(entry.origin.clone())));
    }
    if let Some(entry) = &network.closed {
        let (id, target) = (format!("network.{}", entry.text), every_port(HostPattern::Any));
        rules.push(rule(id, target, Effect::Deny, entry.value.clone(), Some(entry.origin.clone())));
    }
    for (index, entry) in network.denied_resolved_addresses.iter().enumerate() {
        let id = format!("network.deniedResolvedAddresses[{index}]");
        let reason = format!("the addresses `{}` are denied in the settings", shown(&entry.text));
        let target = every_port(entry.value.clone());
        rules.push(rule(id, target, Effect::Deny, reason, Some(entry.origin.clone())));
    }
    rules
}

/// Returns the allowed hosts as policies compare them: `localhost` is replaced by its addresses.
///
/// The IPv6 address comes after all other entries, so that each entry keeps its index.
pub(super) fn for_policies(allowed: &[Entry<NetworkPattern>]) -> Vec<(NetworkPattern, Origin)> {
    let loopback = |pattern: &NetworkPattern, address: IpAddr| NetworkPattern {
        host: HostPattern::Block(address.into()),
        ports: pattern.ports.clone(),
    };
    let is_local = |pattern: &NetworkPattern| {
        matches!(pattern.host, HostPattern::Name(_)) && pattern.host.is_of_addresses()
    };
    let patterns = allowed.iter().map(|entry| (&entry.value, entry.origin.clone()));
    let first = patterns.clone().map(|(pattern, origin)| {
        let is_local = is_local(pattern);
        (if is_local { loopback(pattern, Ipv4Addr::LOCALHOST.into()) } else { pattern.clone() }, origin)
    });
    let more = patterns.filter(|(pattern, _)| is_local(pattern));
    let more = more.map(|(pattern, origin)| (loopback(pattern, Ipv6Addr::LOCALHOST.into()), origin));
    first.chain(more).collect()
}

/// Returns what happens to unlisted hosts. A layer that only tightens may narrow the hosts: then all others are a
/// question, or refused.
pub(super) fn unlisted_hosts(found: &FoundSettings) -> UnlistedHosts {
    let network = &found.settings.network;
    let is_narrowed =
        found.layers.iter().any(|layer| layer.network.strict_allowlist || layer.narrowing.domains.is_some());
    if is_narrowed || network.strict_allowlist { UnlistedHosts::Ask } else { network.unlisted_hosts }
}

/// Returns the paths of sockets.
///
/// Globs are refused: a glob would also open sockets that are created later, which the user has not seen.
pub(super) fn sockets(
    entries: &[Entry<PathEntry>],
    around: &PathContext<'_>,
) -> Result<Vec<PathBuf>, ConfigError> {
    let one = |entry: &Entry<PathEntry>| {
        let resolved = around.resolve_to_open(entry)?;
        match resolved.glob {
            None => Ok(resolved.base),
            Some(_) => {
                Err(pattern_error(&entry.origin, "a socket is named by its path, without `*` and `?`"))
            }
        }
    };
    entries.iter().map(one).collect()
}

/// Returns the budgets of the layers.
pub(super) fn budgets(found: &FoundSettings) -> Vec<(Layer, BudgetRule)> {
    let layers = found.layers.iter().map(|layer| (layer.layer, &layer.network));
    let all = std::iter::once((Layer::User, &found.settings.network)).chain(layers);
    all.filter_map(|(layer, network)| {
        let entry = network.upload_budget_mib.as_ref()?;
        let rule = BudgetRule {
            id: "network.uploadBudgetMib".to_owned(),
            target: every_port(HostPattern::Any),
            kib: entry.value.saturating_mul(1024),
            effect: Effect::Ask,
            reason: format!("more than {} MiB were sent there in this session", entry.value),
            setting: entry.origin.to_string(),
        };
        Some((layer, rule))
    })
    .chain(found.preset_budgets.iter().map(|rule| (Layer::User, rule.clone())))
    .collect()
}

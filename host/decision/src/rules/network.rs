//! Rules on connections.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use super::rule_set::RuleSet;
use super::ruling::{BaseRuling, Ruling};
use crate::pattern::{HostPattern, PortSet};
use crate::profile::{BudgetRule, NetworkRule};
use crate::request::{Endpoint, ProcessInfo};
use crate::verdict::Effect;

/// The default limit of data sent to one host and port in a session: more than honest work sends, less than a disk.
pub const BUDGET_KIB: u32 = 256 * 1024;

/// The limit of data sent to one target in a session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Budget {
    /// Bytes.
    pub bytes: u64,
    /// The ruling on further data.
    pub beyond: Ruling,
}

impl RuleSet {
    /// Returns the ruling on one outgoing connection. If no layer has an opinion, it asks.
    #[must_use]
    pub fn connection(&self, target: &Endpoint, port: u16, process: &ProcessInfo) -> Ruling {
        let matches =
            |rule: &NetworkRule| rule.target.matches(target, port) && program_matches(rule, process);
        let unnamed = || of_base("base.network", "no rule names this host");
        let standing = self.strictest_connection(LayerSet::Full, matches).unwrap_or_else(unnamed);
        match self.strictest_connection(LayerSet::Tightening, matches) {
            Some(ruling) if ruling.effect > standing.effect => ruling,
            _ => standing,
        }
    }

    /// Returns the ruling on the address of a connection, whatever name resolved to it: only rules that name addresses
    /// count.
    /// `None` if no layer has such a rule.
    #[must_use]
    pub fn address(&self, address: IpAddr, port: u16, process: &ProcessInfo) -> Option<Ruling> {
        let target = Endpoint::Address(address.to_canonical());
        let matches = |rule: &NetworkRule| {
            rule.target.host.is_of_addresses()
                && rule.target.matches(&target, port)
                && program_matches(rule, process)
        };
        let standing = self.strictest_connection(LayerSet::Full, matches);
        let known = standing.as_ref().map_or(Effect::Allow, |ruling| ruling.effect);
        let tightening = self.strictest_connection(LayerSet::Tightening, matches);
        tightening.filter(|ruling| ruling.effect > known).or(standing)
    }

    /// Returns how much may be sent to `target` and `port`: the least that a layer gives.
    #[must_use]
    pub fn budget(&self, target: &Endpoint, port: u16) -> Budget {
        let of_layer = |layer: &super::RuleLayer| {
            let mut rules = layer.profile.budgets.iter().rev();
            let rule: &BudgetRule = rules.find(|rule| rule.target.matches(target, port))?;
            // If sending more is allowed anyway there is no limit, and so nothing to tighten.
            if layer.tightens && rule.effect == Effect::Allow {
                return None;
            }
            let beyond = Ruling {
                effect: rule.effect,
                policy: layer.name.clone(),
                rule: rule.id.clone(),
                reason: rule.reason.clone(),
                setting: rule.setting.clone(),
                conceal: false,
            };
            Some(Budget { bytes: u64::from(rule.kib) * 1024, beyond })
        };
        let least = |tightens| {
            let layers = self.layers.iter().filter(move |layer| layer.tightens == tightens);
            layers.filter_map(of_layer).min_by_key(order)
        };
        let standing = least(false).unwrap_or_else(|| Budget {
            bytes: u64::from(BUDGET_KIB) * 1024,
            beyond: of_base("base.budget", "a lot was sent there in this session already"),
        });
        match least(true) {
            // Less than without it, and the ruling on further data is not milder either.
            Some(tightening) if order(&tightening) < order(&standing) => {
                let is_milder = tightening.beyond.effect < standing.beyond.effect;
                let beyond = if is_milder { standing.beyond } else { tightening.beyond };
                Budget { bytes: tightening.bytes, beyond }
            }
            _ => standing,
        }
    }

    /// Returns the loopback ports that lead to this machine, because a rule allows them by number.
    #[must_use]
    pub fn loopback_ports(&self) -> Vec<u16> {
        let is_loopback = |host: &HostPattern| {
            let ends = [
                Endpoint::Address(Ipv4Addr::LOCALHOST.into()),
                Endpoint::Address(Ipv6Addr::LOCALHOST.into()),
            ];
            host.is_of_addresses() && ends.iter().any(|end| host.matches(end))
        };
        let layers = self.layers.iter().filter(|layer| !layer.tightens);
        let rules = layers.flat_map(|layer| &layer.profile.network);
        let allowed = rules.filter(|rule| rule.effect == Effect::Allow && is_loopback(&rule.target.host));
        let mut ports: Vec<u16> = allowed
            .flat_map(|rule| match &rule.target.ports {
                PortSet::These(ports) => ports.clone(),
                // Allowing all ports at once would leave commands no loopback of their own.
                PortSet::Every => Vec::new(),
            })
            .collect();
        ports.sort_unstable();
        ports.dedup();
        ports
    }

    fn strictest_connection(
        &self,
        voice: LayerSet,
        matches: impl Fn(&NetworkRule) -> bool,
    ) -> Option<Ruling> {
        let mut strictest: Option<Ruling> = None;
        for layer in self.layers.iter().filter(|layer| layer.tightens == (voice == LayerSet::Tightening)) {
            let Some(rule) = layer.profile.network.iter().rev().find(|rule| matches(rule)) else { continue };
            if strictest.as_ref().is_none_or(|known| rule.effect > known.effect) {
                strictest = Some(Ruling {
                    effect: rule.effect,
                    policy: layer.name.clone(),
                    rule: rule.id.clone(),
                    reason: rule.reason.clone(),
                    setting: rule.setting.clone(),
                    conceal: false,
                });
            }
        }
        strictest
    }
}

/// A set of layers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum LayerSet {
    /// Layers that count in full.
    Full,
    /// Layers that can only tighten.
    Tightening,
}

/// Returns the order of budgets: less comes first, and of two equal ones the stricter.
fn order(budget: &Budget) -> (u64, std::cmp::Reverse<Effect>) {
    (budget.bytes, std::cmp::Reverse(budget.beyond.effect))
}

fn of_base(rule: &'static str, reason: &'static str) -> Ruling {
    BaseRuling { effect: Effect::Ask, rule, reason }.into()
}

/// Returns true if a rule for a program matches its whole path or its last component.
fn program_matches(rule: &NetworkRule, process: &ProcessInfo) -> bool {
    if rule.program == "*" || rule.program == process.program {
        return true;
    }
    if process.program.is_empty() {
        // If the program is unknown, a restricting rule is assumed to match and an allowing one is not.
        return rule.effect != Effect::Allow;
    }
    !rule.program.contains('/') && process.program.rsplit('/').next() == Some(rule.program.as_str())
}

#[cfg(test)]
mod tests {
    use crate::pattern::{HostName, NetworkPattern};
    use crate::profile::Profile;
    use crate::rules::{Base, RuleLayer};

    use super::*;

    fn network(target: &str, effect: Effect) -> NetworkRule {
        NetworkRule {
            id: target.to_owned(),
            target: NetworkPattern::parse(target).unwrap(),
            program: "*".to_owned(),
            effect,
            reason: String::new(),
            setting: String::new(),
        }
    }

    fn rules(layers: Vec<Profile>) -> RuleSet {
        let base = Base { workspace: Vec::new(), temp: "/tmp".into(), closed: Vec::new(), ..Base::default() };
        let layers = layers
            .into_iter()
            .map(|profile| RuleLayer { name: "l".to_owned(), profile, tightens: false })
            .collect();
        RuleSet::compile(layers, base, &[])
    }

    fn of(network: Vec<NetworkRule>) -> Profile {
        Profile { network, ..Profile::default() }
    }

    #[test]
    fn only_rules_that_name_addresses_speak_of_addresses() {
        let rules = rules(vec![of(vec![
            network("*", Effect::Allow),
            network("a.test", Effect::Allow),
            network("10.0.0.0/8", Effect::Allow),
            network("10.9.0.0/16", Effect::Deny),
        ])]);
        let effect = |address: &str| {
            let address = address.parse().unwrap();
            rules.address(address, 443, &ProcessInfo::default()).map(|ruling| ruling.effect)
        };
        assert_eq!(effect("10.1.2.3"), Some(Effect::Allow));
        assert_eq!(effect("::ffff:10.1.2.3"), Some(Effect::Allow));
        assert_eq!(effect("10.9.2.3"), Some(Effect::Deny));
        assert_eq!(effect("127.0.0.1"), None, "`*` says nothing of what a name leads to");
    }

    #[test]
    fn ports_of_the_loopback_are_named_one_by_one() {
        let rules = rules(vec![of(vec![
            network("localhost:5432", Effect::Allow),
            network("127.0.0.1:6379", Effect::Allow),
            network("[::1]:80", Effect::Allow),
            network("localhost:9", Effect::Deny),
            network("localhost", Effect::Allow),
            network("*:22", Effect::Allow),
            network("a.test:443", Effect::Allow),
        ])]);
        assert_eq!(rules.loopback_ports(), [80, 5432, 6379]);
        let loopback = HostName::parse("127.0.0.1").unwrap();
        let process = ProcessInfo::default();
        assert_eq!(rules.connection(&loopback, 5432, &process).effect, Effect::Allow);
    }

    #[test]
    fn the_least_budget_counts() {
        let budget = |target: &str, kib, effect| BudgetRule {
            id: format!("{target} {kib}"),
            target: NetworkPattern::parse(target).unwrap(),
            kib,
            effect,
            reason: String::new(),
            setting: String::new(),
        };
        let with = |budgets| Profile { budgets, ..Profile::default() };
        let rules = rules(vec![
            with(vec![budget("*", 100, Effect::Ask), budget("a.test", 1, Effect::Ask)]),
            with(vec![budget("a.test", 1, Effect::Deny), budget("b.test", 200, Effect::Deny)]),
        ]);
        let of = |host: &str| {
            let budget = rules.budget(&HostName::parse(host).unwrap(), 443);
            (budget.bytes / 1024, budget.beyond.effect)
        };
        assert_eq!(of("a.test"), (1, Effect::Deny));
        assert_eq!(of("b.test"), (100, Effect::Ask));
        assert_eq!(self::rules(Vec::new()).budget(&HostName::parse("a.test").unwrap(), 443).bytes, 256 << 20);
    }
}

//! Facts about hosts, with the grant for every host taken in.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use portcullis_decision::pattern::HostPattern;
use portcullis_decision::rules::{HostFact, HostFacts};
use portcullis_decision::{Effect, Grant, GrantPattern};

use crate::every_host::is_for_every_host;

/// Returns the facts with the effect of a grant for every host, and the hosts of all other grants.
pub(super) fn with_grants(mut facts: HostFacts, grants: &[Grant]) -> (HostFacts, Vec<String>) {
    if grants.iter().any(is_for_every_host) && facts.elsewhere == Effect::Ask {
        facts.elsewhere = Effect::Allow;
    }
    let others = grants.iter().filter(|grant| !is_for_every_host(grant));
    let mut granted: Vec<String> = others.filter_map(granted_host).collect();
    granted.sort();
    granted.dedup();
    (facts, granted)
}

/// Returns the host that a grant allows.
fn granted_host(grant: &Grant) -> Option<String> {
    match &grant.pattern {
        GrantPattern::Network(network) => Some(network.to_string()),
        GrantPattern::Exact(_) | GrantPattern::Path(_) | GrantPattern::Command(_) | GrantPattern::Tool(_) => {
            None
        }
    }
}

/// Returns the number of hosts that rules allow. `localhost` has a rule for each of its two addresses, and is one host.
pub(super) fn open(facts: &HostFacts) -> usize {
    let is_open = |fact: &&HostFact| fact.effect == Effect::Allow;
    let is_at = |fact: &HostFact, address: IpAddr| fact.target.host == HostPattern::Block(address.into());
    let is_second = |fact: &HostFact| {
        let same = |other: &HostFact| {
            (&other.target.ports, &other.program) == (&fact.target.ports, &fact.program)
                && is_at(other, Ipv4Addr::LOCALHOST.into())
        };
        is_at(fact, Ipv6Addr::LOCALHOST.into()) && facts.targets.iter().filter(is_open).any(same)
    };
    facts.targets.iter().filter(is_open).filter(|fact| !is_second(fact)).count()
}

#[cfg(test)]
mod tests {
    use portcullis_decision::GrantScope;
    use portcullis_decision::pattern::NetworkPattern;

    use super::*;

    fn facts(targets: &[&str]) -> HostFacts {
        let fact = |text: &&str| HostFact {
            target: NetworkPattern::parse(text).unwrap(),
            program: "*".to_owned(),
            effect: Effect::Allow,
        };
        HostFacts { elsewhere: Effect::Ask, targets: targets.iter().map(fact).collect() }
    }

    fn grant(text: &str) -> Grant {
        let pattern = GrantPattern::Network(NetworkPattern::parse(text).unwrap());
        Grant { scope: GrantScope::User, pattern, granted_at: 0, expires_at: 0 }
    }

    #[test]
    fn localhost_is_one_host() {
        for (targets, expected) in [
            (&["a.test", "127.0.0.1:5432", "[::1]:5432"][..], 2),
            (&["[::1]:5432"], 1),
            (&["127.0.0.1:1", "[::1]:2"], 2),
        ] {
            assert_eq!(open(&facts(targets)), expected, "{targets:?}");
        }
    }

    #[test]
    fn a_grant_for_every_host_is_no_host_of_its_own() {
        let (with, granted) = with_grants(facts(&[]), &[grant("*"), grant("b.test:443")]);
        assert_eq!((with.elsewhere, granted), (Effect::Allow, vec!["b.test:443".to_owned()]));
        let (without, _) = with_grants(facts(&[]), &[grant("b.test:443")]);
        assert_eq!(without.elsewhere, Effect::Ask);
    }
}

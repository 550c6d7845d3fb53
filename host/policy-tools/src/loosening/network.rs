//! Compares the rules of two policies on connections, for all hosts, ports and programs.

use std::collections::BTreeSet;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use ipnet::IpNet;
use portcullis_decision::pattern::{HostPattern, NetworkPattern, PortSet};
use portcullis_decision::profile::Profile;
use portcullis_decision::request::{Endpoint, ProcessInfo};
use portcullis_decision::{Base, Effect, RuleLayer, RuleSet};

use super::classes::TooIntricate;
use super::witness::{Loosening, answer_of, lacks_rule};
use crate::contribution::{Beside, Contribution};
use crate::corpus::PolicyAnswer;

/// The most connections that are compared.
const COMPARED_MAX: usize = 2_000_000;

/// Returns where the new rules allow more, with a connection for each kind of change.
pub(super) fn loosened(old: &Profile, new: &Profile) -> Result<Vec<Loosening>, TooIntricate> {
    if old.network == new.network && old.budgets == new.budgets {
        return Ok(Vec::new());
    }
    let examples = Examples::collect([old, new]);
    if examples.hosts.len() * examples.ports.len() * examples.programs.len() > COMPARED_MAX {
        return Err(TooIntricate);
    }
    let mut found: Vec<Loosening> = Vec::new();
    let mut add = |loosening: Loosening| {
        let is_known =
            |known: &Loosening| known.old.rule == loosening.old.rule && known.new.rule == loosening.new.rule;
        if !found.iter().any(is_known) {
            found.push(loosening);
        }
    };
    let sets = [old, new].map(rules);
    for host in &examples.hosts {
        for port in &examples.ports {
            for program in &examples.programs {
                connection(&sets, host, *port, program).into_iter().for_each(&mut add);
            }
        }
    }
    for host in &examples.hosts {
        for port in &examples.ports {
            budget([old, new], host, *port).into_iter().for_each(&mut add);
        }
    }
    Ok(found)
}

fn connection(sets: &[RuleSet; 2], host: &Endpoint, port: u16, program: &str) -> Vec<Loosening> {
    let process = ProcessInfo { program: program.to_owned(), ..ProcessInfo::default() };
    let by = if program.is_empty() { String::new() } else { format!(" by `{program}`") };
    let mut found = Vec::new();
    let rulings = sets.each_ref().map(|set| set.connection(host, port, &process));
    let [was, is] = rulings.each_ref().map(|ruling| Contribution::of_ruling(ruling, Effect::Ask));
    if let Some(beside) = was.loosened_by(is) {
        let answers = rulings.each_ref().map(|ruling| match ruling.policy.as_str() {
            "base" => lacks_rule(),
            _ => answer_of(ruling),
        });
        found.push(named(&format!("{}{by}", shown(host, port)), answers, beside));
    }
    // Names that resolve to an address in a special range need a rule that names the address.
    if let Endpoint::Address(address) = host {
        let rulings = sets.each_ref().map(|set| set.address(*address, port, &process));
        let part = |effect| Contribution { verdict: None, rule: effect, base: Some(Effect::Ask) };
        let [was, is] = rulings.each_ref().map(|ruling| part(ruling.as_ref().map(|ruling| ruling.effect)));
        if let Some(beside) = was.loosened_by(is) {
            let answers = rulings.each_ref().map(|ruling| ruling.as_ref().map_or_else(lacks_rule, answer_of));
            found.push(named(&format!("a name that resolves to {}{by}", shown(host, port)), answers, beside));
        }
    }
    found
}

/// Compares how much may be sent, alone and beside a policy that lets much more be sent.
fn budget(profiles: [&Profile; 2], host: &Endpoint, port: u16) -> Option<Loosening> {
    let rule = |profile: &Profile| {
        let mut rules = profile.budgets.iter().rev();
        rules.find(|rule| rule.target.matches(host, port)).map(|rule| rule.id.clone()).unwrap_or_default()
    };
    for beside in [Beside::Nothing, Beside::Allowing] {
        let other = match beside {
            Beside::Nothing => Profile::default(),
            Beside::Allowing => unlimited(),
        };
        let [old, new] = profiles.map(|profile| {
            let layers = [profile.clone(), other.clone()].map(layer).to_vec();
            RuleSet::compile(layers, Base::default(), &[]).budget(host, port)
        });
        if (new.bytes, new.beyond.effect) == (old.bytes, old.beyond.effect)
            || new.bytes <= old.bytes && new.beyond.effect >= old.beyond.effect
        {
            continue;
        }
        let answers = [(&old, profiles[0]), (&new, profiles[1])].map(|(budget, profile)| {
            let reason = format!("after {} KiB", budget.bytes / 1024);
            PolicyAnswer::new(&budget.beyond.effect.to_string(), &rule(profile), &reason)
        });
        return Some(named(&format!("sending data to {}", shown(host, port)), answers, beside));
    }
    None
}

/// Returns rules that let any amount be sent.
fn unlimited() -> Profile {
    let budget = portcullis_decision::profile::BudgetRule {
        id: "other".to_owned(),
        target: NetworkPattern { host: HostPattern::Any, ports: PortSet::Every },
        kib: u32::MAX,
        effect: Effect::Allow,
        reason: String::new(),
        setting: String::new(),
    };
    Profile { budgets: vec![budget], ..Profile::default() }
}

fn named(what: &str, [old, new]: [PolicyAnswer; 2], beside: Beside) -> Loosening {
    let name = format!("standing rules: {what}");
    Loosening { name, old, new, beside: Some(beside), right: None }
}

fn shown(host: &Endpoint, port: u16) -> String {
    match host {
        Endpoint::Address(IpAddr::V6(address)) => format!("[{address}]:{port}"),
        host @ (Endpoint::Domain(_) | Endpoint::Address(_)) => format!("{host}:{port}"),
    }
}

fn layer(profile: Profile) -> RuleLayer {
    RuleLayer { name: "policy".to_owned(), profile, tightens: false }
}

fn rules(profile: &Profile) -> RuleSet {
    RuleSet::compile(vec![layer(profile.clone())], Base::default(), &[])
}

/// Hosts, ports and programs that represent all of them.
struct Examples {
    hosts: Vec<Endpoint>,
    ports: BTreeSet<u16>,
    programs: BTreeSet<String>,
}

impl Examples {
    fn collect(profiles: [&Profile; 2]) -> Self {
        let rules = || profiles.into_iter().flat_map(|profile| &profile.network);
        let budgets = profiles.into_iter().flat_map(|profile| &profile.budgets).map(|rule| &rule.target);
        let targets: Vec<&NetworkPattern> = rules().map(|rule| &rule.target).chain(budgets).collect();
        let programs = rules().map(|rule| rule.program.as_str()).filter(|program| *program != "*").collect();
        Self { hosts: hosts(&targets), ports: ports(&targets), programs: self::programs(programs) }
    }
}

/// Returns the named hosts, one below each pattern, both sides of each border between blocks of addresses, and some
/// that no pattern names.
fn hosts(targets: &[&NetworkPattern]) -> Vec<Endpoint> {
    let mut names = BTreeSet::from(["unnamed.example".to_owned()]);
    let mut addresses = BTreeSet::new();
    let loopback = ["127.0.0.0/8", "::1/128"].into_iter().filter_map(|block| block.parse().ok());
    let mut blocks: Vec<IpNet> = loopback.collect();
    for target in targets {
        match &target.host {
            HostPattern::Any => {}
            HostPattern::Name(name) => {
                names.insert(name.clone());
            }
            HostPattern::Below(top) => {
                names.insert(top.clone());
                names.insert(format!("{UNNAMED}.{top}"));
            }
            HostPattern::Block(block) => blocks.push(*block),
        }
    }
    addresses.extend([IpAddr::V4(Ipv4Addr::UNSPECIFIED), IpAddr::V6(Ipv6Addr::UNSPECIFIED)]);
    for block in blocks {
        addresses.insert(block.network());
        addresses.extend(after(block.broadcast()));
    }
    let names = names.into_iter().map(Endpoint::Domain);
    names.chain(addresses.into_iter().map(Endpoint::Address)).collect()
}

/// A label that no rule names.
const UNNAMED: &str = "x7-unnamed-q3";

fn after(address: IpAddr) -> Option<IpAddr> {
    match address {
        IpAddr::V4(address) => u32::from(address).checked_add(1).map(|next| IpAddr::V4(next.into())),
        IpAddr::V6(address) => u128::from(address).checked_add(1).map(|next| IpAddr::V6(next.into())),
    }
}

/// Returns the named ports, the usual one, and one that no pattern names.
fn ports(targets: &[&NetworkPattern]) -> BTreeSet<u16> {
    let mut ports: BTreeSet<u16> = targets
        .iter()
        .flat_map(|target| match &target.ports {
            PortSet::These(ports) => ports.clone(),
            PortSet::Every => Vec::new(),
        })
        .collect();
    ports.extend((1..=u16::MAX).rev().find(|port| !ports.contains(port)));
    ports.insert(443);
    ports
}

/// Returns the named programs in their own and in another directory, one that no rule names, and an unknown one.
fn programs(named: BTreeSet<&str>) -> BTreeSet<String> {
    let mut programs = BTreeSet::from([String::new(), format!("/opt/{UNNAMED}")]);
    for name in named {
        let last = name.rsplit('/').next().unwrap_or_default();
        programs.extend([name.to_owned(), format!("/opt/{UNNAMED}/{last}")]);
    }
    programs
}

//! Addresses that are not on the internet: their descriptions in questions, and the scope of grants for them.
//!
//! The loopback address, the metadata service and similar addresses are different hosts on each machine. A grant for
//! one is stored for the project at most; for all projects the settings must name it. Addresses of private networks
//! have no such limit.

use std::net::IpAddr;

use portcullis_decision::GrantScope;
use portcullis_decision::request::{Action, Endpoint, NetworkAccess, Stage};
use portcullis_network_gate::{Special, special};

/// Returns descriptions of a connection's addresses that are not on the internet, for the user.
pub(crate) fn meanings(access: &NetworkAccess) -> Vec<String> {
    let found = match &access.stage {
        Stage::Resolved(addresses) => addresses.as_slice(),
        Stage::Connect | Stage::ClientHello(_) | Stage::Http(_) => &[],
    };
    let found = found.iter().filter_map(|address| address.parse().ok()).filter_map(meaning);
    meaning_of(&access.target).into_iter().chain(found).collect()
}

/// Returns the description of one host, or `None` for a name or an internet address.
pub(crate) fn meaning_of(target: &Endpoint) -> Option<String> {
    match target {
        Endpoint::Address(address) => meaning(*address),
        Endpoint::Domain(_) => None,
    }
}

/// Services that usually listen on a port.
const USUAL: &[(u16, &str)] = &[
    (22, "SSH"),
    (25, "a mail server"),
    (631, "the print server"),
    (1433, "SQL Server"),
    (2375, "Docker, which controls this machine"),
    (2376, "Docker, which controls this machine"),
    (3306, "MySQL or MariaDB"),
    (5432, "PostgreSQL"),
    (5672, "RabbitMQ"),
    (5984, "CouchDB"),
    (6379, "Redis"),
    (6443, "Kubernetes, which may control this machine"),
    (8086, "InfluxDB"),
    (9092, "Kafka"),
    (9200, "Elasticsearch"),
    (9222, "a browser's debugger, which controls the browser"),
    (11211, "memcached"),
    (11434, "Ollama"),
    (27017, "MongoDB"),
];

/// Returns a sentence about a connection to the loopback of this machine; `None` for other connections.
pub(crate) fn service(access: &NetworkAccess) -> Option<String> {
    let Endpoint::Address(address) = access.target else { return None };
    if special(address) != Some(Special::Loopback) || access.stage != Stage::Connect {
        return None;
    }
    let usual = USUAL.iter().find(|(port, _)| *port == access.port).map(|(_, usual)| *usual);
    let usual = usual.map(|usual| format!(": usually {usual}")).unwrap_or_default();
    Some(format!("A service of this machine, outside the sandbox{usual}."))
}

fn meaning(address: IpAddr) -> Option<String> {
    let what = special(address)?;
    let is_this_machine = matches!(what, Special::Loopback | Special::Own);
    let end = if is_this_machine { ", not the sandbox" } else { "" };
    Some(format!("`{address}` is {}{end}", what.words()))
}

/// Returns true if a grant for an action may be stored in places of `scope`.
pub(crate) fn may_be_kept(action: &Action, scope: GrantScope) -> bool {
    let Action::Network(NetworkAccess { target, .. }) = action else { return true };
    may_be_kept_for(target, scope)
}

/// Returns true if a grant for a host may be stored in places of `scope`.
pub(crate) fn may_be_kept_for(target: &Endpoint, scope: GrantScope) -> bool {
    let Endpoint::Address(address) = target else { return true };
    scope != GrantScope::User || matches!(special(*address), None | Some(Special::Private))
}

#[cfg(test)]
mod tests {
    use portcullis_decision::request::{Direction, ProcessInfo, Transport};

    use super::*;

    fn access(target: &str, stage: Stage) -> NetworkAccess {
        let target = match target.parse() {
            Ok(address) => Endpoint::Address(address),
            Err(_) => Endpoint::Domain(target.to_owned()),
        };
        let (transport, direction, process) = (Transport::Tcp, Direction::Outbound, ProcessInfo::default());
        NetworkAccess { transport, direction, target, port: 80, stage, process }
    }

    #[test]
    fn a_question_says_what_an_address_is() {
        let told = |target| meanings(&access(target, Stage::Connect)).join("; ");
        for (target, expected) in [
            ("127.0.0.1", "`127.0.0.1` is this machine itself (loopback), not the sandbox"),
            ("::1", "`::1` is this machine itself (loopback), not the sandbox"),
            (
                "169.254.169.254",
                "`169.254.169.254` is the metadata service of a cloud, which hands out credentials",
            ),
            ("10.0.0.9", "`10.0.0.9` is in a private network"),
            ("192.0.2.200", ""),
            ("a.test", ""),
        ] {
            assert_eq!(told(target), expected);
        }
        let found = ["192.0.2.200", "10.0.0.9"].map(str::to_owned).to_vec();
        assert_eq!(
            meanings(&access("a.test", Stage::Resolved(found))),
            ["`10.0.0.9` is in a private network"]
        );
    }

    #[test]
    fn services_of_this_machine_are_named_by_their_usual_ports() {
        let told = |target, port| service(&NetworkAccess { port, ..access(target, Stage::Connect) });
        for (target, port, expected) in [
            ("127.0.0.1", 5432, Some("A service of this machine, outside the sandbox: usually PostgreSQL.")),
            ("::1", 4000, Some("A service of this machine, outside the sandbox.")),
            ("10.0.0.9", 5432, None),
            ("a.test", 5432, None),
        ] {
            assert_eq!(told(target, port).as_deref(), expected, "{target}");
        }
    }

    #[test]
    fn what_is_another_thing_elsewhere_is_not_kept_for_all_projects() {
        for (target, is_kept) in [
            ("127.0.0.1", false),
            ("169.254.169.254", false),
            ("10.0.0.9", true),
            ("192.0.2.200", true),
            ("a.test", true),
        ] {
            let action = Action::Network(access(target, Stage::Connect));
            assert_eq!(may_be_kept(&action, GrantScope::User), is_kept, "{target}");
            assert!(may_be_kept(&action, GrantScope::Project) && may_be_kept(&action, GrantScope::Session));
        }
    }
}

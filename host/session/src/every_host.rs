//! The grant for every host on the internet, which the setting `network.unlistedHosts` makes.

use portcullis_decision::pattern::{HostPattern, NetworkPattern};
use portcullis_decision::request::{Action, Endpoint, NetworkAccess};
use portcullis_decision::{Grant, GrantPattern, Request};
use portcullis_network_gate::special;

/// Returns true if a grant covers every host.
pub(crate) fn is_for_every_host(grant: &Grant) -> bool {
    matches!(&grant.pattern, GrantPattern::Network(network) if network.host == HostPattern::Any)
}

/// Returns the grants that can apply to a request: a grant for every host does not cover addresses that are not on the
/// internet, such as private ones, the loopback and the metadata services of clouds.
pub(crate) fn applicable(mut grants: Vec<Grant>, request: &Request) -> Vec<Grant> {
    if leads_off_the_internet(&request.action) {
        grants.retain(|grant| !is_for_every_host(grant));
    }
    grants
}

/// Returns true if only a grant for every host covers a connection, and no entry that names the host.
pub(crate) fn alone_covers(grants: &[Grant], allowed: &[NetworkPattern], access: &NetworkAccess) -> bool {
    let names = |pattern: &NetworkPattern| pattern.matches(&access.target, access.port);
    let is_named = |grant: &Grant| match &grant.pattern {
        GrantPattern::Network(network) => !is_for_every_host(grant) && names(network),
        GrantPattern::Exact(_) | GrantPattern::Path(_) | GrantPattern::Command(_) | GrantPattern::Tool(_) => {
            false
        }
    };
    grants.iter().any(is_for_every_host) && !grants.iter().any(is_named) && !allowed.iter().any(names)
}

fn leads_off_the_internet(action: &Action) -> bool {
    match action {
        Action::Network(access) => match &access.target {
            Endpoint::Address(address) => special(*address).is_some(),
            Endpoint::Domain(name) => name == "localhost" || name.ends_with(".localhost"),
        },
        Action::File(_)
        | Action::Command(_)
        | Action::Socket(_)
        | Action::Tool(_)
        | Action::Escalation(_)
        | Action::Other(_) => false,
    }
}

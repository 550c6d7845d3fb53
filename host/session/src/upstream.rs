//! The user's own proxy, in the form that the gate needs.

use portcullis_decision::Effect;
use portcullis_decision::request::Endpoint;
use portcullis_network_gate::{Protocol, Unresolved, Upstream};
use portcullis_settings::Resolved;
use portcullis_settings_format::{ProxyAddress, ProxyProtocol};

/// Returns the proxy for a place, or `None` for a direct connection. Loopback addresses are always direct.
pub(crate) fn find(resolved: &Resolved, target: &Endpoint, port: u16) -> Option<Upstream> {
    let is_here = match target {
        Endpoint::Address(address) => address.is_loopback(),
        Endpoint::Domain(_) => false,
    };
    let address = resolved.parent_proxy.proxy_for(target, port).filter(|_| !is_here)?;
    let ProxyAddress { protocol, host, port, credentials } = address.clone();
    let protocol = match protocol {
        ProxyProtocol::Http => Protocol::Http,
        ProxyProtocol::Https => Protocol::Https,
        ProxyProtocol::Socks => Protocol::Socks,
    };
    let denies_addresses = resolved
        .connections
        .iter()
        .any(|rule| rule.effect == Effect::Deny && rule.target.host.is_of_addresses());
    let unresolved = if denies_addresses { Unresolved::Refused } else { Unresolved::Left };
    Some(Upstream { protocol, host, port, credentials, unresolved })
}

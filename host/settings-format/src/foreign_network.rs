//! Keys of sandbox-runtime for its own proxies, which Portcullis honours by other means.
//!
//! Nothing that such a key would keep from being reached is reached without it: a proxy that filters is used for every
//! connection, and hosts whose content was to be read or changed are refused.

use std::net::{IpAddr, Ipv4Addr};

use portcullis_decision::pattern::NetworkPattern;
use portcullis_decision::request::Endpoint;

use crate::document_value::DocumentValue;
use crate::entry::Entry;
use crate::parent_proxy::{ParentProxy, ProxyAddress, ProxyProtocol};
use crate::settings::Network;
use crate::warning::Warning;

/// The reason for which a host of `mitmProxy` is refused.
const MITM: &str = "it was to be reached through `mitmProxy`, which Portcullis does not use";

/// Returns the proxy that filters connections, if one is set.
pub(crate) fn filtering_proxy(place: &DocumentValue<'_>) -> Option<ParentProxy> {
    let port = |key: &str| place.child(key).number().and_then(|number| u16::try_from(number).ok());
    let (protocol, port) = match (port("httpProxyPort"), port("socksProxyPort")) {
        (Some(port), _) => (ProxyProtocol::Http, port),
        (None, Some(port)) => (ProxyProtocol::Socks, port),
        (None, None) => return None,
    };
    let host = Endpoint::Address(IpAddr::V4(Ipv4Addr::LOCALHOST));
    let address = ProxyAddress { protocol, host, port, credentials: None };
    // No host is reached directly: the proxy decides about each.
    Some(ParentProxy { http: Some(address.clone()), https: Some(address), direct: Vec::new() })
}

/// Refuses what only a proxy of sandbox-runtime could let through, with a warning for each key. `hosts` are those of
/// `mitmProxy`.
pub(crate) fn refuse_unread(
    place: &DocumentValue<'_>,
    hosts: Vec<Entry<NetworkPattern>>,
    network: &mut Network,
) {
    let mitm = place.child("mitmProxy");
    if !hosts.is_empty() {
        warn(&mitm, "the hosts of `mitmProxy` are refused: Portcullis does not speak to that proxy", network);
    }
    for host in hosts {
        network.denied_domain_reasons.entry(host.text.clone()).or_insert_with(|| MITM.to_owned());
        network.denied_domains.push(host);
    }
    let is_set = |value: &DocumentValue<'_>| value.flag(false) || !value.items().is_empty();
    for key in ["stripResponseHeaders", "refuseOpaqueTunnels"] {
        let value = place.child(key);
        if is_set(&value) {
            let reason = format!("`{key}` is set, and Portcullis cannot look into connections; remove it");
            warn(&value, &format!("commands reach no host: {reason}"), network);
            network.closed.get_or_insert_with(|| value.entry(reason, key));
        }
    }
}

fn warn(place: &DocumentValue<'_>, text: &str, network: &mut Network) {
    network.warnings.push(Warning { text: text.to_owned(), origin: place.origin() });
}

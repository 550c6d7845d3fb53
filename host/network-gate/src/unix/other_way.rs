//! Refuses other ways to a host to which only some requests may be sent: its address instead of its name, a name for its
//! address, or another address of the same machine.
//!
//! The gate does not read the requests on such a connection, so the rules for the host would not apply to them. It does
//! not compare two names of one address, because unrelated hosts often share one; the threat model has this limit.

use std::net::{IpAddr, SocketAddr};

use portcullis_credential_broker::LimitedPlace;
use portcullis_decision::ConnectionRefusal;
use portcullis_decision::request::Endpoint;

use crate::judge::ConnectionAttempt;
use crate::unix::lookup::Unfound;
use crate::unix::range::{end, is_own_or_leads_there};
use crate::unix::scope::Scope;

/// Checks an address to which an allowed connection may go, against the hosts that the settings limit by their address.
///
/// # Errors
/// If the settings limit the requests to this address, and the attempt is for another name, port or address.
pub(crate) fn judge_address(
    scope: &Scope,
    attempt: &ConnectionAttempt,
    address: IpAddr,
) -> Result<(), ConnectionRefusal> {
    let places = other_places(scope, attempt)?;
    match place_of(&places, (address, attempt.access.port), is_of_this_machine) {
        Some(place) => Err(refused(address, &place)),
        None => Ok(()),
    }
}

/// Checks the address in an allowed attempt against the addresses of the hosts that the settings limit by their name.
///
/// # Errors
/// If it is the address of such a host, or if that cannot be determined.
pub(crate) async fn judge_names(
    scope: &Scope,
    attempt: &ConnectionAttempt,
    is_through_proxy: bool,
) -> Result<(), ConnectionRefusal> {
    let Endpoint::Address(address) = attempt.access.target else { return Ok(()) };
    let mut places = other_places(scope, attempt)?;
    if is_of_this_machine(address) {
        // Other ports of this machine are other servers.
        places.retain(|place| place.port == attempt.access.port);
    }
    let leads_here =
        |one: &IpAddr| is_same(*one, address) || is_of_this_machine(address) && is_of_this_machine(*one);
    for (name, found) in scope.shared.limited.look_up(&names(places)).await {
        let is_missing = match found {
            Ok(found) if found.iter().any(leads_here) => {
                return Err(refused(address, &name));
            }
            Ok(found) => found.is_empty(),
            Err(Unfound::Unknown(_)) => false,
            // Some networks with a proxy have no name service.
            Err(Unfound::Unanswered(_)) => !is_through_proxy,
            Err(Unfound::Unable(_)) => true,
        };
        if is_missing {
            let reason = format!(
                "it may be the address of `{name}`, to which only some requests may be sent: `{name}` could not be \
                 looked up"
            );
            return Err(ConnectionRefusal::by_host("host.failed-lookup", reason));
        }
    }
    Ok(())
}

/// Notes the addresses of a limited host, before the gate connects to one of them.
///
/// # Errors
/// If the settings cannot be read.
pub(crate) fn note_addresses(
    scope: &Scope,
    attempt: &ConnectionAttempt,
    found: &[SocketAddr],
) -> Result<(), ConnectionRefusal> {
    let Endpoint::Domain(name) = &attempt.access.target else { return Ok(()) };
    let Some(broker) = scope.judge.broker()? else { return Ok(()) };
    if broker.limited_places().iter().any(|place| place.host == attempt.access.target) {
        scope.shared.limited.note(name, found);
    }
    Ok(())
}

/// Returns true for an address of this machine, or if it cannot be determined.
fn is_of_this_machine(address: IpAddr) -> bool {
    is_own_or_leads_there(address).unwrap_or(true)
}

/// Returns the limited places that an attempt must not reach. Attempts to a limited host itself are judged by its rules.
fn other_places(scope: &Scope, attempt: &ConnectionAttempt) -> Result<Vec<LimitedPlace>, ConnectionRefusal> {
    let Some(broker) = scope.judge.broker()? else { return Ok(Vec::new()) };
    let (target, port) = (&attempt.access.target, attempt.access.port);
    let mut places = broker.limited_places();
    places.retain(|place| place.concerns(port));
    if places.iter().any(|place| place.host == *target) {
        places.clear();
    }
    Ok(places)
}

/// Returns the names of hosts, each once.
fn names(places: Vec<LimitedPlace>) -> Vec<String> {
    let of = |place: LimitedPlace| match place.host {
        Endpoint::Domain(name) => Some(name),
        Endpoint::Address(_) => None,
    };
    let mut names: Vec<String> = places.into_iter().filter_map(of).collect();
    names.sort();
    names.dedup();
    names
}

/// Returns the limited place that is reached at this address: the address itself, or the same port of this machine.
fn place_of(
    places: &[LimitedPlace],
    (address, port): (IpAddr, u16),
    is_own: impl Fn(IpAddr) -> bool,
) -> Option<String> {
    let leads_here = |place: &&LimitedPlace| {
        let Endpoint::Address(host) = place.host else { return false };
        is_same(host, address) || place.port == port && is_own(host) && is_own(address)
    };
    places.iter().find(leads_here).map(|place| place.host.with_port(place.port))
}

/// Returns true if packets to both addresses go to the same one in the end.
fn is_same(one: IpAddr, other: IpAddr) -> bool {
    let last = |address: IpAddr| end(address).unwrap_or(address).to_canonical();
    last(one) == last(other)
}

fn refused(address: IpAddr, place: &str) -> ConnectionRefusal {
    let reason = format!("{address} is `{place}`, to which only some requests may be sent");
    ConnectionRefusal::by_host("host.other-server", reason)
}

#[cfg(test)]
mod tests {
    use super::*;
    use portcullis_credential_broker::OtherPorts;

    fn address(text: &str) -> IpAddr {
        text.parse().unwrap()
    }

    #[test]
    fn other_addresses_of_a_limited_place_are_found() {
        let place = |host: Endpoint, port| LimitedPlace { host, port, other_ports: OtherPorts::Refused };
        let limited = [("127.0.0.1", 9445), ("10.0.0.1", 443)]
            .map(|(host, port)| place(Endpoint::Address(address(host)), port));
        let is_own = |one: IpAddr| one.is_loopback() || one == address("192.0.2.1");
        let found = |text: &str, port| place_of(&limited, (address(text), port), is_own);
        for (other, port) in [("127.0.0.1", 80), ("127.0.0.2", 9445), ("::1", 9445), ("192.0.2.1", 9445)] {
            assert_eq!(found(other, port).as_deref(), Some("127.0.0.1:9445"), "{other} {port}");
        }
        for other in ["10.0.0.1", "::ffff:10.0.0.1", "64:ff9b::a00:1"] {
            assert_eq!(found(other, 22).as_deref(), Some("10.0.0.1:443"), "{other}");
        }
        for (other, port) in [("127.0.0.2", 80), ("::1", 443), ("10.0.0.2", 443), ("192.0.2.1", 443)] {
            assert_eq!(found(other, port), None, "{other} {port}");
        }
        let named = [place(Endpoint::Domain("a.test".to_owned()), 443)];
        assert_eq!(place_of(&named, (address("127.0.0.1"), 443), is_own), None);
    }
}

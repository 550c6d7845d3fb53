//! Connects to an allowed destination.
//!
//! The host resolves the name, each address is checked, and the connection goes to a checked address.

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use portcullis_decision::ConnectionRefusal;
use portcullis_decision::request::{Endpoint, Stage};
use tokio::net::TcpStream;
use tokio::time::timeout;

use crate::judge::{AddressRuling, ConnectionAttempt, Ending};
use crate::special::Special;
use crate::unix::lookup::{self, Unfound};
use crate::unix::other_way;
use crate::unix::range::{Range, end, is_own_or_leads_there};
use crate::unix::scope::{Scope, Wanted};
use crate::unix::tunnel;
use crate::upstream::{Unresolved, Upstream};

/// How long the name service may take.
const LOOKUP: Duration = Duration::from_secs(20);
/// The same limit if the user has a proxy.
///
/// The proxy may resolve the name itself: some networks with a proxy have no name service.
const LOOKUP_BEFORE_PROXY: Duration = Duration::from_secs(3);
/// How long one address may take to answer.
const ANSWER: Duration = Duration::from_secs(15);
/// The most addresses of one name that are tried.
const ADDRESSES_MAX: usize = 8;

/// Connects to the destination of an allowed attempt, for `client`.
pub(crate) async fn dial(
    scope: &Scope,
    attempt: &ConnectionAttempt,
    wanted: &Wanted,
    client: &TcpStream,
) -> Result<TcpStream, Ending> {
    let upstream = scope.judge.upstream(attempt);
    other_way::judge_names(scope, attempt, upstream.is_some()).await.map_err(Ending::Refused)?;
    if let Some(upstream) = upstream {
        return through(scope, attempt, &upstream, wanted, client).await;
    }
    let found = addresses(attempt, LOOKUP).await;
    let found = found.map_err(|unfound| unreachable(attempt, &unfound.error().to_string()))?;
    other_way::note_addresses(scope, attempt, &found).map_err(Ending::Refused)?;
    let mut refusal = None;
    let mut allowed = Vec::new();
    for address in found {
        match judged(scope, attempt, address.ip()) {
            Ok(()) => allowed.push(address),
            Err(refused) => refusal = Some(refused),
        }
    }
    resolved(scope, attempt, &allowed, wanted, client).await?;
    let mut failure = io::Error::other("its name has no address");
    for address in allowed.into_iter().take(ADDRESSES_MAX) {
        // Connect to the checked address itself, without a second lookup.
        match timeout(ANSWER, TcpStream::connect(address)).await {
            Ok(Ok(stream)) => return Ok(stream),
            Ok(Err(error)) => failure = error,
            Err(_) => failure = io::Error::from(io::ErrorKind::TimedOut),
        }
    }
    Err(match refusal {
        Some(refusal) => Ending::Refused(refusal),
        None => unreachable(attempt, &failure.to_string()),
    })
}

/// Connects through the user's proxy.
///
/// All addresses that this machine can resolve are checked as usual, since the proxy may choose any of them.
async fn through(
    scope: &Scope,
    attempt: &ConnectionAttempt,
    upstream: &Upstream,
    wanted: &Wanted,
    client: &TcpStream,
) -> Result<TcpStream, Ending> {
    match addresses(attempt, LOOKUP_BEFORE_PROXY).await {
        Ok(found) => {
            other_way::note_addresses(scope, attempt, &found).map_err(Ending::Refused)?;
            for address in &found {
                judged(scope, attempt, address.ip()).map_err(Ending::Refused)?;
            }
            resolved(scope, attempt, &found, wanted, client).await?;
        }
        Err(Unfound::Unable(error)) => return Err(unreachable(attempt, &error.to_string())),
        Err(Unfound::Unknown(_) | Unfound::Unanswered(_)) if upstream.unresolved == Unresolved::Left => {
            resolved(scope, attempt, &[], wanted, client).await?;
        }
        Err(Unfound::Unknown(_) | Unfound::Unanswered(_)) => {
            let reason = "only the proxy knows its addresses, and they must be checked: `deniedResolvedAddresses` has an \
                          entry, or `unlistedHosts` alone allows the host";
            return Err(Ending::Refused(ConnectionRefusal::by_host("host.unresolved-name", reason)));
        }
    }
    let access = &attempt.access;
    match timeout(ANSWER, tunnel::open(upstream, &access.target, access.port)).await {
        Ok(Ok(stream)) => Ok(stream),
        Ok(Err(error)) => Err(unreachable(attempt, &error.to_string())),
        Err(_) => Err(unreachable(attempt, "the proxy in `parentProxy` does not answer")),
    }
}

/// Has the resolved addresses decided, if a policy wants to.
async fn resolved(
    scope: &Scope,
    attempt: &ConnectionAttempt,
    addresses: &[SocketAddr],
    wanted: &Wanted,
    client: &TcpStream,
) -> Result<(), Ending> {
    if addresses.is_empty() || !scope.judge.stages().resolved {
        return Ok(());
    }
    let found = addresses.iter().map(|address| address.ip().to_string()).collect();
    match scope.clear_stage(attempt, Stage::Resolved(found), wanted, client).await {
        Ok(()) => Ok(()),
        Err(Some(refusal)) => Err(Ending::Refused(refusal)),
        Err(None) => Err(Ending::Closed),
    }
}

async fn addresses(attempt: &ConnectionAttempt, patience: Duration) -> Result<Vec<SocketAddr>, Unfound> {
    let port = attempt.access.port;
    match &attempt.access.target {
        Endpoint::Address(address) => Ok(vec![SocketAddr::new(*address, port)]),
        Endpoint::Domain(name) => lookup::addresses(name, port, patience).await,
    }
}

/// Checks an address. One outside the public internet, or of this machine, must be named by a rule or the user.
fn judged(scope: &Scope, attempt: &ConnectionAttempt, address: IpAddr) -> Result<(), ConnectionRefusal> {
    other_way::judge_address(scope, attempt, address)?;
    let refused = |what: &str| {
        let who = match &attempt.access.target {
            Endpoint::Domain(name) => format!("`{name}` leads to {address}"),
            Endpoint::Address(_) => format!("it is {address}"),
        };
        let reason = format!("{who}, which is {what}; name this address in the settings to allow it");
        Err(ConnectionRefusal::by_host("host.special-address", reason))
    };
    if let Some(AddressRuling::Denied(refusal)) = end(address).map(|end| scope.judge.address(attempt, end)) {
        return Err(refusal);
    }
    match scope.judge.address(attempt, address) {
        AddressRuling::Named => Ok(()),
        AddressRuling::Denied(refusal) => Err(refusal),
        AddressRuling::Unnamed => match (Range::classify(address), is_own_or_leads_there(address)) {
            (Range::Special(what), _) => refused(what.words()),
            (Range::Public, Ok(true)) => refused(Special::Own.words()),
            (Range::Public, Err(_)) => refused("perhaps one of this machine's own, which cannot be told now"),
            (Range::Public, Ok(false)) => Ok(()),
        },
    }
}

fn unreachable(attempt: &ConnectionAttempt, why: &str) -> Ending {
    let place = attempt.access.target.with_port(attempt.access.port);
    Ending::Unreachable(format!("`{place}` cannot be reached: {why}"))
}

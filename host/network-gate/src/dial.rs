//! From an allowed name to a connection: looked up by the host, judged by address, and made to exactly that.

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use portcullis_decision::request::Endpoint;
use tokio::net::{TcpStream, lookup_host};
use tokio::time::timeout;

use crate::judge::{AddressRuling, Attempt, Ending, Refusal};
use crate::range::{Range, is_own};
use crate::scope::Scope;

/// How long the name service may take.
const LOOKUP: Duration = Duration::from_secs(20);
/// How long one address may take to answer.
const ANSWER: Duration = Duration::from_secs(15);
/// More addresses of one name are not tried.
const ADDRESSES_MAX: usize = 8;

/// Connects to the place an attempt was allowed for.
pub(crate) async fn dial(scope: &Scope, attempt: &Attempt) -> Result<TcpStream, Ending> {
    let found = addresses(attempt).await.map_err(|error| unreachable(attempt, &error.to_string()))?;
    let mut refusal = None;
    let mut allowed = Vec::new();
    for address in found {
        match judged(scope, attempt, address.ip()) {
            Ok(()) => allowed.push(address),
            Err(refused) => refusal = Some(refused),
        }
    }
    let mut failure = io::Error::other("its name has no address");
    for address in allowed.into_iter().take(ADDRESSES_MAX) {
        // The very address that was judged: nothing is looked up again.
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

async fn addresses(attempt: &Attempt) -> io::Result<Vec<SocketAddr>> {
    match &attempt.access.target {
        Endpoint::Address(address) => Ok(vec![SocketAddr::new(*address, attempt.access.port)]),
        Endpoint::Domain(name) => {
            // With a dot at its end the name is whole, and no domain of the host's own is tried behind it.
            let lookup = lookup_host((format!("{name}."), attempt.access.port));
            let found = timeout(LOOKUP, lookup).await.map_err(|_late| io::ErrorKind::TimedOut)??;
            Ok(found.map(|address| SocketAddr::new(address.ip().to_canonical(), address.port())).collect())
        }
    }
}

/// What is no place on the internet, or is this machine, must have been named by somebody.
fn judged(scope: &Scope, attempt: &Attempt, address: IpAddr) -> Result<(), Refusal> {
    let refused = |what: &str| {
        let who = match &attempt.access.target {
            Endpoint::Domain(name) => format!("`{name}` leads to {address}"),
            Endpoint::Address(_) => format!("it is {address}"),
        };
        let reason = format!("{who}, which is {what}; name this address in the settings to allow it");
        Err(Refusal::of_gate("host.special-address", reason))
    };
    match scope.judge.address(attempt, address) {
        AddressRuling::Named => Ok(()),
        AddressRuling::Denied(refusal) => Err(refusal),
        AddressRuling::Unnamed => match Range::of(address) {
            Range::Special(what) => refused(what),
            Range::Public if is_own(address) => refused("one of this machine's own"),
            Range::Public => Ok(()),
        },
    }
}

fn unreachable(attempt: &Attempt, why: &str) -> Ending {
    Ending::Unreachable(format!(
        "`{}:{}` cannot be reached: {why}",
        attempt.access.target, attempt.access.port
    ))
}

//! Looks names up through the host's resolver.
//!
//! It distinguishes a name that does not exist, name servers that do not answer, and a lookup that failed on this
//! machine. Behind the user's proxy the connection continues in the first two cases, because the proxy may know the name.

use std::io;
use std::net::{IpAddr, Ipv4Addr, SocketAddr, UdpSocket};
use std::time::Duration;

use dns_lookup::{LookupError, LookupErrorKind, lookup_host};
use tokio::sync::oneshot;
use tokio::task::spawn_blocking;
use tokio::time::timeout;

/// How long a lookup may wait for earlier ones.
const TURN: Duration = Duration::from_secs(20);
/// The number of file descriptors that the C library needs for a lookup.
///
/// It opens a file and some sockets, and without them it reports that the name does not exist.
const DESCRIPTORS: usize = 8;

/// The reason why there is no address.
#[derive(Debug)]
pub(super) enum Unfound {
    /// The name does not exist, or has no address.
    Unknown(io::Error),
    /// The name servers do not answer, or say that they cannot.
    Unanswered(io::Error),
    /// The lookup failed on this machine.
    Unable(io::Error),
}

impl Unfound {
    /// Returns the cause.
    pub(super) fn error(&self) -> &io::Error {
        match self {
            Self::Unknown(error) | Self::Unanswered(error) | Self::Unable(error) => error,
        }
    }
}

/// Looks up a fully qualified name. `patience` limits the lookup itself, not the wait for earlier ones.
pub(super) async fn addresses(name: &str, port: u16, patience: Duration) -> Result<Vec<SocketAddr>, Unfound> {
    let (beginning, begun) = oneshot::channel::<()>();
    // The dot at the end makes the name fully qualified, so that the host's search domains are not appended.
    let place = (format!("{name}."), port);
    let looking = spawn_blocking(move || {
        drop(beginning);
        look_up(&place, || UdpSocket::bind((Ipv4Addr::UNSPECIFIED, 0)))
    });
    // The channel carries no message; dropping the sender is the signal.
    if timeout(TURN, begun).await.is_err() {
        return Err(Unfound::Unable(io::Error::other("too many names are being looked up")));
    }
    match timeout(patience, looking).await {
        Ok(Ok(found)) => found,
        Ok(Err(stopped)) => Err(Unfound::Unable(io::Error::other(stopped))),
        Err(_) => Err(Unfound::Unanswered(io::ErrorKind::TimedOut.into())),
    }
}

fn look_up<T>(place: &(String, u16), open: impl Fn() -> io::Result<T>) -> Result<Vec<SocketAddr>, Unfound> {
    has_room(&open)?;
    let (name, port) = place;
    // The library does not find a fully qualified name in this file.
    let own = of_hosts_file(&std::fs::read_to_string(HOSTS).unwrap_or_default(), name.trim_end_matches('.'));
    if !own.is_empty() {
        return Ok(own.into_iter().map(|address| SocketAddr::new(address, *port)).collect());
    }
    match lookup_host(name) {
        Ok(found) => Ok(found.map(|address| SocketAddr::new(address.to_canonical(), *port)).collect()),
        Err(error) => match unfound(error) {
            unable @ Unfound::Unable(_) => Err(unable),
            other @ (Unfound::Unknown(_) | Unfound::Unanswered(_)) => {
                has_room(&open)?;
                Err(other)
            }
        },
    }
}

fn unfound(error: LookupError) -> Unfound {
    use LookupErrorKind::{
        Again, Badflags, Fail, Family, IO, Memory, NoData, NoName, Service, Socktype, System, Unknown,
    };
    let kind = error.kind();
    let error = io::Error::from(error);
    match kind {
        NoName | NoData => Unfound::Unknown(error),
        System | Memory => Unfound::Unable(error),
        IO if error.raw_os_error().is_some() => Unfound::Unable(error),
        Again | Badflags | Fail | Family | IO | Service | Socktype | Unknown => Unfound::Unanswered(error),
    }
}

/// The names that this machine knows by itself.
const HOSTS: &str = "/etc/hosts";

/// Returns the addresses of a name in the text of such a file.
fn of_hosts_file(text: &str, name: &str) -> Vec<IpAddr> {
    let address = |line: &str| {
        let mut words = line.split('#').next()?.split_whitespace();
        let address: IpAddr = words.next()?.parse().ok()?;
        words
            .any(|word| word.trim_end_matches('.').eq_ignore_ascii_case(name))
            .then(|| address.to_canonical())
    };
    text.lines().filter_map(address).collect()
}

/// Checks that the file descriptors for a lookup are available.
fn has_room<T>(open: &impl Fn() -> io::Result<T>) -> Result<(), Unfound> {
    let opened: io::Result<Vec<T>> = (0..DESCRIPTORS).map(|_| open()).collect();
    opened.map(drop).map_err(Unfound::Unable)
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use rustix::io::Errno;

    use super::*;

    #[test]
    fn names_of_this_machine_are_found() {
        let text =
            "127.0.0.1 localhost\n# 192.0.2.9 db.test\n192.0.2.1\tdb.test DB2.test # why\n::1 db.test\nx y\n";
        let found = |name: &str| of_hosts_file(text, name).iter().map(IpAddr::to_string).collect::<Vec<_>>();
        assert_eq!(found("db.test"), ["192.0.2.1", "::1"]);
        assert_eq!(found("db2.test"), ["192.0.2.1"]);
        assert!(found("test").is_empty() && found("192.0.2.1").is_empty());
    }

    /// Returns the result of a lookup during which opening the n-th file descriptor fails.
    fn check(name: &str, refused: usize) -> Result<Vec<SocketAddr>, Unfound> {
        let count = Cell::new(0);
        let open = || {
            count.set(count.get() + 1);
            if count.get() == refused { Err(io::Error::from(Errno::MFILE)) } else { Ok(()) }
        };
        look_up(&(name.to_owned(), 80), open)
    }

    #[test]
    fn a_name_that_is_not_known_is_told_from_one_that_cannot_be_looked_for() {
        assert!(matches!(check("nobody.invalid.", usize::MAX), Err(Unfound::Unknown(_))));
        // During the check before the lookup, and during the one after it.
        for refused in [1, DESCRIPTORS, DESCRIPTORS + 1, 2 * DESCRIPTORS] {
            let found = check("nobody.invalid.", refused);
            assert!(matches!(found, Err(Unfound::Unable(_))), "{refused}: {found:?}");
        }
        let found = check("localhost", usize::MAX).unwrap();
        assert!(found.iter().any(|address| address.ip().is_loopback()), "{found:?}");
        assert!(matches!(check("localhost", 1), Err(Unfound::Unable(_))));
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn only_a_name_service_that_answers_says_that_there_is_no_such_name() {
        // EAI_NONAME, EAI_NODATA, EAI_AGAIN and EAI_FAIL of both C libraries of Linux (netdb.h).
        let kinds = [-2, -5, -3, -4].map(|code| match unfound(LookupError::new(code)) {
            Unfound::Unknown(_) => "unknown",
            Unfound::Unanswered(_) => "unanswered",
            Unfound::Unable(_) => "unable",
        });
        assert_eq!(kinds, ["unknown", "unknown", "unanswered", "unanswered"]);
    }

    #[test]
    fn time_counts_from_when_it_is_a_names_turn() {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .max_blocking_threads(1)
            .build()
            .unwrap();
        runtime.block_on(async {
            // Blocks the only thread for longer than the limit.
            let patience = Duration::from_secs(1);
            let other = spawn_blocking(move || std::thread::sleep(patience.mul_f32(1.5)));
            // The C library rejects an invalid name at once, without a query.
            let Err(Unfound::Unknown(error)) = addresses(&"a".repeat(70), 80, patience).await else {
                panic!("there is no such name")
            };
            assert_ne!(error.kind(), io::ErrorKind::TimedOut);
            other.await.unwrap();
        });
    }
}

//! Looks names up through the host's resolver.
//!
//! It distinguishes a name that does not exist from a lookup that failed. Behind the user's proxy the connection
//! continues in the first case, because the proxy may know the name, and fails in the second.

use std::io;
use std::net::{IpAddr, Ipv4Addr, SocketAddr, ToSocketAddrs as _, UdpSocket};
use std::time::Duration;

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
    /// The name does not exist, or the name servers do not answer.
    Unknown(io::Error),
    /// The lookup failed on this machine.
    Unable(io::Error),
}

impl Unfound {
    /// Returns the cause.
    pub(super) fn error(&self) -> &io::Error {
        match self {
            Self::Unknown(error) | Self::Unable(error) => error,
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
        Err(_) => Err(Unfound::Unknown(io::ErrorKind::TimedOut.into())),
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
    match (name.as_str(), *port).to_socket_addrs() {
        Ok(found) => {
            Ok(found.map(|address| SocketAddr::new(address.ip().to_canonical(), address.port())).collect())
        }
        // An error of the operating system, not of the name service.
        Err(error) if error.raw_os_error().is_some() => Err(Unfound::Unable(error)),
        Err(error) => {
            has_room(&open)?;
            Err(Unfound::Unknown(error))
        }
    }
}

/// The names that this machine knows by itself.
const HOSTS: &str = "/etc/hosts";

/// Returns the addresses that the file of this machine has for each name.
pub(super) fn of_this_machine(names: &[String]) -> Vec<(String, Vec<IpAddr>)> {
    let text = std::fs::read_to_string(HOSTS).unwrap_or_default();
    names.iter().map(|name| (name.clone(), of_hosts_file(&text, name))).collect()
}

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

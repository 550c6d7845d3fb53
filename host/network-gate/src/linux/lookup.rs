//! Names, looked up by the host as every program on it would.
//!
//! That a name is not found and that it could not be looked for are two things: behind the user's proxy the first
//! goes on, because the proxy may know better, and the second does not.

use std::io;
use std::net::{Ipv4Addr, SocketAddr, ToSocketAddrs as _, UdpSocket};
use std::time::Duration;

use tokio::sync::oneshot;
use tokio::task::spawn_blocking;
use tokio::time::timeout;

/// How long a name may wait until others have been looked up.
const TURN: Duration = Duration::from_secs(20);
/// The C library opens a file and some sockets for a question; without them it says that there is no such name.
const DESCRIPTORS: usize = 8;

/// Why there is no address.
#[derive(Debug)]
pub(super) enum Unfound {
    /// Nobody knows the name, or nobody answers.
    Unknown(io::Error),
    /// It could not be looked for.
    Unable(io::Error),
}

impl Unfound {
    /// What went wrong.
    pub(super) fn error(&self) -> &io::Error {
        match self {
            Self::Unknown(error) | Self::Unable(error) => error,
        }
    }
}

/// Looks a whole name up; `patience` is for the answer, and begins when the question does.
pub(super) async fn addresses(name: &str, port: u16, patience: Duration) -> Result<Vec<SocketAddr>, Unfound> {
    let (beginning, begun) = oneshot::channel::<()>();
    // With a dot at its end the name is whole, and no domain of the host's own is tried behind it.
    let place = (format!("{name}."), port);
    let looking = spawn_blocking(move || {
        drop(beginning);
        look_up(&place, || UdpSocket::bind((Ipv4Addr::UNSPECIFIED, 0)))
    });
    // The sender says nothing; it is dropped.
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
    match (name.as_str(), *port).to_socket_addrs() {
        Ok(found) => {
            Ok(found.map(|address| SocketAddr::new(address.ip().to_canonical(), address.port())).collect())
        }
        // An error of the system itself, and not of the name service.
        Err(error) if error.raw_os_error().is_some() => Err(Unfound::Unable(error)),
        Err(error) => {
            has_room(&open)?;
            Err(Unfound::Unknown(error))
        }
    }
}

/// Whether a question for a name would find the descriptors that it needs.
fn has_room<T>(open: &impl Fn() -> io::Result<T>) -> Result<(), Unfound> {
    let opened: io::Result<Vec<T>> = (0..DESCRIPTORS).map(|_| open()).collect();
    opened.map(drop).map_err(Unfound::Unable)
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use rustix::io::Errno;

    use super::*;

    /// What comes of a name that nobody knows, or a known one, where the n-th descriptor is refused.
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
        // Before the question, and after it.
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
            // In its way for longer than its patience.
            let patience = Duration::from_secs(1);
            let other = spawn_blocking(move || std::thread::sleep(patience.mul_f32(1.5)));
            // What can be no name is answered here, and at once.
            let Err(Unfound::Unknown(error)) = addresses(&"a".repeat(70), 80, patience).await else {
                panic!("there is no such name")
            };
            assert_ne!(error.kind(), io::ErrorKind::TimedOut);
            other.await.unwrap();
        });
    }
}

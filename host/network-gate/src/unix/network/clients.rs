//! Finds the socket and the process at the client's end of a connection out of a network.
//!
//! The kernel looks up one socket by the two addresses of its connection. The owner of a socket is found by a scan of
//! all processes, whose result is cached for a moment.

use std::collections::HashMap;
use std::net::SocketAddr;
use std::os::fd::OwnedFd;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use portcullis_sandbox::sock_diag::SocketQuery;

use super::process::{self, SocketOwner};
use crate::unix::client::{Client, Owner};

/// How long a scan of socket owners is valid.
///
/// It covers a burst of connections, each of which would otherwise scan every file descriptor again.
const SEEN: Duration = Duration::from_millis(250);

/// The processes of one network, and their sockets.
#[derive(Debug)]
pub(crate) struct NetworkClients {
    /// The root of all processes in the network.
    keeper: u32,
    /// The socket for queries to the kernel, one query at a time.
    diagnosis: Option<Mutex<SocketQuery>>,
    seen: Mutex<Option<SocketOwners>>,
}

/// The result of a scan: the owner of each socket.
#[derive(Debug)]
struct SocketOwners {
    at: Instant,
    owners: HashMap<u64, SocketOwner>,
}

impl NetworkClients {
    /// Creates the lookup. `diagnosis` is a `NETLINK_SOCK_DIAG` socket in the network, if the kernel supports it.
    pub(crate) fn new(keeper: u32, diagnosis: Option<OwnedFd>) -> Self {
        Self { keeper, diagnosis: diagnosis.map(SocketQuery::new).map(Mutex::new), seen: Mutex::default() }
    }

    /// Looks up the client's end of a connection. `client` is its source address, `server` its original destination.
    pub(crate) fn client(&self, client: SocketAddr, server: SocketAddr) -> Client {
        let asked = self.ask_kernel(client, server);
        asked.unwrap_or_else(|| process::client(self.keeper, client, server))
    }

    /// Like [`Self::client`], but `None` if the kernel gives no answer.
    ///
    /// It does not read the tables, which may take long.
    pub(crate) fn ask_kernel(&self, client: SocketAddr, server: SocketAddr) -> Option<Client> {
        let socket = self.diagnosis.as_ref()?.lock().unwrap_or_else(PoisonError::into_inner);
        // Some kernels do not answer such queries.
        let found = socket.connected(canonical(client), canonical(server)).ok()?;
        Some(found.map_or(Client::Gone, Client::Open))
    }

    /// Returns the process that has a socket open.
    pub(crate) fn owner(&self, socket: u64) -> Owner {
        let mut seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        let known = seen.as_ref().filter(|seen| seen.at.elapsed() < SEEN);
        if let Some(owner) = known.and_then(|seen| seen.owners.get(&socket)) {
            return owner.unless_shared();
        }
        let owners = process::owners(self.keeper);
        let owner = owners.get(&socket).map(SocketOwner::unless_shared).unwrap_or_default();
        *seen = Some(SocketOwners { at: Instant::now(), owners });
        owner
    }
}

fn canonical(address: SocketAddr) -> SocketAddr {
    SocketAddr::new(address.ip().to_canonical(), address.port())
}

#[cfg(test)]
mod tests {
    use std::net::{IpAddr, TcpListener, TcpStream};
    use std::os::fd::AsRawFd as _;

    use rustix::net::{AddressFamily, SocketFlags, SocketType, netlink, socket_with};

    use super::*;

    fn diagnosis() -> OwnedFd {
        let protocol = Some(netlink::SOCK_DIAG);
        socket_with(AddressFamily::NETLINK, SocketType::RAW, SocketFlags::CLOEXEC, protocol)
            .expect("a socket")
    }

    fn number(stream: &TcpStream) -> u64 {
        let link = std::fs::read_link(format!("/proc/self/fd/{}", stream.as_raw_fd())).unwrap();
        link.to_str().unwrap().trim_start_matches("socket:[").trim_end_matches(']').parse().unwrap()
    }

    #[test]
    fn the_kernel_and_its_tables_say_the_same() {
        let own = std::process::id();
        for place in ["127.0.0.1:0", "[::1]:0"] {
            let Ok(listener) = TcpListener::bind(place) else { continue };
            let server = listener.local_addr().unwrap();
            let stream = TcpStream::connect(server).unwrap();
            let address = stream.local_addr().unwrap();
            for clients in [NetworkClients::new(own, Some(diagnosis())), NetworkClients::new(own, None)] {
                let open = Client::Open(number(&stream));
                assert_eq!(clients.client(address, server), open, "{clients:?}");
                // The form of an IPv4 client in an IPv6 socket.
                if let IpAddr::V4(v4) = address.ip() {
                    let mapped = SocketAddr::new(v4.to_ipv6_mapped().into(), address.port());
                    assert_eq!(clients.client(mapped, server), open);
                }
                // A listening socket is not a connected one, and other addresses are another connection.
                assert_eq!(clients.client(server, address), Client::Gone, "{clients:?}");
                assert_eq!(clients.client(address, address), Client::Gone);
                let elsewhere = SocketAddr::new("192.0.2.1".parse().unwrap(), server.port());
                assert_eq!(clients.client(address, elsewhere), Client::Gone);
            }
            drop(stream);
            // A child process that another test has forked holds the socket open until its execve(2).
            let clients = NetworkClients::new(own, Some(diagnosis()));
            while clients.client(address, server) != Client::Gone {
                std::thread::yield_now();
            }
        }
    }

    #[test]
    fn who_has_a_socket_is_remembered_for_a_moment() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let mut child = std::process::Command::new("perl")
            .args(["-MIO::Socket::INET", "-e"])
            .arg("$s = IO::Socket::INET->new(PeerAddr => shift) or die; sleep 60")
            .arg(listener.local_addr().unwrap().to_string())
            .spawn()
            .unwrap();
        let (_stream, from) = listener.accept().unwrap();
        let clients = NetworkClients::new(std::process::id(), Some(diagnosis()));
        let Client::Open(socket) = clients.client(from, listener.local_addr().unwrap()) else {
            panic!("not found")
        };
        let owner = clients.owner(socket);
        assert_eq!((owner.process.pid, owner.command), (child.id(), child.id()));
        child.kill().unwrap();
        child.wait().unwrap();
        assert_eq!(clients.owner(socket), owner);
        std::thread::sleep(SEEN);
        assert_eq!(clients.owner(socket), Owner::default());
    }
}

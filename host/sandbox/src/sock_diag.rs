//! Asks the kernel for one TCP socket by its addresses, see sock_diag(7).
//!
//! The tables of all sockets (`/proc/net/tcp`) would have to be read in full for each of thousands of connections. The
//! one query and its answer are written by hand: libraries for netlink bring several crates for these 60 lines.

use std::net::{IpAddr, SocketAddr};
use std::os::fd::OwnedFd;

use rustix::io::Errno;
use rustix::net::netlink::{SOCK_DIAG, SocketAddrNetlink};
use rustix::net::{AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType, recv, sendto, socket_with};

/// A socket for queries about one network. Only one query at a time can use it.
#[derive(Debug)]
pub struct SocketQuery(OwnedFd);

/// A socket that the kernel has found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct HostSocket {
    /// Its local port.
    port: u16,
    /// The port that it is connected to; 0 if it listens.
    peer_port: u16,
    /// Its inode number; 0 if no process has it open.
    number: u64,
}

impl SocketQuery {
    /// Makes a socket for queries about the network of the calling thread.
    ///
    /// # Errors
    /// The kernel's; some kernels have no such sockets.
    pub fn open() -> rustix::io::Result<Self> {
        socket_with(AddressFamily::NETLINK, SocketType::RAW, SocketFlags::CLOEXEC, Some(SOCK_DIAG)).map(Self)
    }

    /// Uses a `NETLINK_SOCK_DIAG` socket, which belongs to the network that it was made in.
    #[must_use]
    pub fn new(socket: OwnedFd) -> Self {
        Self(socket)
    }

    /// Returns the inode number of the socket at `client` that is connected to `server`, if a process has it open.
    ///
    /// # Errors
    /// The kernel's; some kernels do not answer such queries.
    pub fn connected(&self, client: SocketAddr, server: SocketAddr) -> rustix::io::Result<Option<u64>> {
        // If there is no such connection, the kernel returns the listening socket instead.
        let found = self.find(client, server)?;
        let is_it = |found: &HostSocket| (found.port, found.peer_port) == (client.port(), server.port());
        Ok(found.filter(is_it).map(|found| found.number).filter(|number| *number != 0))
    }

    /// Returns true if a socket listens where a connection to `address` would arrive.
    ///
    /// # Errors
    /// The kernel's; some kernels do not answer such queries.
    pub fn is_listening(&self, address: SocketAddr) -> rustix::io::Result<bool> {
        let nowhere = SocketAddr::new(address.ip(), 0);
        Ok(self
            .find(address, nowhere)?
            .is_some_and(|found| found.port == address.port() && found.peer_port == 0))
    }

    /// Asks for the socket at `local` that is connected to `peer`, or else the one that listens at `local`.
    fn find(&self, local: SocketAddr, peer: SocketAddr) -> rustix::io::Result<Option<HostSocket>> {
        sendto(&self.0, &question(local, peer), SendFlags::empty(), &SocketAddrNetlink::new(0, 0))?;
        let mut answer = [0; 1024];
        // The answer is available as soon as the query is sent.
        let (_, length) = recv(&self.0, &mut answer, RecvFlags::DONTWAIT)?;
        parse(answer.get(..length).unwrap_or_default()).ok_or(Errno::BADMSG)?
    }
}

/// `SOCK_DIAG_BY_FAMILY`, see sock_diag(7).
const BY_FAMILY: u16 = 20;
/// `NLMSG_ERROR`.
const ERROR: u16 = 2;
/// `NLM_F_REQUEST`.
const REQUEST: u16 = 1;
/// Size of `struct nlmsghdr`.
const HEADER: usize = 16;
/// Size of `struct nlmsghdr` and `struct inet_diag_req_v2`.
const QUESTION: usize = HEADER + 56;
/// Offsets in the answer (`struct inet_diag_msg`): the two ports, and the inode number of the socket.
const PORTS: usize = HEADER + 4;
const NUMBER: usize = HEADER + 68;
/// `AF_INET`, `AF_INET6` and `IPPROTO_TCP`.
const V4: u8 = 2;
const V6: u8 = 10;
const TCP: u8 = 6;

fn question(local: SocketAddr, peer: SocketAddr) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(QUESTION);
    bytes.extend(u32::try_from(QUESTION).unwrap_or(u32::MAX).to_ne_bytes());
    bytes.extend(BY_FAMILY.to_ne_bytes());
    bytes.extend(REQUEST.to_ne_bytes());
    bytes.extend([0; 8]);
    let family = if local.is_ipv4() { V4 } else { V6 };
    // All TCP states.
    bytes.extend([family, TCP, 0, 0, 255, 255, 255, 255]);
    bytes.extend(local.port().to_be_bytes());
    bytes.extend(peer.port().to_be_bytes());
    for address in [local.ip(), peer.ip()] {
        let start = bytes.len();
        match address {
            IpAddr::V4(address) => bytes.extend(address.octets()),
            IpAddr::V6(address) => bytes.extend(address.octets()),
        }
        bytes.resize(start + 16, 0);
    }
    // Any interface and any cookie.
    bytes.extend([0, 0, 0, 0, 255, 255, 255, 255, 255, 255, 255, 255]);
    bytes
}

/// Parses the answer; `None` if it is not one.
fn parse(answer: &[u8]) -> Option<rustix::io::Result<Option<HostSocket>>> {
    let word = |at: usize| Some(u32::from_ne_bytes(answer.get(at..at + 4)?.try_into().ok()?));
    let port = |at: usize| Some(u16::from_be_bytes(answer.get(at..at + 2)?.try_into().ok()?));
    let kind = u16::from_ne_bytes(answer.get(4..6)?.try_into().ok()?);
    if kind == ERROR {
        let number = word(HEADER)?.cast_signed();
        return Some(match Errno::from_raw_os_error(number.saturating_neg()) {
            Errno::NOENT => Ok(None),
            error => Err(error),
        });
    }
    if kind != BY_FAMILY {
        return None;
    }
    Some(Ok(Some(HostSocket {
        port: port(PORTS)?,
        peer_port: port(PORTS + 2)?,
        number: word(NUMBER)?.into(),
    })))
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;

    use super::*;

    #[test]
    fn what_is_no_answer_is_an_error_and_so_is_what_the_kernel_cannot_say() {
        let answer = |kind: u16, number: i32| {
            let mut bytes = vec![0; HEADER];
            bytes[4..6].copy_from_slice(&kind.to_ne_bytes());
            bytes.extend(number.to_ne_bytes());
            parse(&bytes)
        };
        assert_eq!(answer(ERROR, -2), Some(Ok(None)));
        assert_eq!(answer(ERROR, -1), Some(Err(Errno::PERM)));
        assert!(answer(BY_FAMILY, 0).is_none() && answer(3, 0).is_none() && parse(&[]).is_none());
    }

    #[test]
    fn listening_sockets_are_found_where_connections_would_arrive() {
        let query = SocketQuery::open().expect("sock_diag");
        for (bound, found, others) in [
            ("127.0.0.1:0", ["127.0.0.1"].as_slice(), ["127.0.0.2", "::1"].as_slice()),
            ("0.0.0.0:0", &["127.0.0.1", "127.0.0.2"], &["::1"]),
            ("[::1]:0", &["::1"], &["127.0.0.1"]),
        ] {
            let Ok(listener) = TcpListener::bind(bound) else { continue };
            let port = listener.local_addr().expect("bound").port();
            let listens = |ip: &&str| {
                query.is_listening(SocketAddr::new(ip.parse().expect("an address"), port)).expect("an answer")
            };
            assert!(found.iter().all(listens) && !others.iter().any(listens), "{bound}");
            drop(listener);
            assert!(!found.iter().any(listens), "{bound}, closed");
        }
    }
}

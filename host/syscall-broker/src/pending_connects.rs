//! Connections that wait inside connect(2) until the host has a verdict, or lets them continue without one.
//!
//! This is a pause, not a check: the kernel makes the connection, from the caller's memory, and the host judges what
//! leaves the network by the address that the kernel used. So calls that are not understood here simply continue.
//!
//! The host answers such a call itself, and checks itself whether the caller still waits: relaying the answer through
//! the broker would only delay the caller.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::os::fd::{AsFd, OwnedFd};
use std::sync::{Mutex, PoisonError};

use portcullis_sandbox::network::{OWN, OWN_6};
use portcullis_sandbox::sock_diag::SocketQuery;
use portcullis_sys::memory::read_exactly;
use portcullis_sys::notify::Listener;
use rustix::fs::fstat;
use rustix::io::Errno;
use rustix::net::SocketType;
use rustix::net::sockopt::socket_type;

use crate::outcome::Outcome;
use crate::pending::PendingCall;
use crate::process::Processes;
use crate::transport;
use crate::wire::connects::ConnectMessage;

/// The size of `struct sockaddr_in6`, the longer of the two.
const ADDRESS_BYTES: usize = 28;
const DNS_PORT: u16 = 53;

/// The socket to the host.
pub(crate) struct PendingConnects {
    line: OwnedFd,
    /// Loopback ports that lead to this machine.
    host_ports: Vec<u16>,
    /// Finds out who listens in the sandbox; `None` if the kernel has no such queries.
    sockets: Option<Mutex<SocketQuery>>,
}

/// A reason for a call to wait.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Reason {
    /// The connection ends at the host.
    LeadsOut,
    /// The target is on the loopback, and no process in the sandbox listens there.
    Unheard,
}

impl PendingConnects {
    /// Sends the host the listener, with which it answers calls.
    pub(crate) fn begin(line: OwnedFd, host_ports: Vec<u16>, listener: &Listener) -> std::io::Result<Self> {
        transport::send(&line, &ConnectMessage::Begins.encode(), &[listener.as_fd()])?;
        Ok(Self { line, host_ports, sockets: SocketQuery::open().ok().map(Mutex::new) })
    }

    /// Returns why a connection to this address waits, if it does.
    fn reason(&self, address: SocketAddr) -> Option<Reason> {
        let (ip, port) = (address.ip(), address.port());
        let is_inside = ip == OWN || ip == OWN_6;
        let is_here = ip.is_loopback() || ip.is_unspecified();
        if is_inside || port == DNS_PORT {
            None
        } else if !is_here || self.host_ports.contains(&port) {
            Some(Reason::LeadsOut)
        } else {
            self.is_unheard(address).then_some(Reason::Unheard)
        }
    }

    /// Returns true if no process in the sandbox listens at a loopback address, as far as the kernel can tell.
    fn is_unheard(&self, address: SocketAddr) -> bool {
        let Some(sockets) = &self.sockets else { return false };
        let sockets = sockets.lock().unwrap_or_else(PoisonError::into_inner);
        let address = SocketAddr::new(loopback(address.ip()), address.port());
        sockets.is_listening(address).is_ok_and(|is_listening| !is_listening)
    }
}

/// Returns the loopback address instead of the unspecified one, as connect(2) takes it.
fn loopback(ip: IpAddr) -> IpAddr {
    match ip {
        IpAddr::V4(ip) if ip.is_unspecified() => Ipv4Addr::LOCALHOST.into(),
        IpAddr::V6(ip) if ip.is_unspecified() => Ipv6Addr::LOCALHOST.into(),
        ip @ (IpAddr::V4(_) | IpAddr::V6(_)) => ip,
    }
}

/// Makes a call wait if it makes a connection that leaves the sandbox.
pub(crate) fn hold(
    connecting: Option<&PendingConnects>,
    processes: &Processes,
    pending: &PendingCall,
    (socket, address, length): (i32, u64, u64),
) -> Outcome {
    let held = connecting.and_then(|connecting| {
        let address = read_address(pending, address, length)?;
        let reason = connecting.reason(address)?;
        begin(processes, connecting, pending, socket, address, reason).ok()
    });
    match held {
        Some(()) => Outcome::Done,
        None => Outcome::LEFT_TO_THE_KERNEL,
    }
}

fn begin(
    processes: &Processes,
    connecting: &PendingConnects,
    pending: &PendingCall,
    socket: i32,
    address: SocketAddr,
    reason: Reason,
) -> std::io::Result<()> {
    let own = processes.descriptor(&pending.caller, socket)?;
    if socket_type(&own)? != SocketType::STREAM {
        return Err(Errno::PROTOTYPE.into());
    }
    let socket = fstat(&own)?.st_ino;
    let command = processes.command(&pending.caller).ok_or(Errno::SRCH)?;
    let is_unheard = reason == Reason::Unheard;
    let address = SocketAddr::new(loopback(address.ip()), address.port());
    let told = ConnectMessage::Waits { id: pending.call.id, command, socket, address, is_unheard }.encode();
    let socket = is_unheard.then(|| own.as_fd());
    Ok(pending.caller.with_pidfd(|pidfd| {
        let given: Vec<_> = std::iter::once(pidfd.as_fd()).chain(socket).collect();
        transport::send(&connecting.line, &told, &given)
            .map_err(|error| Errno::from_io_error(&error).unwrap_or(Errno::PIPE))
    })?)
}

fn read_address(pending: &PendingCall, address: u64, length: u64) -> Option<SocketAddr> {
    let length = usize::try_from(length & u64::from(u32::MAX)).ok()?.min(ADDRESS_BYTES);
    let mut bytes = vec![0; length];
    read_exactly(pending.call.thread, address, &mut bytes).ok()?;
    parse_address(&bytes)
}

/// Parses `struct sockaddr_in` or `struct sockaddr_in6`.
fn parse_address(bytes: &[u8]) -> Option<SocketAddr> {
    let (family, rest) = bytes.split_first_chunk::<2>()?;
    let (port, rest) = rest.split_first_chunk::<2>()?;
    let ip: IpAddr = match i32::from(u16::from_ne_bytes(*family)) {
        libc::AF_INET => Ipv4Addr::from(*rest.first_chunk::<4>()?).into(),
        // After the flow label.
        libc::AF_INET6 => Ipv6Addr::from(*rest.get(4..)?.first_chunk::<16>()?).to_canonical(),
        _ => return None,
    };
    Some(SocketAddr::new(ip, u16::from_be_bytes(*port)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_read_as_the_kernel_does() {
        let check = |family: i32, rest: &[u8], expected: Option<&str>| {
            let family = u16::try_from(family).expect("small").to_ne_bytes();
            let found = parse_address(&[family.as_slice(), rest].concat());
            assert_eq!(found.map(|address| address.to_string()).as_deref(), expected);
        };
        check(libc::AF_INET, &[0, 80, 192, 0, 2, 1, 9, 9, 9, 9, 9, 9, 9, 9], Some("192.0.2.1:80"));
        let v6 = |ip: &str| {
            let ip: Ipv6Addr = ip.parse().expect("an address");
            [&[1, 187, 7, 7, 7, 7], ip.octets().as_slice(), &[0; 4]].concat()
        };
        check(libc::AF_INET6, &v6("2001:db8::1"), Some("[2001:db8::1]:443"));
        check(libc::AF_INET6, &v6("::ffff:192.0.2.1"), Some("192.0.2.1:443"));
        check(libc::AF_INET6, &v6("2001:db8::1")[..12], None);
        check(libc::AF_UNIX, b"/run/socket....", None);
        check(libc::AF_UNSPEC, &[0; 14], None);
        check(libc::AF_INET, &[], None);
    }

    #[test]
    fn what_stays_inside_does_not_wait() {
        let (line, _other) = transport::pair().expect("a pair of sockets");
        let sockets = SocketQuery::open().ok().map(Mutex::new);
        let connecting = PendingConnects { line, host_ports: vec![5432], sockets };
        let reason = |address: &str| connecting.reason(address.parse().expect("an address"));
        for address in ["192.0.2.1:80", "198.18.0.2:443", "[2001:db8::1]:80", "127.0.0.1:5432", "[::1]:5432"]
        {
            assert_eq!(reason(address), Some(Reason::LeadsOut), "{address}");
        }
        for address in ["198.18.0.1:80", "[fd00:5a4d::1]:80", "8.8.8.8:53", "127.0.0.1:53"] {
            assert_eq!(reason(address), None, "{address}");
        }
        let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
        let port = listener.local_addr().expect("bound").port();
        for ip in ["127.0.0.1", "0.0.0.0"] {
            assert_eq!(reason(&format!("{ip}:{port}")), None, "{ip}");
        }
        drop(listener);
        for ip in ["127.0.0.1", "0.0.0.0", "[::1]", "[::]"] {
            assert_eq!(reason(&format!("{ip}:{port}")), Some(Reason::Unheard), "{ip}, closed");
        }
    }
}

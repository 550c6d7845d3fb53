//! The wanted network of a session.

use std::net::{Ipv4Addr, Ipv6Addr};

/// The wanted network of the session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Network {
    /// No connection leaves the sandbox.
    Closed,
    /// Connections lead to the host's listeners.
    Gated(WayOut),
}

/// The way in which connections leave a session's network.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct WayOut {
    /// Loopback ports that lead to this machine; connections to all other loopback ports stay inside.
    pub host_ports: Vec<u16>,
    /// Where connections wait for their verdict.
    pub hold: Hold,
}

/// Where a connection waits for its verdict.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Hold {
    /// Inside connect(2), so the connect timeouts of programs do not run meanwhile. Without rules over names, and so
    /// without a broker, this equals [`Self::Accept`].
    #[default]
    Connect,
    /// After the connection is accepted, before its first byte.
    Accept,
}

/// The machine's address inside. It is not in the loopback range, because `getaddrinfo` would then assume a machine
/// without a network (`AI_ADDRCONFIG`); this range is reserved for network tests (RFC 2544).
pub const OWN: Ipv4Addr = Ipv4Addr::new(198, 18, 0, 1);

/// The same for IPv6, from the range for private use (RFC 4193).
pub const OWN_6: Ipv6Addr = Ipv6Addr::new(0xfd00, 0x5a4d, 0, 0, 0, 0, 0, 1);

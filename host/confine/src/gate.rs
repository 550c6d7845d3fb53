//! What the host gets of a session's network.

use std::io;
use std::net::{TcpListener, UdpSocket};
use std::os::fd::OwnedFd;

use crate::{Calls, Stage};

/// How the connections of a session are led out.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct WayOut {
    /// Ports of the loopback that mean the host's own; connections to all others of it stay inside.
    pub host_ports: Vec<u16>,
    /// Where connections wait for their verdict.
    pub hold: Hold,
}

/// Where a connection waits for its verdict.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Hold {
    /// Inside connect(2): the limits that programs set for connecting do not run meanwhile. Where there are no
    /// rules over names, and so no broker, it is as with [`Self::Accept`].
    #[default]
    Connect,
    /// Once it is there, before the first byte.
    Accept,
}

/// Listeners inside the network of a session; whatever a program connects to ends at one of them.
///
/// Nobody answers as long as the host does not, and when they are closed every connection is refused.
#[derive(Debug)]
pub struct Listeners {
    /// For programs that are told to use a proxy; on the loopback, where they find it by its port.
    pub proxy: TcpListener,
    /// A socket in the network through which the kernel says whose a connection is (`NETLINK_SOCK_DIAG`); nothing
    /// where it has no such.
    pub diagnosis: Option<OwnedFd>,
    /// Where the rest ends, for IPv4.
    pub v4: Ends,
    /// The same for IPv6; nothing where the kernel has none.
    pub v6: Option<Ends>,
    /// Connections that wait inside connect(2); nothing where they are accepted first.
    pub calls: Option<Calls>,
    /// The process number of the keeper, below which every process of the session is.
    pub keeper: u32,
}

/// Where the connections and the questions of one family end.
#[derive(Debug)]
pub struct Ends {
    /// Connections to other machines, and to the ports of the loopback that mean the host's.
    /// The kernel knows where each was meant to go (`SO_ORIGINAL_DST`).
    pub relay: TcpListener,
    /// Questions for names, to whichever server they were sent.
    pub dns: UdpSocket,
    /// The same over TCP.
    pub dns_stream: TcpListener,
}

/// Why the connections of a session lead nowhere.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum NoGate {
    /// The kernel refuses a part of it.
    #[error("{stage}")]
    Refused {
        /// What was being done.
        stage: Stage,
        /// The kernel's answer.
        #[source]
        source: io::Error,
    },
    /// The keeper did not hand them over.
    #[error("the keeper made no listeners")]
    Lost,
}

impl NoGate {
    /// Returns the error with its cause, in one line.
    pub fn in_full(&self) -> String {
        match self {
            Self::Refused { source, .. } => format!("{self}: {source}"),
            Self::Lost => self.to_string(),
        }
    }
}

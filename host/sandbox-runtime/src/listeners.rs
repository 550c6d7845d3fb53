//! The host's part of a session's network: its listeners and how connections reach them.

use std::io;
use std::net::{TcpListener, UdpSocket};
use std::os::fd::OwnedFd;

use portcullis_sandbox::Stage;

use crate::Calls;

/// Listeners inside the network of a session; every connection of a program ends at one of them.
///
/// Connections wait as long as the host does not accept them, and are refused once the listeners are closed.
#[derive(Debug)]
pub struct Listeners {
    /// For programs that are configured to use a proxy, on a port of the loopback.
    pub proxy: TcpListener,
    /// A `NETLINK_SOCK_DIAG` socket inside the session's network, which tells the owner of a connection; `None` if the
    /// kernel has none.
    pub diagnosis: Option<OwnedFd>,
    /// The other IPv4 listeners.
    pub v4: Ends,
    /// The IPv6 listeners; `None` if the kernel has no IPv6.
    pub v6: Option<Ends>,
    /// Connections that wait inside connect(2); `None` if connections are accepted first.
    pub calls: Option<Calls>,
    /// The pid of the keeper, the ancestor of every process of the session.
    pub keeper: u32,
}

/// The listeners of one address family.
#[derive(Debug)]
pub struct Ends {
    /// Receives connections to other machines, and to loopback ports that lead to this machine.
    /// The kernel keeps the original target of each (`SO_ORIGINAL_DST`).
    pub relay: TcpListener,
    /// Receives DNS queries, whichever server they were sent to.
    pub dns: UdpSocket,
    /// The same over TCP.
    pub dns_stream: TcpListener,
}

/// Why a session has no listeners for its connections.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum NoGate {
    /// The kernel refuses a part of the setup.
    #[error("{stage}")]
    Refused {
        /// The step that failed.
        stage: Stage,
        /// The kernel's error.
        #[source]
        source: io::Error,
    },
    /// The keeper did not send the listeners.
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

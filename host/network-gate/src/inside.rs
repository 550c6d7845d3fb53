//! Servers that listen inside the sandbox, and sockets to reach them.

use std::net::IpAddr;

use portcullis_decision::request::ProcessInfo;

/// A server that a command has started.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Server {
    /// The address it listens on, inside the network.
    pub address: IpAddr,
    /// The port it listens on.
    pub port: u16,
    /// The process that listens.
    pub process: ProcessInfo,
}

/// Makes sockets in a network. It is called on threads that may block.
pub trait Sockets: Send + Sync + 'static {
    /// Makes an unconnected TCP socket.
    ///
    /// # Errors
    /// If the network no longer exists, or the kernel refuses.
    fn make(&self, is_v6: bool) -> std::io::Result<std::os::fd::OwnedFd>;
}

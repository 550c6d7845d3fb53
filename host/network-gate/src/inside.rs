//! Servers that listen inside.

use std::net::IpAddr;

use portcullis_decision::request::ProcessInfo;

/// A server that a command has started.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Server {
    /// Where it listens, inside.
    pub address: IpAddr,
    /// On which port.
    pub port: u16,
    /// Its process.
    pub process: ProcessInfo,
}

/// Makes sockets in a network; asked from threads that may wait.
pub trait Sockets: Send + Sync + 'static {
    /// Makes a TCP socket that is not connected.
    ///
    /// # Errors
    /// When there is no such network any more, or the kernel refuses.
    fn make(&self, is_v6: bool) -> std::io::Result<std::os::fd::OwnedFd>;
}

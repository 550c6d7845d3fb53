//! Events about connections that wait inside connect(2).

use std::net::SocketAddr;

/// An event about a waiting connect(2) call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Call {
    /// A call waits; [`super::Calls::release`] lets it continue.
    Waits {
        /// Identifies the call.
        id: u64,
        /// The calling process.
        process: u32,
        /// The init of the command that the process belongs to; 0 if unknown.
        command: u32,
        /// The inode number of the socket, as in `/proc/N/net/tcp`.
        socket: u64,
        /// The target address as it was when the broker read it. The kernel reads it again later, and that reading
        /// counts.
        address: SocketAddr,
        /// Whether the target was on the loopback, and no process in the sandbox listened there;
        /// [`super::Calls::redirect`] can connect it elsewhere.
        is_unheard: bool,
    },
    /// A call waits no longer, because its process has given up or ended.
    Gone {
        /// Identifies the call.
        id: u64,
    },
}

//! Calls of connect(2) that are suspended before the connection exists.

use std::net::SocketAddr;

/// A source of suspended connect(2) calls in one network.
///
/// A call is never the basis for a verdict on a connection; it only lets the gate ask early. The verdict applies to the
/// connection that arrives later only if that comes from the same socket and goes to the same destination.
pub trait Calls: std::fmt::Debug + Send + Sync + 'static {
    /// Waits for the next event; returns `None` when the network has ended.
    fn next(&self) -> Option<Call>;

    /// Lets a suspended call continue.
    fn release(&self, id: u64);

    /// Connects the socket of a suspended call to another address, and lets the call return the result. Only for calls
    /// with `is_unheard`.
    fn redirect(&self, id: u64, address: SocketAddr);

    /// Makes a suspended call fail with `EACCES`.
    ///
    /// Programs take that for an answer. They try again after `ECONNREFUSED`, some of them for minutes.
    fn refuse(&self, id: u64);
}

/// An event of a suspended call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Call {
    /// A call is suspended.
    Waits {
        /// The id of the call.
        id: u64,
        /// The calling process.
        process: u32,
        /// The root process of the command that the caller belongs to; 0 if it is unknown.
        command: u32,
        /// The inode number of the socket, as in `/proc/N/net/tcp`.
        socket: u64,
        /// The destination.
        address: SocketAddr,
        /// Whether the destination is on the loopback, and no process in the network listens there. It may then be a
        /// service of this machine.
        is_unheard: bool,
    },
    /// A call is no longer suspended.
    Gone {
        /// The id of the call.
        id: u64,
    },
}

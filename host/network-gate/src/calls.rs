//! Connections that wait inside connect(2), before there is anything to be accepted.

use std::net::SocketAddr;

/// The calls of connect(2) of one network that wait.
///
/// What they say is no ground for a verdict on a connection: it is a reason to ask early. The connection comes out of
/// the network afterwards, and only if it is from the very socket to the very place that was asked about, the answer
/// is taken over.
pub trait Calls: std::fmt::Debug + Send + Sync + 'static {
    /// Waits for what is next; nothing when the network has ended.
    fn next(&self) -> Option<Call>;

    /// Lets a call go on.
    fn release(&self, id: u64);
}

/// What is heard of calls.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Call {
    /// One waits.
    Waits {
        /// Names the call.
        id: u64,
        /// The calling process.
        process: u32,
        /// The process below which everything of the same command is; 0 where it is not known.
        command: u32,
        /// The number of the socket, as in `/proc/N/net/tcp`.
        socket: u64,
        /// Where it wants to connect to.
        address: SocketAddr,
    },
    /// One does not wait any more.
    Gone {
        /// Names the call.
        id: u64,
    },
}

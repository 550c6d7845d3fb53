//! The sockets through which the gate serves a network.

/// The listeners of one network, as the sandbox made them.
#[derive(Debug)]
pub struct Listeners {
    /// Listeners for redirected connections; the kernel knows their original destinations.
    pub relays: Vec<std::net::TcpListener>,
    /// Sockets for DNS queries over UDP.
    pub dns: Vec<std::net::UdpSocket>,
    /// Listeners for DNS queries over TCP.
    pub dns_streams: Vec<std::net::TcpListener>,
    /// The listener for programs that are configured to use a proxy.
    pub proxy: std::net::TcpListener,
    /// The source of suspended connect(2) calls, if the sandbox has one.
    ///
    /// Without it, connections are held after they are accepted.
    pub calls: Option<std::sync::Arc<dyn crate::Calls>>,
    /// A `NETLINK_SOCK_DIAG` socket in the network, for finding the owner of a connection.
    ///
    /// Without it, the tables in `/proc` are read.
    pub diagnosis: Option<std::os::fd::OwnedFd>,
    /// The root of all processes in the network.
    pub keeper: u32,
}

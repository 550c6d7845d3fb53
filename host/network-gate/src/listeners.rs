//! The sockets through which the gate serves commands.

/// The listeners for the commands of one sandbox.
#[derive(Debug)]
pub struct Listeners {
    /// The listener for programs that are configured to use a proxy.
    pub proxy: std::net::TcpListener,
    /// The other listeners of a network that only these commands have.
    ///
    /// Without one, the sandbox must refuse every connection but those to the proxy, and the gate does not know which
    /// process of a command has connected.
    pub network: Option<NetworkListeners>,
}

/// The listeners of one network, as the sandbox made them; Linux only.
#[derive(Debug)]
pub struct NetworkListeners {
    /// Listeners for redirected connections; the kernel knows their original destinations.
    pub relays: Vec<std::net::TcpListener>,
    /// Sockets for DNS queries over UDP.
    pub dns: Vec<std::net::UdpSocket>,
    /// Listeners for DNS queries over TCP.
    pub dns_streams: Vec<std::net::TcpListener>,
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

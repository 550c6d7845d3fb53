//! What a network is served through.

/// The listeners of one network, as the sandbox made them.
#[derive(Debug)]
pub struct Listeners {
    /// Connections, which the kernel knows the meant ends of.
    pub relays: Vec<std::net::TcpListener>,
    /// Questions for names.
    pub dns: Vec<std::net::UdpSocket>,
    /// The same over TCP.
    pub dns_streams: Vec<std::net::TcpListener>,
    /// For programs that are told to use a proxy.
    pub proxy: std::net::TcpListener,
    /// Connections that wait inside connect(2), where they do; all others wait once they are accepted.
    pub calls: Option<std::sync::Arc<dyn crate::Calls>>,
    /// A socket in the network that the kernel is asked through whose a connection is (`NETLINK_SOCK_DIAG`); without it
    /// tables are read.
    pub diagnosis: Option<std::os::fd::OwnedFd>,
    /// The process below which everything in the network is.
    pub keeper: u32,
}

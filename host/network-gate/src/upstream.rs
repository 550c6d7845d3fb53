//! The user's own proxy, through which allowed connections go.

use portcullis_decision::request::Endpoint;

/// A proxy for outgoing connections.
#[derive(Clone, PartialEq, Eq)]
pub struct Upstream {
    /// The protocol of the proxy.
    pub protocol: Protocol,
    /// The host of the proxy.
    pub host: Endpoint,
    /// The port of the proxy.
    pub port: u16,
    /// The user name and the password for the proxy.
    pub credentials: Option<(String, String)>,
    /// The treatment of names that only the proxy can resolve.
    pub unresolved: Unresolved,
}

/// A proxy protocol.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Protocol {
    /// HTTP, with `CONNECT`.
    Http,
    /// The same in TLS, with a certificate for the proxy's host.
    Https,
    /// SOCKS 5.
    Socks,
}

/// The treatment of a name that this machine cannot resolve, so that its address cannot be checked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unresolved {
    /// The proxy resolves it.
    Left,
    /// The connection is refused, because rules name addresses.
    Refused,
}

impl std::fmt::Debug for Upstream {
    /// Omits the credentials.
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { protocol, host, port, .. } = self;
        formatter
            .debug_struct("Upstream")
            .field("protocol", protocol)
            .field("host", host)
            .field("port", port)
            .finish_non_exhaustive()
    }
}

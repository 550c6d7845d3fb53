//! The user's own proxy, through which allowed connections go.

use portcullis_decision::request::Endpoint;

/// A proxy that connections go through.
#[derive(Clone, PartialEq, Eq)]
pub struct Upstream {
    /// What it speaks.
    pub protocol: Protocol,
    /// Its host.
    pub host: Endpoint,
    /// Its port.
    pub port: u16,
    /// The user's name there, and the password.
    pub credentials: Option<(String, String)>,
    /// What becomes of names that only the proxy can resolve.
    pub unresolved: Unresolved,
}

/// What a proxy speaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Protocol {
    /// HTTP, with `CONNECT`.
    Http,
    /// SOCKS 5.
    Socks,
}

/// What becomes of a name that cannot be resolved here, so that nobody knows where it leads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unresolved {
    /// The proxy knows it.
    Left,
    /// It is refused, because rules speak of addresses.
    Refused,
}

impl std::fmt::Debug for Upstream {
    /// Without the password.
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

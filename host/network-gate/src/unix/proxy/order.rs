//! A request to the proxy in either protocol (HTTP `CONNECT` or SOCKS), and the replies to it.

use portcullis_decision::request::Endpoint;

use super::socks_reply;
use crate::unix::refuse::{self, News};

/// The user name for the proxy; the token is the password.
pub(crate) const USER: &str = "portcullis";

/// A program's request to the proxy.
#[derive(Debug)]
pub(crate) struct Order {
    pub(crate) host: Endpoint,
    pub(crate) port: u16,
    pub(crate) manner: Manner,
    /// The bytes that follow the request, or the rewritten request for the server.
    pub(crate) beginning: Vec<u8>,
}

/// The form of the reply that a connection is made or refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Manner {
    /// The client does not use the proxy.
    #[cfg_attr(not(target_os = "linux"), expect(dead_code, reason = "only Linux redirects connections"))]
    Direct,
    /// `CONNECT`.
    Tunnel,
    /// A request in plain HTTP.
    Request,
    Socks,
}

impl Manner {
    /// Returns the message for a connection that is made.
    pub(crate) fn confirmed(self) -> &'static [u8] {
        match self {
            Self::Direct | Self::Request => b"",
            Self::Tunnel => b"HTTP/1.1 200 Connection established\r\n\r\n",
            Self::Socks => &socks_reply::CONFIRMED,
        }
    }

    /// Returns the message for a refusal; `None` if it depends on the client's protocol.
    pub(crate) fn refusal_reply(self, news: News, why: &str) -> Option<Vec<u8>> {
        match self {
            Self::Direct => None,
            Self::Tunnel | Self::Request => Some(refuse::page(news, why)),
            Self::Socks => Some(socks_reply::refusal_reply(news).to_vec()),
        }
    }
}

/// The reason why there is no request.
#[derive(Debug)]
pub(crate) enum Fault {
    /// Send these bytes to the client and close the connection.
    Told(Vec<u8>),
    /// The client has gone, or speaks another protocol.
    Gone,
}

impl From<std::io::Error> for Fault {
    fn from(_error: std::io::Error) -> Self {
        Self::Gone
    }
}

/// Compares in constant time, so that the time does not reveal the first difference.
pub(super) fn is_token(given: &[u8], token: &str) -> bool {
    let token = token.as_bytes();
    given.len() == token.len()
        && given.iter().zip(token).fold(0, |sum, (one, other)| sum | (one ^ other)) == 0
}

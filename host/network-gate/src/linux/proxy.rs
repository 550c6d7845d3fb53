//! The proxy for programs that are configured to use one.
//!
//! It serves HTTP (`CONNECT` and plain requests) and SOCKS 5 on one port, with the same decisions as for other
//! connections.
//!
//! A client must present the session's token. As for other connections, a name is resolved only after it is allowed.

mod http;
mod socks;

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use portcullis_decision::request::Endpoint;
use tokio::io::AsyncReadExt as _;
use tokio::net::TcpStream;
use tokio::time::timeout;

use crate::linux::refuse::{self, News};
use crate::linux::relay;
use crate::linux::scope::{Scope, Wanted};
use crate::names::is_localhost;

/// How long a program may take to send its request.
const GREETING: Duration = Duration::from_secs(30);

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

/// How the client is told that its connection is made or refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Manner {
    /// The client does not use the proxy.
    Direct,
    /// `CONNECT`.
    Tunnel,
    /// A request in plain HTTP.
    Request,
    Socks,
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

impl Manner {
    /// Returns the message for a connection that is made.
    pub(crate) fn confirmed(self) -> &'static [u8] {
        match self {
            Self::Direct | Self::Request => b"",
            Self::Tunnel => b"HTTP/1.1 200 Connection established\r\n\r\n",
            Self::Socks => &socks::CONFIRMED,
        }
    }

    /// Returns the message for a refusal; `None` if it depends on the client's protocol.
    pub(crate) fn refused(self, news: News, why: &str) -> Option<Vec<u8>> {
        match self {
            Self::Direct => None,
            Self::Tunnel | Self::Request => Some(refuse::page(news, why)),
            Self::Socks => Some(socks::refused(news).to_vec()),
        }
    }
}

/// Serves a program that has connected to the proxy.
pub(crate) async fn serve(scope: Arc<Scope>, mut client: TcpStream, from: SocketAddr) {
    let Ok(server) = client.local_addr() else { return };
    let greeted = timeout(GREETING, greet(&scope, &mut client)).await;
    match greeted {
        Ok(Ok(Order { host, port, manner, beginning })) => {
            let wanted = Wanted { target: itself(host), port, client: from, server };
            relay::connect(&scope, client, &wanted, manner, beginning).await;
        }
        Ok(Err(Fault::Told(message))) => refuse::say(client, &message).await,
        Ok(Err(Fault::Gone)) | Err(_) => refuse::reset(&client),
    }
}

/// Returns the loopback address for `localhost`, as the DNS server does for other connections.
fn itself(host: Endpoint) -> Endpoint {
    match host {
        Endpoint::Domain(name) if is_localhost(&name) => Endpoint::Address(Ipv4Addr::LOCALHOST.into()),
        other @ (Endpoint::Domain(_) | Endpoint::Address(_)) => other,
    }
}

async fn greet(scope: &Scope, client: &mut TcpStream) -> Result<Order, Fault> {
    let first = client.read_u8().await?;
    if first == socks::VERSION {
        return socks::greet(&scope.token, client).await;
    }
    http::greet(&scope.token, client, first).await
}

/// Compares in constant time, so that the time does not reveal the first difference.
fn is_token(given: &[u8], token: &str) -> bool {
    let token = token.as_bytes();
    given.len() == token.len()
        && given.iter().zip(token).fold(0, |sum, (one, other)| sum | (one ^ other)) == 0
}

//! For programs that are told to use a proxy: HTTP (`CONNECT` and plain requests) and SOCKS 5 on one port, behind the
//! same decisions as everything else.
//!
//! Whoever uses it must know the session's token, and a name is resolved no earlier than elsewhere.

mod http;
mod socks;

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use portcullis_decision::request::Endpoint;
use tokio::io::AsyncReadExt as _;
use tokio::net::TcpStream;
use tokio::time::timeout;

use crate::linux::refuse::{self, News};
use crate::linux::relay;
use crate::linux::scope::{Scope, Wanted};

/// How long a program may take to say what it wants.
const GREETING: Duration = Duration::from_secs(30);

/// The user's name of the proxy; the token is the password.
pub(crate) const USER: &str = "portcullis";

/// What a program asked the proxy for, as far as it went.
#[derive(Debug)]
pub(crate) struct Order {
    pub(crate) host: Endpoint,
    pub(crate) port: u16,
    pub(crate) manner: Manner,
    /// What the program sent behind the order, or what is to be sent for it.
    pub(crate) beginning: Vec<u8>,
}

/// In which words a connection is confirmed or refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Manner {
    /// The program knows nothing of us.
    Direct,
    /// `CONNECT`.
    Tunnel,
    /// A request in plain HTTP.
    Request,
    Socks,
}

/// Why there is no order.
#[derive(Debug)]
pub(crate) enum Fault {
    /// It is told this, and the connection ends.
    Told(Vec<u8>),
    /// It has gone, or speaks something else.
    Gone,
}

impl From<std::io::Error> for Fault {
    fn from(_error: std::io::Error) -> Self {
        Self::Gone
    }
}

impl Manner {
    /// What says that the connection is there.
    pub(crate) fn confirmed(self) -> &'static [u8] {
        match self {
            Self::Direct | Self::Request => b"",
            Self::Tunnel => b"HTTP/1.1 200 Connection established\r\n\r\n",
            Self::Socks => &socks::CONFIRMED,
        }
    }

    /// What says that it is not; nothing where that depends on what the program speaks.
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
            let wanted = Wanted { target: host, port, client: from, server };
            relay::connect(&scope, client, &wanted, manner, beginning).await;
        }
        Ok(Err(Fault::Told(message))) => refuse::say(client, &message).await,
        Ok(Err(Fault::Gone)) | Err(_) => refuse::reset(&client),
    }
}

async fn greet(scope: &Scope, client: &mut TcpStream) -> Result<Order, Fault> {
    let first = client.read_u8().await?;
    if first == socks::VERSION {
        return socks::greet(&scope.token, client).await;
    }
    http::greet(&scope.token, client, first).await
}

/// Compares without a hint of where the first difference lies.
fn is_token(given: &[u8], token: &str) -> bool {
    let token = token.as_bytes();
    given.len() == token.len()
        && given.iter().zip(token).fold(0, |sum, (one, other)| sum | (one ^ other)) == 0
}

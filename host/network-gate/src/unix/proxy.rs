//! The proxy for programs that are configured to use one.
//!
//! It serves HTTP (`CONNECT` and plain requests) and SOCKS 5 on one port, with the same decisions as for other
//! connections.
//!
//! A client must present the session's token. As for other connections, a name is resolved only after it is allowed.

mod http;
mod order;
mod socks;
mod socks_reply;

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use portcullis_decision::request::Endpoint;
use tokio::io::AsyncReadExt as _;
use tokio::net::TcpStream;
use tokio::time::timeout;

use crate::names::is_localhost;
use crate::unix::refuse;
use crate::unix::relay;
use crate::unix::scope::{Scope, Wanted};
use order::Fault;
pub(crate) use order::{Manner, Order, USER};

/// How long a program may take to send its request.
const GREETING: Duration = Duration::from_secs(30);

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
    if first == socks_reply::VERSION {
        return socks::greet(&scope.token, client).await;
    }
    http::greet(&scope.token, client, first).await
}

//! Connections that the kernel has redirected to the gate.

use std::net::SocketAddr;
use std::sync::Arc;

use rustix::net::sockopt::{ip_original_dst, ipv6_original_dst};
use tokio::net::TcpStream;

use crate::unix::proxy::Manner;
use crate::unix::scope::{Scope, Wanted};
use crate::unix::{refuse, relay};

/// Serves a connection that the kernel has redirected here.
pub(crate) async fn serve(scope: Arc<Scope>, client: TcpStream, from: SocketAddr) {
    let Some(meant) = original_destination(&client) else { return refuse::reset(&client) };
    match scope.shared.names.endpoint(meant.ip()) {
        Some(target) => {
            let wanted = Wanted { target, port: meant.port(), client: from, server: meant };
            relay::connect(&scope, client, &wanted, Manner::Direct, Vec::new()).await;
        }
        // An address of the range for names, without a name.
        None => refuse::reset(&client),
    }
}

/// Returns the original destination of the connection; `None` if the client connected to the listener itself.
fn original_destination(client: &TcpStream) -> Option<SocketAddr> {
    let own = client.local_addr().ok()?;
    let meant = match own {
        SocketAddr::V4(_) => ip_original_dst(client).map(SocketAddr::from),
        SocketAddr::V6(_) => ipv6_original_dst(client).map(SocketAddr::from),
    };
    meant.ok().filter(|meant| *meant != own)
}

//! A network that only commands have: connections that the kernel redirects to the gate, calls that it holds, DNS, and
//! its tables of sockets.

mod clients;
mod dns_server;
pub(super) mod hold;
mod process;
mod redirected;
mod servers;

use std::io;
use std::sync::Arc;

use tokio::net::UdpSocket;

pub(super) use self::clients::NetworkClients;
pub(super) use self::servers::servers;
use crate::listeners::NetworkListeners;
use crate::unix::scope::Scope;
use crate::unix::serving::{Serving, accept, usable};

/// Looks at the network before it is served.
pub(super) fn clients(network: &mut NetworkListeners) -> io::Result<NetworkClients> {
    Ok(NetworkClients::new(network.keeper, network.diagnosis.take()))
}

/// Serves the listeners of a network.
pub(super) fn serve(scope: &Arc<Scope>, network: NetworkListeners) -> io::Result<Vec<Serving>> {
    let mut serving: Vec<Serving> = Vec::new();
    for listener in network.relays {
        serving.push(Box::pin(accept(usable(listener)?, Arc::clone(scope), redirected::serve)));
    }
    for socket in network.dns {
        socket.set_nonblocking(true)?;
        serving.push(Box::pin(dns_server::answer(UdpSocket::from_std(socket)?, Arc::clone(scope))));
    }
    for listener in network.dns_streams {
        serving.push(Box::pin(accept(usable(listener)?, Arc::clone(scope), dns_server::answer_stream)));
    }
    if let Some(line) = network.calls {
        let heard = hold::hear(scope, &line)?;
        serving.push(Box::pin(hold::serve(Arc::clone(scope), heard, hold::HOLD)));
    }
    Ok(serving)
}

//! The clients of a network, and whether one has gone.

use std::net::SocketAddr;

use tokio::net::TcpStream;

use crate::judge::{Judge, Running};
use crate::unix::client::{Client, Owner};
use crate::unix::network::NetworkClients;

/// The clients of one network.
#[derive(Debug)]
pub(crate) enum Clients {
    /// Commands have a network of their own, and the kernel tells who connects.
    OfNetwork(NetworkClients),
    /// Commands share the network of this machine, and only the proxy serves them.
    OfProxy,
}

impl Clients {
    /// Looks up the client's end of a connection. `client` is its source address, `server` its original destination.
    pub(crate) fn client(&self, client: SocketAddr, server: SocketAddr) -> Client {
        match self {
            Self::OfNetwork(clients) => clients.client(client, server),
            Self::OfProxy => Client::Untold,
        }
    }

    /// Like [`Self::client`], but `None` if the kernel gives no answer at once.
    pub(crate) fn ask_kernel(&self, client: SocketAddr, server: SocketAddr) -> Option<Client> {
        match self {
            Self::OfNetwork(clients) => clients.ask_kernel(client, server),
            Self::OfProxy => Some(Client::Untold),
        }
    }

    /// Returns the process that has a socket open; an unknown one for [`Client::Untold`] and [`Client::Gone`].
    pub(crate) fn owner(&self, client: Client) -> Owner {
        match (self, client) {
            (Self::OfNetwork(clients), Client::Open(socket)) => clients.owner(socket),
            (_, Client::Open(_) | Client::Gone | Client::Untold) => Owner::default(),
        }
    }
}

/// What a client that has stopped sending may still wait for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Awaited {
    /// An answer of the user.
    Answer,
    /// Bytes of the server.
    Server,
}

/// Returns true if a client that has stopped sending has gone.
///
/// If the system does not tell, one that waits for the user counts as gone: then the question is withdrawn. Others have
/// gone with the last command, or when their socket has been reset.
pub(crate) fn is_gone(client: Client, awaited: Awaited, judge: &dyn Judge, stream: &TcpStream) -> bool {
    match (client, awaited) {
        (Client::Open(_), _) => false,
        (Client::Gone, _) | (Client::Untold, Awaited::Answer) => true,
        (Client::Untold, Awaited::Server) => {
            let is_reset = || stream.take_error().map_or(true, |error| error.is_some());
            judge.running() == Running::None || is_reset()
        }
    }
}

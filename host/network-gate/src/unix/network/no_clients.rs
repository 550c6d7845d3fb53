//! The processes of a network, on systems that have none.

use std::net::SocketAddr;

use crate::unix::client::{Client, Owner};

/// The clients of a network; there is none on this system.
#[derive(Debug)]
pub(crate) enum NetworkClients {}

impl NetworkClients {
    pub(crate) fn client(&self, _client: SocketAddr, _server: SocketAddr) -> Client {
        match *self {}
    }

    pub(crate) fn ask_kernel(&self, _client: SocketAddr, _server: SocketAddr) -> Option<Client> {
        match *self {}
    }

    pub(crate) fn owner(&self, _socket: u64) -> Owner {
        match *self {}
    }
}

//! Other systems give commands no network of their own, so the proxy is their only way out.

mod no_clients;

use std::io;
use std::sync::Arc;

pub(super) use self::no_clients::NetworkClients;
use crate::Server;
use crate::listeners::NetworkListeners;
use crate::unix::scope::Scope;
use crate::unix::serving::Serving;

/// Fails, because no network can be served.
pub(super) fn clients(_network: &mut NetworkListeners) -> io::Result<NetworkClients> {
    Err(io::ErrorKind::Unsupported.into())
}

/// Fails, because no network can be served.
pub(super) fn serve(_scope: &Arc<Scope>, _network: NetworkListeners) -> io::Result<Vec<Serving>> {
    Err(io::ErrorKind::Unsupported.into())
}

/// Returns no servers.
pub(super) fn servers(_keeper: u32) -> Vec<Server> {
    Vec::new()
}

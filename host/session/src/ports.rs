//! Servers that commands start, and the ports that open them to the user.

use std::io;
use std::net::SocketAddr;
use std::os::fd::OwnedFd;
use std::sync::{Arc, Weak};

use portcullis_network_gate::Sockets;
use portcullis_session_sandbox::network::{InsidePort, PortError};

use crate::policy_in_force::PolicyInForce;
use crate::session::Session;

/// Creates sockets in the session's current sandbox.
struct InSession(Weak<PolicyInForce>);

impl Sockets for InSession {
    fn make(&self, is_v6: bool) -> io::Result<OwnedFd> {
        let effective = self.0.upgrade().ok_or(io::ErrorKind::NotConnected)?.current();
        effective.confinement.as_ref().map_err(|_none| io::ErrorKind::NotConnected)?.socket_inside(is_v6)
    }
}

/// Returns the ports on which commands listen, and those that are open.
#[must_use]
pub fn list(session: &Session) -> Vec<InsidePort> {
    let effective = session.effective_policy();
    let servers = effective.confinement.as_ref().map(|sandbox| sandbox.servers()).unwrap_or_default();
    session.network().map(|network| network.open_ports().list(servers)).unwrap_or_default()
}

/// Opens a port inside to this machine's loopback, on port `at` or any free one if `at` is 0. Returns the address.
///
/// # Errors
/// When the settings forbid it, the port is already open, or it is not available.
pub fn open(session: &Session, port: u16, at: u16) -> Result<SocketAddr, PortError> {
    let network = session.network().ok_or(PortError::NoNetwork)?;
    let sockets = Arc::new(InSession(Arc::downgrade(&session.policy)));
    let may_be_open = || session.settings().connecting.opens_ports;
    network.open_ports().open((port, at), network.gate(), sockets, may_be_open)
}

/// Closes a port, with all connections through it.
///
/// # Errors
/// When it is not open.
pub fn close(session: &Session, port: u16) -> Result<(), PortError> {
    session.network().ok_or(PortError::NoNetwork)?.open_ports().close(port)
}

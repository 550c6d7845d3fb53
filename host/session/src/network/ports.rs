//! Servers that commands start, and the user's way to them.

use std::collections::HashMap;
use std::io;
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::os::fd::OwnedFd;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use portcullis_network_gate::{Server, Sockets, WayIn};
use portcullis_text::escape;

use super::{Line, Network};
use crate::session::Session;

/// Ports that are open at once.
const OPEN_MAX: usize = 64;

/// A port on which a server listens inside, or that is open.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InsidePort {
    /// The port inside.
    pub port: u16,
    /// The program that listens, safe to show; empty when nobody does.
    pub program: String,
    /// Its process; 0 when nobody listens.
    pub process: u32,
    /// Where it can be reached on this machine; nothing when it is not open.
    pub open_at: Option<SocketAddr>,
}

/// Why a port is not opened or closed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum PortError {
    /// There is no way out, so there is none in.
    #[error("this session's commands have no network; `portcullis doctor` says why")]
    NoNetwork,
    /// The settings say that no port is opened.
    #[error("`network.allowLocalBinding` is `false` in the settings")]
    NotAllowed,
    /// It is open already.
    #[error("port {port} is open already, at {at}")]
    IsOpen {
        /// The port inside.
        port: u16,
        /// Where it is open.
        at: SocketAddr,
    },
    /// It is not open.
    #[error("port {port} is not open")]
    IsClosed {
        /// The port inside.
        port: u16,
    },
    /// There are too many.
    #[error("{OPEN_MAX} ports are open already; close one")]
    TooMany,
    /// The port of this machine cannot be had.
    #[error("listening at 127.0.0.1:{port}; choose another port with `--at`")]
    Listen {
        /// The port of this machine.
        port: u16,
        /// The kernel's answer.
        #[source]
        source: io::Error,
    },
}

/// The ports that are open, by those inside.
#[derive(Debug, Default)]
pub(super) struct Open(Mutex<HashMap<u16, (SocketAddr, WayIn)>>);

impl Open {
    pub(super) fn close_all(&self) {
        self.table().clear();
    }

    fn table(&self) -> MutexGuard<'_, HashMap<u16, (SocketAddr, WayIn)>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Makes sockets in the sandbox that the session has at the time.
struct InSession(Arc<Line>);

impl Sockets for InSession {
    fn make(&self, is_v6: bool) -> io::Result<OwnedFd> {
        let session = self.0.session().ok_or(io::ErrorKind::NotConnected)?;
        let force = session.force();
        force.confinement.as_ref().map_err(|_none| io::ErrorKind::NotConnected)?.socket_inside(is_v6)
    }
}

impl Network {
    /// Closes every port, with the connections through them.
    pub(crate) fn close_ports(&self) {
        self.open.close_all();
    }

    fn ports(&self, servers: Vec<Server>) -> Vec<InsidePort> {
        let open = self.open.table();
        let at = |port| open.get(&port).map(|(at, _)| *at);
        let mut ports: Vec<InsidePort> = Vec::new();
        for Server { port, process, .. } in servers {
            let program = escape(&process.program);
            ports.push(InsidePort { port, program, process: process.pid, open_at: at(port) });
        }
        for (&port, (at, _)) in open.iter() {
            if ports.iter().all(|known| known.port != port) {
                ports.push(InsidePort { port, program: String::new(), process: 0, open_at: Some(*at) });
            }
        }
        ports.sort_by_key(|port| (port.port, port.process));
        ports
    }

    /// `may_be_open` is asked while no port can be closed: settings that forbid it close afterwards what it let through.
    fn open_port(
        &self,
        port: u16,
        at: u16,
        may_be_open: impl FnOnce() -> bool,
    ) -> Result<SocketAddr, PortError> {
        let mut open = self.open.table();
        if !may_be_open() {
            return Err(PortError::NotAllowed);
        }
        if let Some((at, _)) = open.get(&port) {
            return Err(PortError::IsOpen { port, at: *at });
        }
        if open.len() >= OPEN_MAX {
            return Err(PortError::TooMany);
        }
        // For this machine only.
        let listen = || {
            let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, at))?;
            let address = listener.local_addr()?;
            let sockets = Arc::new(InSession(Arc::clone(&self.line)));
            Ok((address, self.gate.lead_in(listener, port, sockets)?))
        };
        let way = listen().map_err(|source| PortError::Listen { port: at, source })?;
        let address = way.0;
        open.insert(port, way);
        Ok(address)
    }
}

impl Session {
    /// Returns the ports on which commands listen, and those that are open.
    #[must_use]
    pub fn ports(&self) -> Vec<InsidePort> {
        let servers = self.force().confinement.as_ref().map(|sandbox| sandbox.servers()).unwrap_or_default();
        self.network.as_ref().map(|network| network.ports(servers)).unwrap_or_default()
    }

    /// Opens a port inside to this machine's loopback, at `at` there, or at any when that is 0; returns where.
    ///
    /// # Errors
    /// When the settings forbid it, it is open already, or it cannot be had.
    pub fn open_port(&self, port: u16, at: u16) -> Result<SocketAddr, PortError> {
        let network = self.network.as_ref().ok_or(PortError::NoNetwork)?;
        network.open_port(port, at, || self.settings().connecting.opens_ports)
    }

    /// Closes a port again, with every connection through it.
    ///
    /// # Errors
    /// When it is not open.
    pub fn close_port(&self, port: u16) -> Result<(), PortError> {
        let network = self.network.as_ref().ok_or(PortError::NoNetwork)?;
        network.open.table().remove(&port).map(drop).ok_or(PortError::IsClosed { port })
    }
}

//! The ports that open servers of commands to the user.

use std::collections::HashMap;
use std::io;
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use portcullis_network_gate::{Gate, Server, Sockets, WayIn};
use portcullis_text::escape;

/// Maximum number of open ports.
const OPEN_MAX: usize = 64;

/// A port on which a server listens inside, or that is open.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InsidePort {
    /// The port inside.
    pub port: u16,
    /// The listening program, safe to show; empty if none listens.
    pub program: String,
    /// Its process id; 0 if none listens.
    pub process: u32,
    /// Its address on this machine; `None` if it is not open.
    pub open_at: Option<SocketAddr>,
}

/// Why a port was not opened or closed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum PortError {
    /// The sandbox has no network.
    #[error("this session's commands have no network; `portcullis doctor` says why")]
    NoNetwork,
    /// The settings forbid opening ports.
    #[error("`network.allowLocalBinding` is `false` in the settings")]
    NotAllowed,
    /// It is already open.
    #[error("port {port} is open already, at {at}")]
    IsOpen {
        /// The port inside.
        port: u16,
        /// Its address.
        at: SocketAddr,
    },
    /// It is not open.
    #[error("port {port} is not open")]
    IsClosed {
        /// The port inside.
        port: u16,
    },
    /// Too many ports are open.
    #[error("{OPEN_MAX} ports are open already; close one")]
    TooMany,
    /// The port of this machine is not available.
    #[error("listening at 127.0.0.1:{port}; choose another port with `--at`")]
    Listen {
        /// The port of this machine.
        port: u16,
        /// The system's error.
        #[source]
        source: io::Error,
    },
}

/// The open ports, by the port inside.
#[derive(Debug, Default)]
pub struct OpenPorts(Mutex<HashMap<u16, (SocketAddr, WayIn)>>);

impl OpenPorts {
    /// Closes all ports, with the connections through them.
    pub fn close_all(&self) {
        self.table().clear();
    }

    /// Closes a port, with all connections through it.
    pub fn close(&self, port: u16) -> Result<(), PortError> {
        self.table().remove(&port).map(drop).ok_or(PortError::IsClosed { port })
    }

    /// Returns the ports on which `servers` listen, and those that are open.
    pub fn list(&self, servers: Vec<Server>) -> Vec<InsidePort> {
        let open = self.table();
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

    /// Opens the port inside to port `at` of this machine, if `may_be_open` returns true.
    ///
    /// It is called while no port can be closed, so that settings that forbid open ports also close a port that is just
    /// being opened.
    pub fn open(
        &self,
        (port, at): (u16, u16),
        gate: &Gate,
        sockets: Arc<dyn Sockets>,
        may_be_open: impl FnOnce() -> bool,
    ) -> Result<SocketAddr, PortError> {
        let mut open = self.table();
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
            Ok((address, gate.lead_in(listener, port, sockets)?))
        };
        let way = listen().map_err(|source| PortError::Listen { port: at, source })?;
        let address = way.0;
        open.insert(port, way);
        Ok(address)
    }

    fn table(&self) -> MutexGuard<'_, HashMap<u16, (SocketAddr, WayIn)>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

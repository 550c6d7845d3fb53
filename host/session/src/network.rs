//! The gate in the networks of the sandboxes, and the sandboxes that it serves.

mod open_ports;

use std::net::SocketAddr;
use std::sync::Arc;

use portcullis_decision::RuleSet;
use portcullis_network_gate::{Attached, Call, Calls, Gate, Judge, Server};
use portcullis_sandbox_runtime::{Confinement, Ends, Listeners, Running};

use crate::own_directories::Changes;

pub(crate) use open_ports::OpenPorts;
pub use open_ports::{InsidePort, PortError};

/// Makes the judge of one sandbox. Its rules are given if they differ from the session's.
pub(crate) type MakeJudge = Box<dyn Fn(Option<Arc<RuleSet>>) -> Arc<dyn Judge> + Send + Sync>;

/// The gate of a session.
pub(crate) struct Network {
    gate: Gate,
    make_judge: MakeJudge,
    open_ports: OpenPorts,
}

impl std::fmt::Debug for Network {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("Network").field("gate", &self.gate).finish_non_exhaustive()
    }
}

impl Network {
    /// Starts the gate.
    pub(crate) fn start(make_judge: MakeJudge) -> std::io::Result<Self> {
        let descriptors = portcullis_sandbox_runtime::raise_file_limit();
        Ok(Self { gate: Gate::start(descriptors)?, make_judge, open_ports: OpenPorts::default() })
    }

    /// Closes all connections and withdraws the questions.
    pub(crate) fn close(&self) {
        self.open_ports.close_all();
        self.gate.close();
    }

    /// Returns the gate.
    pub(crate) fn gate(&self) -> &Gate {
        &self.gate
    }

    /// Returns the ports that are open to the user.
    pub(crate) fn open_ports(&self) -> &OpenPorts {
        &self.open_ports
    }

    /// Waits until all facts about the connections of an ended command are known.
    pub(crate) fn wait_for_connections(&self, command: u32) {
        self.gate.wait_for_connections(command);
    }

    /// Serves the network of a sandbox. `stricter` are the rules of its one command, if it is not shared.
    pub(crate) fn serve(
        &self,
        listeners: Listeners,
        stricter: Option<Arc<RuleSet>>,
    ) -> std::io::Result<Attached> {
        let Listeners { proxy, diagnosis, v4, v6, calls, keeper } = listeners;
        let mut served = portcullis_network_gate::Listeners {
            relays: Vec::new(),
            dns: Vec::new(),
            dns_streams: Vec::new(),
            proxy,
            diagnosis,
            calls: calls.map(|calls| Arc::new(HeldCalls(calls)) as Arc<dyn Calls>),
            keeper,
        };
        for Ends { relay, dns, dns_stream } in std::iter::once(v4).chain(v6) {
            served.relays.push(relay);
            served.dns.push(dns);
            served.dns_streams.push(dns_stream);
        }
        self.gate.attach(served, (self.make_judge)(stricter))
    }
}

/// The sandbox's pending connection calls, in the form that the gate needs.
#[derive(Debug)]
struct HeldCalls(portcullis_sandbox_runtime::Calls);

impl Calls for HeldCalls {
    fn next(&self) -> Option<Call> {
        Some(match self.0.next()? {
            portcullis_sandbox_runtime::Call::Waits { id, process, command, socket, address, is_unheard } => {
                Call::Waits { id, process, command, socket, address, is_unheard }
            }
            portcullis_sandbox_runtime::Call::Gone { id } => Call::Gone { id },
        })
    }

    fn release(&self, id: u64) {
        self.0.release(id);
    }

    fn redirect(&self, id: u64, address: SocketAddr) {
        self.0.redirect(id, address);
    }

    fn refuse(&self, id: u64) {
        self.0.refuse(id);
    }
}

/// A sandbox, with the server for its network.
#[derive(Debug)]
pub struct Sandbox {
    // Dropped first, which closes all connections.
    network: Option<Attached>,
    confinement: Confinement,
    /// Whether changes in caches are kept.
    changes: Changes,
}

impl Sandbox {
    pub(crate) fn new(confinement: Confinement, network: Option<Attached>, changes: Changes) -> Self {
        Self { network, confinement, changes }
    }

    /// Returns true if what commands change in caches is kept.
    pub(crate) fn keeps_changes(&self) -> bool {
        self.changes == Changes::Kept
    }
}

impl Sandbox {
    /// Returns the servers that commands have started in it.
    pub(crate) fn servers(&self) -> Vec<Server> {
        self.network.as_ref().map(Attached::servers).unwrap_or_default()
    }

    /// Returns the variable that names the proxy inside, or `None` without network access.
    pub(crate) fn proxy_variable(&self) -> Option<(String, String)> {
        self.network.as_ref().map(|network| ("PORTCULLIS_PROXY".to_owned(), network.proxy().to_owned()))
    }
}

impl std::ops::Deref for Sandbox {
    type Target = Confinement;

    fn deref(&self) -> &Confinement {
        &self.confinement
    }
}

/// Returns the process id that identifies a command's connections; 0 if unknown.
pub(crate) fn command_of(running: &Running) -> u32 {
    running.init().unwrap_or_default()
}

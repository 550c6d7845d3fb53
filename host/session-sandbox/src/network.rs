//! The gate in the networks of the sandboxes, and the sandboxes that it serves.

mod open_ports;

use std::net::{SocketAddr, TcpListener};
use std::os::fd::OwnedFd;
use std::path::PathBuf;
use std::sync::Arc;

use portcullis_decision::RuleSet;
use portcullis_network_gate::{Attached, Call, Calls, Gate, Judge, NetworkListeners, Server};
use portcullis_profile_runtime::ProfileSandbox;
use portcullis_sandbox::{Command, Report};
use portcullis_sandbox_runtime::{Confinement, Ends, LaunchError, Listeners, View};

use crate::own_directories::Changes;
use crate::running::RunningCommand;

pub use open_ports::OpenPorts;
pub use open_ports::{InsidePort, PortError};

/// Makes the judge of one sandbox. Its rules are given if they differ from the session's.
pub type MakeJudge = Box<dyn Fn(Option<Arc<RuleSet>>) -> Arc<dyn Judge> + Send + Sync>;

/// The gate of a session.
pub struct Network {
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
    pub fn start(make_judge: MakeJudge) -> std::io::Result<Self> {
        let descriptors = portcullis_sandbox_runtime::raise_file_limit();
        Ok(Self { gate: Gate::start(descriptors)?, make_judge, open_ports: OpenPorts::default() })
    }

    /// Closes all connections and withdraws the questions.
    pub fn close(&self) {
        self.open_ports.close_all();
        self.gate.close();
    }

    /// Returns the gate.
    pub fn gate(&self) -> &Gate {
        &self.gate
    }

    /// Returns the ports that are open to the user.
    pub fn open_ports(&self) -> &OpenPorts {
        &self.open_ports
    }

    /// Waits until all facts about the connections of an ended command are known.
    pub fn wait_for_connections(&self, command: u32) {
        self.gate.wait_for_connections(command);
    }

    /// Serves the network of a sandbox. `stricter` are the rules of its one command, if it is not shared.
    pub fn serve(&self, listeners: Listeners, stricter: Option<Arc<RuleSet>>) -> std::io::Result<Attached> {
        let Listeners { proxy, diagnosis, v4, v6, calls, keeper } = listeners;
        let mut network = NetworkListeners {
            relays: Vec::new(),
            dns: Vec::new(),
            dns_streams: Vec::new(),
            diagnosis,
            calls: calls.map(|calls| Arc::new(HeldCalls(calls)) as Arc<dyn Calls>),
            keeper,
        };
        for Ends { relay, dns, dns_stream } in std::iter::once(v4).chain(v6) {
            network.relays.push(relay);
            network.dns.push(dns);
            network.dns_streams.push(dns_stream);
        }
        let served = portcullis_network_gate::Listeners { proxy, network: Some(network) };
        self.gate.attach(served, (self.make_judge)(stricter))
    }
}

impl Network {
    /// Serves commands that have no other way out than a proxy.
    pub fn serve_proxy(
        &self,
        proxy: TcpListener,
        stricter: Option<Arc<RuleSet>>,
    ) -> std::io::Result<Attached> {
        let served = portcullis_network_gate::Listeners { proxy, network: None };
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
    kind: Kind,
}

#[derive(Debug)]
enum Kind {
    /// Of the kernel's mechanisms.
    Kernel {
        confinement: Confinement,
        /// Whether changes in caches are kept.
        changes: Changes,
    },
    /// Of a profile.
    Profile {
        sandbox: ProfileSandbox,
        /// The directory to which `HOME` leads, if it is not the temporary one.
        home: Option<PathBuf>,
    },
}

impl Sandbox {
    /// Returns the sandbox with its network, if it has one.
    #[must_use]
    pub fn new(confinement: Confinement, network: Option<Attached>, changes: Changes) -> Self {
        Self { network, kind: Kind::Kernel { confinement, changes } }
    }

    /// Returns commands under a profile, with their network.
    #[must_use]
    pub fn under_profile(sandbox: ProfileSandbox, network: Attached, home: Option<PathBuf>) -> Self {
        Self { network: Some(network), kind: Kind::Profile { sandbox, home } }
    }

    /// Returns true if what commands change in caches is kept.
    pub fn keeps_changes(&self) -> bool {
        matches!(self.kind, Kind::Kernel { changes: Changes::Kept, .. })
    }

    /// Returns the servers that commands have started in a network of their own.
    pub fn servers(&self) -> Vec<Server> {
        match (&self.kind, &self.network) {
            (Kind::Kernel { .. }, Some(network)) => network.servers(),
            // Nobody may listen there.
            (Kind::Profile { .. }, _) | (_, None) => Vec::new(),
        }
    }

    /// Returns the variables that only this sandbox can give: the way to the proxy, and the home.
    pub fn variables(&self) -> Vec<(String, String)> {
        let Some(network) = &self.network else { return Vec::new() };
        let proxy = network.proxy();
        let mut variables = vec![("PORTCULLIS_PROXY".to_owned(), proxy.to_owned())];
        if let Kind::Profile { home, .. } = &self.kind {
            variables.extend(proxy_variables(proxy));
            variables
                .extend(home.iter().map(|home| ("HOME".to_owned(), home.to_string_lossy().into_owned())));
        }
        variables
    }

    /// Returns the files as commands see them; `None` if those are the machine's.
    pub fn view(&self) -> Option<View> {
        match &self.kind {
            Kind::Kernel { confinement, .. } => Some(confinement.view()),
            Kind::Profile { .. } => None,
        }
    }

    /// Starts a command whose waiting calls the caller answers.
    pub fn launch(&self, command: Command, stdio: [OwnedFd; 3]) -> Result<RunningCommand, LaunchError> {
        match &self.kind {
            Kind::Kernel { confinement, .. } => {
                confinement.launch_asking(command, stdio).map(RunningCommand::InSandbox)
            }
            Kind::Profile { sandbox, .. } => sandbox.launch(command, stdio).map(RunningCommand::UnderProfile),
        }
    }

    /// Makes a socket in the session's network.
    pub fn socket_inside(&self, is_v6: bool) -> std::io::Result<OwnedFd> {
        match &self.kind {
            Kind::Kernel { confinement, .. } => confinement.socket_inside(is_v6),
            Kind::Profile { .. } => Err(std::io::ErrorKind::Unsupported.into()),
        }
    }

    /// Returns the report of the layers in force.
    #[must_use]
    pub fn report(&self) -> &Report {
        match &self.kind {
            Kind::Kernel { confinement, .. } => confinement.report(),
            Kind::Profile { sandbox, .. } => sandbox.report(),
        }
    }
}

/// Returns the variables that tell programs to use a proxy, in the spellings that programs know.
///
/// With SOCKS the proxy resolves names (`socks5h`), because commands cannot.
fn proxy_variables(http: &str) -> Vec<(String, String)> {
    let socks = http.replacen("http://", "socks5h://", 1);
    let given = [
        ("HTTP_PROXY", http),
        ("HTTPS_PROXY", http),
        ("ALL_PROXY", socks.as_str()),
        ("NO_PROXY", ""),
        ("http_proxy", http),
        ("https_proxy", http),
        ("all_proxy", &socks),
        ("no_proxy", ""),
        // Node uses the variables only if it is told to.
        ("NODE_USE_ENV_PROXY", "1"),
    ];
    given.into_iter().map(|(name, value)| (name.to_owned(), value.to_owned())).collect()
}

#[cfg(test)]
mod tests {
    use super::proxy_variables;

    #[test]
    fn programs_find_the_proxy_by_each_of_its_names() {
        let variables = proxy_variables("http://u:t@127.0.0.1:7");
        let value =
            |wanted: &str| variables.iter().find(|(name, _)| name == wanted).map(|(_, value)| value.as_str());
        assert_eq!(value("https_proxy"), Some("http://u:t@127.0.0.1:7"));
        assert_eq!(value("ALL_PROXY"), Some("socks5h://u:t@127.0.0.1:7"));
        assert_eq!(value("NO_PROXY"), Some(""));
    }
}

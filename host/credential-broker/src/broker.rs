//! The brokered hosts of a session.

use std::sync::{Arc, OnceLock};

use portcullis_decision::request::Endpoint;
use rustls::ClientConfig;

use crate::authority::Authority;
use crate::git::{Ssh, SshHost};
use crate::host::{BrokeredHost, Credential};
use crate::loaded::{Loaded, SeenSecrets};
use crate::placeholders::Placeholders;
use crate::secret::Secrets;
use crate::upstream_tls;

/// The brokered hosts of a session.
pub struct Broker {
    authority: Arc<Authority>,
    hosts: Vec<Arc<BrokeredHost>>,
    placeholders: Placeholders,
    loaded: Loaded,
    upstream: OnceLock<Result<Arc<ClientConfig>, String>>,
    ssh: Option<OutsideSsh>,
}

/// The hosts that git reaches by the user's own `ssh`, and that program.
struct OutsideSsh {
    hosts: Vec<Arc<SshHost>>,
    program: Arc<dyn Ssh>,
}

/// A place to which only some requests may be sent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LimitedPlace {
    /// The host.
    pub host: Endpoint,
    /// The port.
    pub port: u16,
    /// Whether the other ports of the host are closed.
    pub other_ports: OtherPorts,
}

/// Whether a limit on one port of a host closes its other ports.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OtherPorts {
    /// The gate refuses connections to them, because it would not read their requests.
    Refused,
    /// They are not limited.
    Free,
}

impl LimitedPlace {
    /// Returns true if the limit also concerns this port.
    pub fn concerns(&self, port: u16) -> bool {
        self.port == port || self.other_ports == OtherPorts::Refused
    }
}

impl Broker {
    /// Makes the broker of these hosts. `earlier` are placeholders that were in use before, and `seen` the credentials
    /// that the session has read.
    #[must_use]
    pub fn new(
        authority: Arc<Authority>,
        hosts: Vec<BrokeredHost>,
        earlier: Vec<String>,
        (secrets, seen): (Box<dyn Secrets>, SeenSecrets),
    ) -> Self {
        let current = hosts.iter().flat_map(|host| &host.credentials);
        let named = |one: &Credential| -> Vec<(String, Option<String>)> {
            one.placeholders().into_iter().map(|text| (text, Some(one.name.clone()))).collect()
        };
        let mut known: Vec<(String, Option<String>)> = current.flat_map(named).collect();
        known.extend(earlier.into_iter().map(|placeholder| (placeholder, None)));
        Self {
            authority,
            hosts: hosts.into_iter().map(Arc::new).collect(),
            placeholders: Placeholders::new(known),
            loaded: Loaded::new(secrets, seen),
            upstream: OnceLock::new(),
            ssh: None,
        }
    }

    /// Adds the hosts that git reaches by the user's own `ssh`.
    #[must_use]
    pub fn with_ssh(self, hosts: Vec<SshHost>, ssh: Arc<dyn Ssh>) -> Self {
        let hosts = hosts.into_iter().map(Arc::new).collect();
        Self { ssh: Some(OutsideSsh { hosts, program: ssh }), ..self }
    }

    /// Returns the host at a place that git reaches by the user's own `ssh`.
    pub fn ssh_host(&self, target: &Endpoint, port: u16) -> Option<(Arc<SshHost>, Arc<dyn Ssh>)> {
        let OutsideSsh { hosts, program } = self.ssh.as_ref()?;
        let host = hosts.iter().find(|host| host.host == *target && host.port == port)?;
        Some((Arc::clone(host), Arc::clone(program)))
    }

    /// Returns the brokered host at a place.
    #[must_use]
    pub fn host(&self, target: &Endpoint, port: u16) -> Option<&Arc<BrokeredHost>> {
        self.hosts.iter().find(|host| host.host == *target && host.port == port)
    }

    /// Returns true if the requests to this host are limited, and only on other ports.
    pub fn is_limited_elsewhere(&self, target: &Endpoint, port: u16) -> bool {
        let is_limited = |host: &Arc<BrokeredHost>| host.host == *target && host.is_limited();
        self.host(target, port).is_none() && self.hosts.iter().any(is_limited)
    }

    /// Returns the hosts to which only some requests may be sent.
    pub fn limited(&self) -> Vec<Endpoint> {
        self.hosts.iter().filter(|host| host.is_limited()).map(|host| host.host.clone()).collect()
    }

    /// Returns the places to which only some requests may be sent, also by git over `ssh`.
    pub fn limited_places(&self) -> Vec<LimitedPlace> {
        let limited = self.hosts.iter().filter(|host| host.is_limited());
        let of_host = |host: &Arc<BrokeredHost>| LimitedPlace {
            host: host.host.clone(),
            port: host.port,
            other_ports: OtherPorts::Refused,
        };
        let of_ssh = |host: &Arc<SshHost>| LimitedPlace {
            host: host.host.clone(),
            port: host.port,
            other_ports: OtherPorts::Free,
        };
        let by_ssh = self.ssh.iter().flat_map(|ssh| &ssh.hosts).map(of_ssh);
        limited.map(of_host).chain(by_ssh).collect()
    }

    /// Returns the authority that certifies these hosts inside.
    #[must_use]
    pub fn authority(&self) -> &Authority {
        &self.authority
    }

    /// Returns all placeholders, also earlier ones.
    #[must_use]
    pub fn placeholders(&self) -> &Placeholders {
        &self.placeholders
    }

    /// Returns the credentials that were read.
    #[must_use]
    pub fn loaded(&self) -> &Loaded {
        &self.loaded
    }

    /// Returns how the gate speaks TLS to servers. Reads the certificates of the system the first time.
    pub fn upstream(&self) -> Result<Arc<ClientConfig>, String> {
        self.upstream.get_or_init(upstream_tls::configuration).clone()
    }
}

impl std::fmt::Debug for Broker {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("Broker").field("hosts", &self.hosts).finish_non_exhaustive()
    }
}

//! A client of registries: its connections, its credentials, and how it tells of its progress.

use std::sync::Arc;
use std::time::Duration;

use ureq::Agent;
use ureq::tls::{Certificate, RootCerts, TlsConfig};

use super::credentials::Credentials;
use super::reference::Reference;

/// Timeout of one exchange.
const PATIENCE: Duration = Duration::from_secs(300);
/// Timeout of connecting.
const CONNECTING: Duration = Duration::from_secs(20);
/// Timeout of the response headers. No server needs longer to start its answer.
const HEARING: Duration = Duration::from_secs(60);

/// A client of registries.
pub struct Registry {
    /// The agent for registries on this machine, which may use plain HTTP.
    local: Agent,
    /// The agent for all other registries. It uses HTTPS only, also after redirects.
    remote: Agent,
    pub(super) credentials: Credentials,
    /// The registry that asked for authorization, and the header for it.
    pub(super) authorization: Option<(String, String)>,
    pub(super) tell: Box<dyn Fn(Transfer)>,
}

/// The progress of a transfer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Transfer {
    /// A request was sent, and no answer has arrived.
    Asking,
    /// A part of the content has arrived.
    Getting {
        /// Bytes received.
        done: u64,
        /// Bytes in total.
        all: u64,
    },
    /// The content is being sent.
    Sending {
        /// Bytes in total.
        all: u64,
    },
    /// The transfer has ended, with or without success.
    Over,
}

impl std::fmt::Debug for Registry {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("Registry").field("credentials", &self.credentials).finish_non_exhaustive()
    }
}

impl Registry {
    /// Creates a client with the certificates of the system, or of SSL_CERT_FILE.
    #[must_use]
    pub fn new(credentials: Credentials) -> Self {
        let found = portcullis_certificates::of_this_machine();
        let roots: Vec<Certificate<'static>> =
            found.iter().map(|one| Certificate::from_der(one.as_ref()).to_owned()).collect();
        let tls = TlsConfig::builder()
            .root_certs(RootCerts::new_with_certs(&roots))
            .unversioned_rustls_crypto_provider(Arc::new(rustls::crypto::ring::default_provider()))
            .build();
        let agent = |tls_only: bool| -> Agent {
            Agent::config_builder()
                .http_status_as_error(false)
                .https_only(tls_only)
                .max_redirects(5)
                .timeout_global(Some(PATIENCE))
                .timeout_connect(Some(CONNECTING))
                .timeout_recv_response(Some(HEARING))
                .user_agent(concat!("portcullis/", env!("CARGO_PKG_VERSION")))
                .tls_config(tls.clone())
                .build()
                .into()
        };
        let (local, remote) = (agent(false), agent(true));
        Self { local, remote, credentials, authorization: None, tell: Box::new(|_| {}) }
    }

    /// Sets a callback for the progress of transfers.
    #[must_use]
    pub fn watched(mut self, tell: impl Fn(Transfer) + 'static) -> Self {
        self.tell = Box::new(tell);
        self
    }

    pub(super) fn agent(&self, of: &Reference) -> &Agent {
        if of.is_local() { &self.local } else { &self.remote }
    }
}

//! TLS to the user's own proxy.

use std::io;
use std::os::fd::OwnedFd;
use std::sync::{Arc, OnceLock};

use portcullis_decision::request::Endpoint;
use rustls::pki_types::ServerName;
use rustls::{ClientConfig, RootCertStore};
use tokio::net::{TcpStream, UnixStream};
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

/// The certificates of this machine's authorities do not change while a session runs.
static CONFIG: OnceLock<Arc<ClientConfig>> = OnceLock::new();

/// Begins TLS with a proxy, whose certificate must be for `host` and from an authority of this machine.
pub(super) async fn secure(proxy: TcpStream, host: &Endpoint) -> io::Result<TlsStream<TcpStream>> {
    let name = match host {
        Endpoint::Domain(name) => ServerName::try_from(name.clone()).map_err(io::Error::other)?,
        Endpoint::Address(address) => ServerName::from(*address),
    };
    let config = tokio::task::spawn_blocking(config).await.map_err(io::Error::other)??;
    let secured = TlsConnector::from(config).connect(name, proxy).await;
    secured.map_err(|error| io::Error::other(format!("TLS with the proxy in `parentProxy` failed: {error}")))
}

/// Returns a socket whose bytes a task carries to and from the proxy: the relay needs a socket of the system.
pub(super) fn carry(mut secured: TlsStream<TcpStream>) -> io::Result<TcpStream> {
    let (ours, theirs) = std::os::unix::net::UnixStream::pair()?;
    ours.set_nonblocking(true)?;
    theirs.set_nonblocking(true)?;
    let mut theirs = UnixStream::from_std(theirs)?;
    // The relay only reads, writes and closes, which is the same for both kinds of sockets.
    let ours = TcpStream::from_std(std::net::TcpStream::from(OwnedFd::from(ours)))?;
    tokio::spawn(async move {
        // An error ends the connection: both sockets are dropped.
        let _ended = tokio::io::copy_bidirectional(&mut theirs, &mut secured).await;
    });
    Ok(ours)
}

fn config() -> io::Result<Arc<ClientConfig>> {
    if let Some(known) = CONFIG.get() {
        return Ok(Arc::clone(known));
    }
    let mut roots = RootCertStore::empty();
    let (added, _unusable) = roots.add_parsable_certificates(portcullis_certificates::of_this_machine());
    if added == 0 {
        return Err(io::Error::other(
            "this machine has no certificates of authorities, or `SSL_CERT_FILE` none",
        ));
    }
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let builder = ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions();
    let config = builder.map_err(io::Error::other)?.with_root_certificates(roots).with_no_client_auth();
    Ok(Arc::clone(CONFIG.get_or_init(|| Arc::new(config))))
}

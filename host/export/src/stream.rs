//! Batches over TCP and TLS, one connection for each.
//!
//! Syslog has no answers. So this end closes its direction after the batch and waits until the collector closes the
//! other: it has then read everything. A collector that stops before resets the connection instead.

use std::io::{ErrorKind, Read as _, Write as _};
use std::net::{Shutdown, TcpStream, ToSocketAddrs as _};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, ClientConnection, RootCertStore, StreamOwned};

use crate::answer::SendError;

/// How long connecting may take.
const CONNECTING: Duration = Duration::from_secs(10);
/// How long the collector may take for a part of a batch, and for closing the connection.
const PATIENCE: Duration = Duration::from_secs(30);

/// A collector that takes batches over a stream.
#[derive(Debug)]
pub(crate) struct Stream {
    host: String,
    port: u16,
    security: Security,
}

/// Whether a stream is encrypted.
#[derive(Debug)]
pub(crate) enum Security {
    None,
    Tls(Arc<ClientConfig>, ServerName<'static>),
}

impl Security {
    pub(crate) fn tls(host: &str, ca: Option<&Path>) -> Result<Self, SendError> {
        let name = ServerName::try_from(host.to_owned())
            .map_err(|_| SendError::not_sent(format!("`{host}` is no name of a server")))?;
        let mut roots = RootCertStore::empty();
        roots.add_parsable_certificates(certificates(ca).map_err(SendError::not_sent)?);
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let config = ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .map_err(|error| SendError::not_sent(format!("preparing TLS: {error}")))?
            .with_root_certificates(roots)
            .with_no_client_auth();
        Ok(Self::Tls(Arc::new(config), name))
    }
}

impl Stream {
    pub(crate) fn new(host: &str, port: u16, security: Security) -> Self {
        Self { host: host.to_owned(), port, security }
    }

    /// Sends the bytes of a batch, and returns when the collector has read them.
    pub(crate) fn send(&self, bytes: &[u8]) -> Result<(), SendError> {
        let stream =
            self.connect().map_err(|error| SendError::not_sent(self.reason("connecting to", &error)))?;
        match &self.security {
            Security::None => self.send_plain(stream, bytes),
            Security::Tls(config, name) => self.send_encrypted(stream, (config, name), bytes),
        }
    }

    fn connect(&self) -> std::io::Result<TcpStream> {
        let mut last = std::io::Error::from(ErrorKind::NotFound);
        for address in (self.host.as_str(), self.port).to_socket_addrs()? {
            match TcpStream::connect_timeout(&address, CONNECTING) {
                Ok(stream) => {
                    stream.set_read_timeout(Some(PATIENCE))?;
                    stream.set_write_timeout(Some(PATIENCE))?;
                    return Ok(stream);
                }
                Err(error) => last = error,
            }
        }
        Err(last)
    }

    fn send_plain(&self, mut stream: TcpStream, bytes: &[u8]) -> Result<(), SendError> {
        let sent = stream.write_all(bytes).and_then(|()| stream.shutdown(Shutdown::Write));
        sent.and_then(|()| wait_for_end(&mut stream)).map_err(|error| self.unclear(&error))
    }

    fn send_encrypted(
        &self,
        mut stream: TcpStream,
        (config, name): (&Arc<ClientConfig>, &ServerName<'static>),
        bytes: &[u8],
    ) -> Result<(), SendError> {
        let mut connection = ClientConnection::new(Arc::clone(config), name.clone())
            .map_err(|error| SendError::not_sent(format!("preparing TLS: {error}")))?;
        while connection.is_handshaking() {
            connection
                .complete_io(&mut stream)
                .map_err(|error| SendError::not_sent(self.reason("beginning TLS with", &error)))?;
        }
        let mut encrypted = StreamOwned::new(connection, stream);
        let sent = encrypted.write_all(bytes).and_then(|()| {
            encrypted.conn.send_close_notify();
            encrypted.flush()?;
            encrypted.sock.shutdown(Shutdown::Write)
        });
        sent.and_then(|()| wait_for_end(&mut encrypted.sock)).map_err(|error| self.unclear(&error))
    }

    fn unclear(&self, error: &std::io::Error) -> SendError {
        SendError::unclear(self.reason("sending to", error))
    }

    fn reason(&self, doing: &str, error: &std::io::Error) -> String {
        let is_silent = matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut);
        let what = if is_silent { "it does not answer".to_owned() } else { error.to_string() };
        format!("{doing} `{}:{}`: {what}", self.host, self.port)
    }
}

/// Reads until the other end closes the connection. What it says meanwhile has no meaning.
fn wait_for_end(stream: &mut TcpStream) -> std::io::Result<()> {
    /// More than any farewell of TLS.
    const MOST: usize = 1 << 20;
    let mut buffer = [0; 4096];
    let mut count = 0_usize;
    while count < MOST {
        match stream.read(&mut buffer) {
            Ok(0) => return Ok(()),
            Ok(read) => count = count.saturating_add(read),
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Err(std::io::Error::other("it sends data instead of closing the connection"))
}

/// Returns the certificates that servers are trusted by: those of a file, or those of the system.
pub(crate) fn certificates(ca: Option<&Path>) -> Result<Vec<CertificateDer<'static>>, String> {
    let Some(path) = ca else { return Ok(portcullis_certificates::of_this_machine()) };
    let failed = |error: rustls::pki_types::pem::Error| format!("reading `{}`: {error}", path.display());
    let certificates = CertificateDer::pem_file_iter(path).map_err(failed)?;
    let certificates = certificates.collect::<Result<Vec<_>, _>>().map_err(failed)?;
    if certificates.is_empty() {
        return Err(format!("`{}` contains no certificate", path.display()));
    }
    Ok(certificates)
}

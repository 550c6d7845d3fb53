//! TLS with both sides of a connection to a brokered host.

use std::io::Cursor;
use std::sync::Arc;
use std::time::Duration;

use portcullis_decision::ConnectionRefusal;
use portcullis_decision::request::Endpoint;
use rustls::InvalidMessage;
use rustls::pki_types::ServerName;
use rustls::server::Acceptor;
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite};
use tokio::net::TcpStream;
use tokio::time::timeout;
use tokio_rustls::server::StartHandshake;
use tokio_rustls::{LazyConfigAcceptor, TlsConnector, client, server};

use super::declared::Declared;
use super::version::{HttpVersion, Offer};
use crate::judge::Ending;

/// How long each half of a handshake may take.
const HANDSHAKE: Duration = Duration::from_secs(15);
/// What the program inside has to do after most failed TLS handshakes; completes "the program has to".
const TRUST: &str = "trust the certificates in SSL_CERT_FILE";
/// The same if the program offers no version or algorithm of TLS that the gate supports.
const MODERN: &str = "use TLS 1.2 or 1.3";

/// The client's bytes, those that it has sent already first.
pub(super) trait Bytestream: AsyncRead + AsyncWrite + Send + Sync + Unpin {}
impl<T: AsyncRead + AsyncWrite + Send + Sync + Unpin> Bytestream for T {}

pub(super) type ClientTls = server::TlsStream<Box<dyn Bytestream>>;
pub(super) type ServerTls = client::TlsStream<TcpStream>;

/// The hello of a client, which has no answer yet.
pub(super) struct Hello(StartHandshake<Box<dyn Bytestream>>);

impl Hello {
    /// Reads the hello of a client.
    pub(super) async fn read(
        declared: &Declared,
        client: TcpStream,
        beginning: Vec<u8>,
    ) -> Result<Self, Ending> {
        let client: Box<dyn Bytestream> = match beginning.is_empty() {
            true => Box::new(client),
            false => {
                let (reads, writes) = client.into_split();
                Box::new(tokio::io::join(Cursor::new(beginning).chain(reads), writes))
            }
        };
        match timeout(HANDSHAKE, LazyConfigAcceptor::new(Acceptor::default(), client)).await {
            Ok(Ok(hello)) => Ok(Self(hello)),
            Ok(Err(error)) => {
                let cause = error.get_ref().and_then(|cause| cause.downcast_ref::<rustls::Error>());
                match cause {
                    Some(rustls::Error::InvalidMessage(InvalidMessage::InvalidContentType)) => {
                        Err(refused(declared, "it does not speak TLS", "use `https://`"))
                    }
                    _ => Err(refused(declared, &error.to_string(), remedy(cause))),
                }
            }
            Err(_) => Err(refused(declared, "it took too long", TRUST)),
        }
    }

    /// Returns the server that the client names; empty if it names none.
    pub(super) fn server_name(&self) -> String {
        self.0.client_hello().server_name().unwrap_or_default().to_owned()
    }

    /// Returns the versions of HTTP that the client offers.
    pub(super) fn offer(&self) -> Offer {
        Offer::new(self.0.client_hello().alpn())
    }

    /// Ends the client's TLS as the brokered host, with this version of HTTP.
    pub(super) async fn accept(self, declared: &Declared, version: HttpVersion) -> Result<ClientTls, Ending> {
        let unusable = |why: String| Ending::Unreachable(why);
        let (broker, name) = (Arc::clone(&declared.broker), declared.host.host.clone());
        let made = tokio::task::spawn_blocking(move || broker.authority().server(&name)).await;
        let configuration = made.map_err(|error| unusable(error.to_string()))?;
        let configuration =
            configuration.map_err(|error| unusable(format!("making a certificate: {error}")))?;
        let mut configuration = (*configuration).clone();
        configuration.alpn_protocols = version.protocols().iter().map(|name| name.to_vec()).collect();
        match timeout(HANDSHAKE, self.0.into_stream(Arc::new(configuration))).await {
            Ok(Ok(accepted)) => Ok(accepted),
            Ok(Err(error)) => {
                let cause = error.get_ref().and_then(|cause| cause.downcast_ref::<rustls::Error>());
                Err(refused(declared, &error.to_string(), remedy(cause)))
            }
            Err(_) => Err(refused(declared, "it took too long", TRUST)),
        }
    }
}

/// Returns what the user should change in the program inside, so that its next TLS handshake with the gate succeeds.
fn remedy(cause: Option<&rustls::Error>) -> &'static str {
    match cause {
        Some(rustls::Error::PeerIncompatible(_)) => MODERN,
        _ => TRUST,
    }
}

/// Returns the refusal of a client with which there is no TLS.
pub(super) fn refused(declared: &Declared, why: &str, remedy: &str) -> Ending {
    let reason = format!(
        "the settings have the requests to `{}` checked, and TLS with the program failed: {why}; the program \
         has to {remedy}, or the host has to be taken out of `credentials.brokered`, `network.requests` and \
         `network.pushes`",
        declared.host.host
    );
    Ending::Refused(ConnectionRefusal::by_host("host.brokered-tls", reason))
}

/// Speaks TLS to a server, with the usual verification, and returns the version of HTTP that it has chosen.
pub(super) async fn connect(
    Declared { broker, host }: &Declared,
    server: TcpStream,
) -> Result<(ServerTls, HttpVersion), String> {
    let broker = Arc::clone(broker);
    let configuration = tokio::task::spawn_blocking(move || broker.upstream()).await;
    let configuration = configuration.map_err(|error| error.to_string())??;
    let name = match &host.host {
        Endpoint::Domain(name) => {
            ServerName::try_from(name.clone()).map_err(|error| format!("its name: {error}"))?
        }
        Endpoint::Address(address) => ServerName::from(*address),
    };
    let host = &host.host;
    match timeout(HANDSHAKE, TlsConnector::from(configuration).connect(name, server)).await {
        Ok(Ok(connected)) => {
            let version = HttpVersion::agreed(connected.get_ref().1.alpn_protocol());
            Ok((connected, version))
        }
        Ok(Err(error)) => Err(format!("TLS with `{host}` failed: {error}")),
        Err(_) => Err(format!("`{host}` does not answer")),
    }
}

//! TLS with both sides of a connection to a brokered host.

use std::io::Cursor;
use std::sync::Arc;
use std::time::Duration;

use hyper::client::conn::http1::{Connection, SendRequest};
use hyper_util::rt::TokioIo;
use portcullis_decision::request::Endpoint;
use rustls::pki_types::ServerName;
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite};
use tokio::net::TcpStream;
use tokio::time::timeout;
use tokio_rustls::{TlsAcceptor, TlsConnector, client, server};

use super::declared::{Content, Declared};
use crate::judge::{ConnectionRefusal, Ending};

/// How long a handshake may take.
const HANDSHAKE: Duration = Duration::from_secs(15);

/// The client's bytes, those that it has sent already first.
pub(super) trait Bytestream: AsyncRead + AsyncWrite + Send + Sync + Unpin {}
impl<T: AsyncRead + AsyncWrite + Send + Sync + Unpin> Bytestream for T {}

pub(super) type ClientTls = server::TlsStream<Box<dyn Bytestream>>;
pub(super) type ServerTls = client::TlsStream<TcpStream>;

/// Ends a client's TLS as the brokered host.
pub(super) async fn accept(
    Declared { broker, host }: &Declared,
    client: TcpStream,
    beginning: Vec<u8>,
) -> Result<ClientTls, Ending> {
    let unusable = |why: String| Ending::Unreachable(why);
    let (broker, name) = (Arc::clone(broker), host.host.clone());
    let made = tokio::task::spawn_blocking(move || broker.authority().server(&name)).await;
    let configuration = made.map_err(|error| unusable(error.to_string()))?;
    let configuration = configuration.map_err(|error| unusable(format!("making a certificate: {error}")))?;
    let client: Box<dyn Bytestream> = match beginning.is_empty() {
        true => Box::new(client),
        false => {
            let (reads, writes) = client.into_split();
            Box::new(tokio::io::join(Cursor::new(beginning).chain(reads), writes))
        }
    };
    let accepting = timeout(HANDSHAKE, TlsAcceptor::from(configuration).accept(client)).await;
    let refused = |why: &str, remedy: &str| {
        let reason = format!(
            "the settings have the requests to `{}` checked, and TLS with the program failed: {why}; the program \
             has to {remedy}, or the host has to be taken out of `credentials.brokered`, `network.requests` and \
             `network.pushes`",
            host.host
        );
        Ending::Refused(ConnectionRefusal::by_host("host.brokered-tls", reason))
    };
    const TRUST: &str = "trust the certificates in SSL_CERT_FILE";
    match accepting {
        Ok(Ok(accepted)) => Ok(accepted),
        Ok(Err(error)) if speaks_no_http1(&error) => {
            Err(refused("it offers HTTP/2 only", "speak HTTP/1.1, the version that the gate reads"))
        }
        Ok(Err(error)) => Err(refused(&error.to_string(), TRUST)),
        Err(_) => Err(refused("it took too long", TRUST)),
    }
}

/// Returns true if a client offers only protocols other than HTTP/1.1.
fn speaks_no_http1(error: &std::io::Error) -> bool {
    let inner = error.get_ref().and_then(|inner| inner.downcast_ref::<rustls::Error>());
    matches!(inner, Some(rustls::Error::NoApplicationProtocol))
}

/// Speaks TLS to a server, with the usual verification.
pub(super) async fn connect(
    Declared { broker, host }: &Declared,
    server: TcpStream,
) -> Result<(SendRequest<Content>, Connection<TokioIo<ServerTls>, Content>), String> {
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
    let connecting = timeout(HANDSHAKE, TlsConnector::from(configuration).connect(name, server)).await;
    let connected = match connecting {
        Ok(Ok(connected)) => connected,
        Ok(Err(error)) => return Err(format!("TLS with `{host}` failed: {error}")),
        Err(_) => return Err(format!("`{host}` does not answer")),
    };
    let builder = hyper::client::conn::http1::Builder::new().preserve_header_case(true).to_owned();
    builder.handshake(TokioIo::new(connected)).await.map_err(|error| format!("`{host}`: {error}"))
}

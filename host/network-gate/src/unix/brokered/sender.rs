//! The side of the server: sends requests in the version of HTTP that the server speaks.

use std::error::Error as _;
use std::sync::Arc;

use hyper::body::Incoming;
use hyper::client::conn::{http1, http2};
use hyper::rt::Executor as _;
use hyper::{Request, Response};
use hyper_util::rt::TokioIo;

use super::declared::Content;
use super::exchange::Exchange;
use super::handshakes::ServerTls;
use super::tasks::Tasks;
use super::version::{BUFFER, HttpVersion};

/// The data of one answer that is under way and not yet read, in bytes. The server's end of it is far away.
const STREAM_WINDOW: u32 = 512 * 1024;
/// The same for all answers of a connection, so that a few that are not read do not stop the others.
const CONNECTION_WINDOW: u32 = 8 << 20;
/// The data of one request that waits to be sent, in bytes.
const SEND_BUFFER: usize = 64 * 1024;
/// The longest head of an answer, in bytes. Servers send longer ones than clients.
const HEAD_MAX: u32 = 64 * 1024;

/// Sends the requests of a connection.
pub(super) enum Sender {
    /// One request at a time.
    One(tokio::sync::Mutex<http1::SendRequest<Content>>),
    Two(http2::SendRequest<Content>),
}

/// Why a request has no answer.
pub(super) enum Unsent {
    /// The server has not taken it, so it can be made again on another connection.
    NotTaken(String),
    Failed(String),
}

impl Sender {
    /// Begins HTTP with a server. What it needs runs in `tasks`; its end closes the connection of the client.
    pub(super) async fn begin(
        exchange: &Arc<Exchange>,
        (server, version): (ServerTls, HttpVersion),
        tasks: &Tasks,
    ) -> Result<Self, hyper::Error> {
        let server = TokioIo::new(server);
        let closing = Arc::clone(exchange);
        match version {
            HttpVersion::One => {
                let builder =
                    http1::Builder::new().preserve_header_case(true).max_buf_size(BUFFER).to_owned();
                let (sender, connection) = builder.handshake(server).await?;
                tasks.execute(async move {
                    let _ended = connection.await;
                    closing.outcome.closing.notify_one();
                });
                Ok(Self::One(tokio::sync::Mutex::new(sender)))
            }
            HttpVersion::Two => {
                let builder = http2::Builder::new(tasks.clone())
                    .initial_stream_window_size(STREAM_WINDOW)
                    .initial_connection_window_size(CONNECTION_WINDOW)
                    .max_send_buf_size(SEND_BUFFER)
                    .max_header_list_size(HEAD_MAX)
                    .to_owned();
                let (sender, connection) = builder.handshake(server).await?;
                tasks.execute(async move {
                    let _ended = connection.await;
                    closing.outcome.closing.notify_one();
                });
                Ok(Self::Two(sender))
            }
        }
    }

    /// Returns the version that the server speaks.
    pub(super) fn version(&self) -> HttpVersion {
        match self {
            Self::One(_) => HttpVersion::One,
            Self::Two(_) => HttpVersion::Two,
        }
    }

    /// Sends a request, and returns the head of the answer as soon as it comes.
    pub(super) async fn send(&self, request: Request<Content>) -> Result<Response<Incoming>, Unsent> {
        let not_taken = |error: hyper::Error| Unsent::NotTaken(error.to_string());
        let sent = match self {
            Self::One(sender) => {
                let mut sender = sender.lock().await;
                sender.ready().await.map_err(not_taken)?;
                sender.try_send_request(request).await
            }
            Self::Two(sender) => {
                let mut sender = sender.clone();
                sender.ready().await.map_err(not_taken)?;
                sender.try_send_request(request).await
            }
        };
        sent.map_err(|mut error| {
            // The library gives back what it has not begun to send.
            let is_unsent = error.take_message().is_some() || is_not_taken(error.error());
            let error = error.into_error();
            if is_unsent { not_taken(error) } else { Unsent::Failed(error.to_string()) }
        })
    }
}

/// Returns true if a server of HTTP/2 says that it has not looked at a request (RFC 9113 8.7).
fn is_not_taken(error: &hyper::Error) -> bool {
    let reason = error.source().and_then(|source| source.downcast_ref::<h2::Error>());
    reason.is_some_and(|error| {
        let is_refused = error.reason() == Some(h2::Reason::REFUSED_STREAM);
        let is_leaving = error.is_go_away() && error.reason() == Some(h2::Reason::NO_ERROR);
        error.is_remote() && (is_refused || is_leaving)
    })
}

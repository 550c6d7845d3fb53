//! The side of the client: serves its requests in the version of HTTP that it speaks.

use std::convert::Infallible;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use hyper::Request;
use hyper::body::Incoming;
use hyper::server::conn::{http1, http2};
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use portcullis_decision::ConnectionRefusal;
use tokio::sync::{Semaphore, SemaphorePermit};
use tokio::time::timeout;

use super::broken::Unanswered;
use super::exchange::{Answer, Exchange};
use super::handshakes::{ClientTls, Hello, refused};
use super::sender::Sender;
use super::tasks::Tasks;
use super::version::{BUFFER, HttpVersion, Offer};
use super::watched::Watched;
use crate::judge::Ending;

/// One permit for each client that speaks HTTP/2, since one connection of it can hold some MiB of memory. Programs that
/// also speak HTTP/1.1 get that while none is free.
static CONNECTIONS: Semaphore = Semaphore::const_new(16);
/// One permit for each client that speaks HTTP/1.1. A connection holds up to half a MiB, if its answers are not read.
static SIMPLE_CONNECTIONS: Semaphore = Semaphore::const_new(256);
/// How long a program waits for a permit of the only version that it speaks.
const PATIENCE: Duration = Duration::from_secs(15);

/// The requests of a connection that are answered at the same time.
const STREAMS: u32 = 100;
/// The longest head of a request, in bytes, as HTTP/2 counts it.
const HEAD_MAX: u32 = 16 * 1024;
/// The data of one request that is under way and not yet read, in bytes. The client is near.
const STREAM_WINDOW: u32 = 64 * 1024;
/// The same for all requests of a connection: enough for each, or those that wait, for a place in memory or for a server
/// that takes one after the other, would stop the one that they wait for.
const CONNECTION_WINDOW: u32 = STREAMS * STREAM_WINDOW;
/// The data of one answer that waits for the client, in bytes.
const SEND_BUFFER: usize = 16 * 1024;
/// Requests that a client has withdrawn before the gate has seen them.
const WITHDRAWN_MAX: usize = 20;
/// Malformed requests of a connection, after which it ends.
const MALFORMED_MAX: usize = 32;
/// How long a client may take for the head of a request of HTTP/1.1, or send none on a connection.
const HEAD: Duration = Duration::from_secs(90);

/// A client with which there is TLS.
pub(super) enum Client {
    One(ClientTls, SemaphorePermit<'static>),
    Two(ClientTls, SemaphorePermit<'static>),
}

impl Client {
    /// Ends the TLS of a client whose server speaks this version.
    pub(super) async fn accept(
        exchange: &Exchange,
        hello: Hello,
        server: HttpVersion,
    ) -> Result<Self, Ending> {
        let declared = &exchange.declared;
        let offer = hello.offer();
        let Some(mut version) = offer.choose(server) else {
            let why = "it offers other versions of HTTP than 1.1 and 2";
            return Err(refused(declared, why, "speak HTTP/1.1 or HTTP/2"));
        };
        let permit = if version == HttpVersion::Two { permit(offer).await } else { None };
        if version == HttpVersion::Two && permit.is_none() {
            if !offer.one {
                let why = "too many connections speak HTTP/2";
                return Err(refused(declared, why, "end some of them, or speak HTTP/1.1"));
            }
            version = HttpVersion::One;
        }
        if let Some(permit) = permit {
            return Ok(Self::Two(hello.accept(declared, version).await?, permit));
        }
        let Ok(Ok(permit)) = timeout(PATIENCE, SIMPLE_CONNECTIONS.acquire()).await else {
            let why = "too many connections to such hosts are open";
            return Err(refused(declared, why, "close some of them"));
        };
        Ok(Self::One(hello.accept(declared, version).await?, permit))
    }

    /// Answers the client's requests with those of the server.
    pub(super) async fn serve(self, exchange: &Arc<Exchange>, sender: &Arc<Sender>, tasks: Tasks) {
        match self {
            Self::One(client, _permit) => {
                let service = |request: Request<Incoming>| {
                    let (exchange, sender) = (Arc::clone(exchange), Arc::clone(sender));
                    async move { Ok::<_, Infallible>(exchange.answer(request, &sender).await) }
                };
                serve_first(exchange, client, service).await;
            }
            Self::Two(client, _permit) => {
                let service = |request: Request<Incoming>| {
                    let (exchange, sender) = (Arc::clone(exchange), Arc::clone(sender));
                    async move { exchange.answer_stream(request, &sender).await }
                };
                serve_second(exchange, client, tasks, service).await;
            }
        }
    }

    /// Answers requests with the reason why the server cannot be reached.
    pub(super) async fn say_unreachable(self, exchange: &Arc<Exchange>, why: String, tasks: Tasks) {
        exchange.outcome.note(Ending::Unreachable(why.clone()));
        let answer = |version: HttpVersion| {
            let answer = exchange.without_answer(Unanswered::Unreachable(why.clone()), version);
            exchange.outcome.closing.notify_one();
            answer
        };
        match self {
            Self::One(client, _permit) => {
                let service = |_request: Request<Incoming>| {
                    let answer = answer(HttpVersion::One);
                    async move { Ok::<_, Infallible>(answer) }
                };
                serve_first(exchange, client, service).await;
            }
            Self::Two(client, _permit) => {
                let service = |_request: Request<Incoming>| {
                    let answer = answer(HttpVersion::Two);
                    async move { Ok::<_, h2::Error>(answer) }
                };
                serve_second(exchange, client, tasks, service).await;
            }
        }
    }
}

/// Returns a permit for HTTP/2; a program that speaks nothing else waits for one.
async fn permit(offer: Offer) -> Option<SemaphorePermit<'static>> {
    let patience = if offer.one { Duration::ZERO } else { PATIENCE };
    match CONNECTIONS.try_acquire() {
        Ok(permit) => Some(permit),
        Err(_) => timeout(patience, CONNECTIONS.acquire()).await.ok()?.ok(),
    }
}

/// Serves HTTP/1.1 until the connection has ended.
async fn serve_first<Answering>(
    exchange: &Exchange,
    client: ClientTls,
    service: impl Fn(Request<Incoming>) -> Answering,
) where
    Answering: Future<Output = Result<Answer, Infallible>>,
{
    let serving = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(HEAD)
        .max_buf_size(BUFFER)
        .preserve_header_case(true)
        .serve_connection(TokioIo::new(client), service_fn(service));
    let mut serving = pin!(serving);
    let served = tokio::select! {
        served = serving.as_mut() => served,
        () = exchange.outcome.closing.notified() => {
            // What the server has sent is still passed on.
            serving.as_mut().graceful_shutdown();
            serving.await
        }
    };
    // The library has answered such a request itself.
    let why = match served {
        Err(error) if error.is_parse_too_large() => {
            "its head is longer than 64 KiB, or has more than 100 headers"
        }
        Err(error) if error.is_parse() => "its head cannot be read as HTTP/1.1",
        Err(_) | Ok(()) => return,
    };
    exchange.outcome.note(Ending::Refused(ConnectionRefusal::by_host("host.malformed", why)));
}

/// Serves HTTP/2 until the connection has ended.
async fn serve_second<Answering>(
    exchange: &Arc<Exchange>,
    client: ClientTls,
    tasks: Tasks,
    service: impl Fn(Request<Incoming>) -> Answering,
) where
    Answering: Future<Output = Result<Answer, h2::Error>> + Send + 'static,
{
    let client = Watched::new(client, Arc::clone(exchange));
    let serving = http2::Builder::new(tasks)
        .timer(TokioTimer::new())
        .max_concurrent_streams(STREAMS)
        .max_header_list_size(HEAD_MAX)
        .initial_stream_window_size(STREAM_WINDOW)
        .initial_connection_window_size(CONNECTION_WINDOW)
        .max_send_buf_size(SEND_BUFFER)
        .max_pending_accept_reset_streams(WITHDRAWN_MAX)
        .max_local_error_reset_streams(MALFORMED_MAX)
        .serve_connection(TokioIo::new(client), service_fn(service));
    let mut serving = pin!(serving);
    let _broken = tokio::select! {
        served = serving.as_mut() => served,
        () = exchange.outcome.closing.notified() => {
            serving.as_mut().graceful_shutdown();
            serving.await
        }
    };
}

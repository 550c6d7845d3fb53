//! Carries the requests of one connection to a brokered host.
//!
//! The client's TLS ends here. Requests are parsed by `hyper`, judged, and written anew on a TLS connection to the
//! server, so that both sides agree on where a request ends. Redirects are answers like others: the gate follows none.

mod answering;
mod broken;
mod handshakes;
mod outgoing;

use std::convert::Infallible;
use std::pin::pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt as _, Full};
use hyper::body::{Bytes, Incoming};
use hyper::client::conn::http1::{Connection, SendRequest};
use hyper::header::{
    ACCEPT_ENCODING, CONNECTION, CONTENT_ENCODING, CONTENT_LENGTH, CONTENT_TYPE, HOST, HeaderValue, IF_RANGE,
    RANGE, TRANSFER_ENCODING,
};
use hyper::http::request::Parts;
use hyper::service::service_fn;
use hyper::{Request, Response, StatusCode};
use hyper_util::rt::TokioIo;
use portcullis_decision::request::{Endpoint, Stage};
use tokio::net::TcpStream;

use crate::broker::{
    Accepted, Broker, BrokeredHost, Destination, Placeholders, Secret, of_this_connection_only, origin_form,
};
use crate::judge::{ConnectionAttempt, ConnectionRefusal, Ending};
use crate::linux::budget::Spent;
use crate::linux::pump::Traffic;
use crate::linux::scope::{Scope, Wanted};

use answering::{Answering, mask_head};
use broken::{Broken, Unanswered};
use handshakes::{ClientTls, ServerTls};
use outgoing::{Outgoing, Sending, Waiting};

type Answer = Response<UnsyncBoxBody<Bytes, Broken>>;
type Sender = tokio::sync::Mutex<SendRequest<Outgoing>>;

/// One connection to a brokered host.
pub(crate) struct Exchange {
    pub(crate) scope: Arc<Scope>,
    pub(crate) attempt: ConnectionAttempt,
    /// The id of the request that allowed the connection.
    pub(crate) request: String,
    pub(crate) wanted: Wanted,
    pub(crate) broker: Arc<Broker>,
    pub(crate) host: BrokeredHost,
    pub(crate) spent: Arc<Spent>,
    pub(crate) traffic: Arc<Traffic>,
    /// The client's socket, to notice that the client has gone.
    pub(crate) client: TcpStream,
    /// How the connection ends, as far as it is known.
    pub(crate) ending: Mutex<Ending>,
}

/// Carries the requests of a client until both sides have ended.
pub(crate) async fn carry(
    exchange: Exchange,
    client: TcpStream,
    server: TcpStream,
    beginning: Vec<u8>,
) -> Ending {
    let exchange = Arc::new(exchange);
    match exchange.accept(client, beginning).await {
        Ok(client) => match handshakes::connect((&exchange.broker, &exchange.host), server).await {
            Ok((sender, connection)) => serve(&exchange, client, sender, connection).await,
            Err(why) => say_unreachable(&exchange, client, why).await,
        },
        Err(ending) => *exchange.ending() = ending,
    }
    exchange.ending().clone()
}

/// Answers the client's requests with those of the server.
async fn serve(
    exchange: &Arc<Exchange>,
    client: ClientTls,
    sender: SendRequest<Outgoing>,
    connection: Connection<TokioIo<ServerTls>, Outgoing>,
) {
    let sender: Arc<Sender> = Arc::new(tokio::sync::Mutex::new(sender));
    let service = service_fn(|request| {
        let (exchange, sender) = (Arc::clone(exchange), Arc::clone(&sender));
        async move { Ok::<_, Infallible>(exchange.answer(request, &sender).await) }
    });
    let mut towards_client = pin!(
        hyper::server::conn::http1::Builder::new()
            .preserve_header_case(true)
            .serve_connection(TokioIo::new(client), service)
    );
    let towards_server = pin!(connection);
    let _broken = tokio::select! {
        served = towards_client.as_mut() => served,
        _ended = towards_server => {
            // What the server has sent is still passed on.
            towards_client.as_mut().graceful_shutdown();
            towards_client.await
        }
    };
}

/// Answers the first request with the reason why the server cannot be reached.
async fn say_unreachable(exchange: &Arc<Exchange>, client: ClientTls, why: String) {
    let service = service_fn(|_request: Request<Incoming>| {
        let answer = exchange.without_answer(Unanswered::Unreachable(why.clone()));
        async move { Ok::<_, Infallible>(answer) }
    });
    let served = hyper::server::conn::http1::Builder::new().serve_connection(TokioIo::new(client), service);
    let _broken = served.await;
    *exchange.ending() = Ending::Unreachable(why);
}

impl Exchange {
    fn ending(&self) -> MutexGuard<'_, Ending> {
        self.ending.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Ends the client's TLS, and has the server name in it decided.
    async fn accept(&self, client: TcpStream, beginning: Vec<u8>) -> Result<ClientTls, Ending> {
        let accepted = handshakes::accept((&self.broker, &self.host), client, beginning).await?;
        self.clear_server_name(&accepted).await?;
        Ok(accepted)
    }

    /// Checks the name in the client's hello, and has it decided if a policy wants to.
    async fn clear_server_name(&self, accepted: &ClientTls) -> Result<(), Ending> {
        let name = accepted.get_ref().1.server_name().unwrap_or_default().to_owned();
        let is_this = match &self.host.host {
            Endpoint::Domain(host) => name.eq_ignore_ascii_case(host),
            Endpoint::Address(_) => name.is_empty(),
        };
        if !is_this {
            let reason = format!("TLS names another server than `{}`", self.host.host);
            return Err(Ending::Refused(ConnectionRefusal::by_host("host.other-server", reason)));
        }
        if !self.scope.judge.stages().client_hello {
            return Ok(());
        }
        self.clear(Stage::ClientHello(name), None).await.map_err(|unanswered| match unanswered {
            Unanswered::Refused(refusal) => Ending::Refused(refusal),
            Unanswered::Unreachable(why) => Ending::Unreachable(why),
            Unanswered::Abandoned => Ending::Closed,
        })
    }

    /// Has a later stage of the connection decided, with the name of the credential that is to be used.
    async fn clear(&self, stage: Stage, credential: Option<String>) -> Result<(), Unanswered> {
        let attempt = ConnectionAttempt { credential, ..self.attempt.clone() };
        let cleared = self.scope.clear_stage(&attempt, stage, &self.wanted, &self.client).await;
        cleared.map_err(|refusal| refusal.map_or(Unanswered::Abandoned, Unanswered::Refused))
    }

    /// Answers one request.
    async fn answer(self: &Arc<Self>, request: Request<Incoming>, sender: &Sender) -> Answer {
        match self.pass_on(request, sender).await {
            Ok(answer) => answer,
            Err(unanswered) => self.without_answer(unanswered),
        }
    }

    async fn pass_on(
        self: &Arc<Self>,
        request: Request<Incoming>,
        sender: &Sender,
    ) -> Result<Answer, Unanswered> {
        let (mut parts, body) = request.into_parts();
        let destination = Destination { host: &self.host, placeholders: self.broker.placeholders() };
        let accepted = destination.judge(&parts).map_err(Unanswered::Refused)?;
        let used = accepted.credential.as_ref().map(|used| used.credential.name.clone());
        self.clear(Stage::Http(accepted.head.clone()), used.clone()).await?;
        self.count(length_of(&parts)).await?;
        self.prepare(&mut parts, &accepted).await?;
        let body = Outgoing::new(body, Arc::clone(self) as Arc<dyn Sending>, accepted.body_max);
        let sent = sender.lock().await.send_request(Request::from_parts(parts, body)).await;
        let answer = sent.map_err(|error| {
            // A body that was refused ends the request.
            match self.ending().clone() {
                Ending::Refused(refusal) => Unanswered::Refused(refusal),
                Ending::Closed | Ending::Unreachable(_) => {
                    Unanswered::Unreachable(format!("`{}` gave no answer: {error}", self.host.host))
                }
            }
        })?;
        if let Some(name) = used.filter(|_| answer.status() == StatusCode::UNAUTHORIZED) {
            self.broker.loaded().refused(&name, Instant::now());
        }
        self.passed_back(answer)
    }

    /// Makes the head of a request that goes to the server, with the credential in it.
    async fn prepare(&self, parts: &mut Parts, accepted: &Accepted<'_>) -> Result<(), Unanswered> {
        of_this_connection_only(&mut parts.headers);
        parts.headers.remove(CONTENT_LENGTH);
        parts.uri = origin_form(accepted.target.clone());
        parts.version = hyper::Version::HTTP_11;
        let host = match (&self.host.host, self.host.port) {
            (Endpoint::Domain(name), 443) => name.clone(),
            (host, port) => host.with_port(port),
        };
        let host =
            HeaderValue::from_str(&host).map_err(|error| Unanswered::Unreachable(error.to_string()))?;
        parts.headers.insert(HOST, host);
        if self.host.credentials.is_empty() {
            return Ok(());
        }
        // The gate finds a credential in an answer only if it can read the whole of it.
        parts.headers.insert(ACCEPT_ENCODING, HeaderValue::from_static("identity"));
        parts.headers.remove(RANGE);
        parts.headers.remove(IF_RANGE);
        // All of them: the server can repeat one in the answer to a request without it, and that answer is masked too.
        for credential in &self.host.credentials {
            self.load(&credential.name).await?;
        }
        let Some(used) = &accepted.credential else { return Ok(()) };
        let name = &used.credential.name;
        self.record_use(name, accepted).await?;
        let secret = self.load(name).await?;
        used.fill(&secret, &mut parts.headers).map_err(|why| unusable(name, why))
    }

    /// Returns a credential, read from its source if need be.
    async fn load(&self, name: &str) -> Result<Arc<Secret>, Unanswered> {
        let (broker, wanted) = (Arc::clone(&self.broker), name.to_owned());
        let loaded = tokio::task::spawn_blocking(move || broker.loaded().secret(&wanted)).await;
        loaded.map_err(|error| unusable(name, &error.to_string()))?.map_err(|why| unusable(name, &why))
    }

    /// Has the use of a credential logged before the request is sent.
    async fn record_use(&self, name: &str, accepted: &Accepted<'_>) -> Result<(), Unanswered> {
        let (judge, request) = (Arc::clone(&self.scope.judge), self.request.clone());
        let (name, head) = (name.to_owned(), accepted.head.clone());
        let recorded = self.scope.shared.decider.ask(move || judge.credential_used(&request, &name, &head));
        recorded.await.ok_or_else(|| Unanswered::Refused(crate::linux::scope::closing()))
    }

    /// Returns the server's answer in the form in which it is passed on, without credentials in it.
    fn passed_back(self: &Arc<Self>, answer: Response<Incoming>) -> Result<Answer, Unanswered> {
        let (mut head, body) = answer.into_parts();
        if head.headers.contains_key(TRANSFER_ENCODING) {
            // Such a length does not count (RFC 9112 6.3), and must not reach a client that counts it.
            head.headers.remove(CONTENT_LENGTH);
        }
        if head.status == StatusCode::SWITCHING_PROTOCOLS {
            return Err(Unanswered::Unreachable(format!(
                "`{}` switched to another protocol without being asked",
                self.host.host
            )));
        }
        if self.host.credentials.is_empty() {
            of_this_connection_only(&mut head.headers);
            let body = Answering::new(body, None, Arc::clone(&self.traffic));
            return Ok(Response::from_parts(head, body.boxed_unsync()));
        }
        let is_plain = |encoding: &HeaderValue| {
            let is_one = |known: &[u8]| encoding.as_bytes().eq_ignore_ascii_case(known);
            is_one(b"identity") || is_one(b"")
        };
        let is_chunked = |encoding: &HeaderValue| encoding.as_bytes().eq_ignore_ascii_case(b"chunked");
        if !head.headers.get_all(CONTENT_ENCODING).iter().all(is_plain)
            || !head.headers.get_all(TRANSFER_ENCODING).iter().all(is_chunked)
        {
            let reason = format!(
                "`{}` answered compressed although it was asked not to, so the credential could not be found in it",
                self.host.host
            );
            return Err(Unanswered::Refused(ConnectionRefusal::by_host("host.unreadable-answer", reason)));
        }
        of_this_connection_only(&mut head.headers);
        let names = self.host.credentials.iter().map(|credential| credential.name.as_str());
        let masker = self.broker.loaded().masker(names);
        mask_head(&mut head, &masker);
        let body = Answering::new(body, Some(masker), Arc::clone(&self.traffic));
        Ok(Response::from_parts(head, body.boxed_unsync()))
    }

    /// Counts bytes, and has it decided whether there may be more of them than the budget allows.
    async fn count(&self, count: u64) -> Result<(), Unanswered> {
        self.traffic.sent.fetch_add(count, std::sync::atomic::Ordering::Relaxed);
        if self.spent.spend(count) {
            return Ok(());
        }
        let more = self.scope.clear_more(&self.attempt, &self.spent, &self.wanted, &self.client).await;
        more.map_err(|refusal| refusal.map_or(Unanswered::Abandoned, Unanswered::Refused))
    }

    /// Tells the client why there is no answer, and ends the connection.
    fn without_answer(&self, unanswered: Unanswered) -> Answer {
        let place = self.wanted.target.with_port(self.wanted.port);
        let (status, why, ending) = match unanswered {
            Unanswered::Refused(refusal) => {
                let why = format!("the request to {place} is denied: {}", refusal.text);
                (StatusCode::FORBIDDEN, why, Ending::Refused(refusal))
            }
            Unanswered::Unreachable(why) => (StatusCode::BAD_GATEWAY, why.clone(), Ending::Unreachable(why)),
            Unanswered::Abandoned => (StatusCode::BAD_GATEWAY, String::new(), Ending::Closed),
        };
        *self.ending() = ending;
        let body = Full::new(Bytes::from(format!("portcullis: {why}\n")));
        let mut answer = Response::new(body.map_err(|never| match never {}).boxed_unsync());
        *answer.status_mut() = status;
        let headers = answer.headers_mut();
        headers.insert(CONNECTION, HeaderValue::from_static("close"));
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("text/plain; charset=utf-8"));
        headers.insert("x-portcullis", HeaderValue::from_static("refused"));
        answer
    }
}

impl Sending for Exchange {
    fn placeholders(&self) -> &Placeholders {
        self.broker.placeholders()
    }

    fn spend(self: Arc<Self>, count: u64) -> Waiting {
        Box::pin(async move { self.count(count).await })
    }

    fn refused(&self, refusal: ConnectionRefusal) {
        *self.ending() = Ending::Refused(refusal);
    }
}

fn unusable(name: &str, why: &str) -> Unanswered {
    Unanswered::Unreachable(format!(
        "the credential `{name}` cannot be used: {why}; `portcullis credentials test {name}` tries it"
    ))
}

/// Returns about how long the head of a request is.
fn length_of(parts: &Parts) -> u64 {
    let of_headers: usize =
        parts.headers.iter().map(|(name, value)| name.as_str().len() + value.len() + 4).sum();
    let of_target = parts.uri.path_and_query().map_or(1, |target| target.as_str().len());
    u64::try_from(of_headers + of_target + parts.method.as_str().len() + 13).unwrap_or(u64::MAX)
}

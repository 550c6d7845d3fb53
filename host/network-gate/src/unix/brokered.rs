//! Carries the requests of one connection to a brokered host.
//!
//! The client's TLS ends here. Requests are parsed by `hyper`, judged, and written anew on a TLS connection to the
//! server, so that both sides agree on where a request ends. Redirects are answers like others: the gate follows none.

mod answering;
mod answers;
mod broken;
mod clearing;
mod declared;
mod handshakes;
mod outgoing;
mod requests;
mod signed;

use std::convert::Infallible;
use std::pin::pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use hyper::body::Incoming;
use hyper::client::conn::http1::{Connection, SendRequest};
use hyper::service::service_fn;
use hyper::{Request, Response};
use hyper_util::rt::TokioIo;
use portcullis_decision::request::{Endpoint, Stage};
use tokio::net::TcpStream;

use crate::judge::{ConnectionAttempt, ConnectionRefusal, Ending};
use crate::unix::budget::Spent;
use crate::unix::pump::Traffic;
use crate::unix::scope::{Scope, Wanted};

use broken::Unanswered;
use declared::Content;
pub(crate) use declared::Declared;

use handshakes::{ClientTls, ServerTls};

type Answer = Response<Content>;
type Sender = tokio::sync::Mutex<SendRequest<Content>>;

/// One connection to a brokered host.
pub(crate) struct Exchange {
    pub(crate) scope: Arc<Scope>,
    pub(crate) attempt: ConnectionAttempt,
    /// The id of the request that allowed the connection.
    pub(crate) request: String,
    pub(crate) wanted: Wanted,
    /// What the settings had when the connection began.
    pub(crate) declared: Declared,
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
        Ok(client) => match handshakes::connect(&exchange.declared, server).await {
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
    sender: SendRequest<Content>,
    connection: Connection<TokioIo<ServerTls>, Content>,
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
        let accepted = handshakes::accept(&self.declared, client, beginning).await?;
        self.clear_server_name(&accepted).await?;
        Ok(accepted)
    }

    /// Checks the name in the client's hello, and has it decided if a policy wants to.
    async fn clear_server_name(&self, accepted: &ClientTls) -> Result<(), Ending> {
        let name = accepted.get_ref().1.server_name().unwrap_or_default().to_owned();
        let is_this = match &self.declared.host.host {
            Endpoint::Domain(host) => name.eq_ignore_ascii_case(host),
            Endpoint::Address(_) => name.is_empty(),
        };
        if !is_this {
            let reason = format!("TLS names another server than `{}`", self.declared.host.host);
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
}

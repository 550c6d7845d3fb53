//! The requests of a brokered connection on their way to the server.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use http_body_util::{BodyExt as _, Full};
use hyper::body::{Body as _, Bytes, Incoming};
use hyper::header::{ACCEPT_CHARSET, ACCEPT_ENCODING, CONTENT_LENGTH, HOST, HeaderValue, TE};
use hyper::http::request::Parts;
use hyper::http::uri::Scheme;
use hyper::{Request, StatusCode, Uri};
use portcullis_decision::request::{Endpoint, Stage};

use super::broken::Unanswered;
use super::declared::{Content, Declared};
use super::outgoing::{Outgoing, Sending, Waiting};
use super::refusals::Kind;
use super::sender::{Sender, Unsent};
use super::version::HttpVersion;
use super::{Answer, Exchange};
use crate::broker::{
    Accepted, BrokeredHost, Destination, Follows, Push, Secret, in_first_version, of_this_connection_only,
    origin_form,
};
use crate::judge::{ConnectionRefusal, Ending};
use crate::unix::push_slots::{PUSHES, TooSlow};

/// Headers that ask for a part of an answer (some servers take those beyond the standard as well), or for one with
/// compressed messages.
const ASK_FOR_OTHER_FORMS: [&str; 7] = [
    "connect-accept-encoding",
    "grpc-accept-encoding",
    "if-range",
    "range",
    "request-range",
    "x-ms-range",
    "x-range",
];

impl Exchange {
    /// Answers one request.
    pub(super) async fn answer(self: &Arc<Self>, request: Request<Incoming>, sender: &Sender) -> Answer {
        let kind = Kind::of(request.headers());
        match self.pass_on(request, HttpVersion::One, sender).await {
            Ok(answer) => answer,
            Err(unanswered) => self.unanswered(unanswered, kind, HttpVersion::One),
        }
    }

    /// Answers one request of HTTP/2. The error is for requests that nobody has looked at: the client can make them
    /// again on another connection.
    pub(super) async fn answer_stream(
        self: &Arc<Self>,
        request: Request<Incoming>,
        sender: &Sender,
    ) -> Result<Answer, h2::Error> {
        if self.outcome.is_refused() {
            // A refused request ends the connection, as it does in HTTP/1.1.
            return Err(h2::Reason::REFUSED_STREAM.into());
        }
        let kind = Kind::of(request.headers());
        match self.pass_on(request, HttpVersion::Two, sender).await {
            Ok(answer) => Ok(answer),
            Err(Unanswered::NotTaken(_)) => {
                self.outcome.closing.notify_one();
                Err(h2::Reason::REFUSED_STREAM.into())
            }
            Err(unanswered) => Ok(self.unanswered(unanswered, kind, HttpVersion::Two)),
        }
    }

    async fn pass_on(
        self: &Arc<Self>,
        request: Request<Incoming>,
        client: HttpVersion,
        sender: &Sender,
    ) -> Result<Answer, Unanswered> {
        let (mut parts, body) = request.into_parts();
        let declared = self.declared().map_err(Unanswered::Refused)?;
        let placeholders = declared.broker.placeholders();
        let follows = if body.is_end_stream() { Follows::Nothing } else { Follows::Content };
        in_first_version(&mut parts, follows).map_err(Unanswered::Refused)?;
        let destination = Destination { host: &declared.host, placeholders };
        let accepted = destination.judge(&parts).map_err(Unanswered::Refused)?;
        let used = accepted.credential.as_ref().map(|used| used.credential.name.clone());
        self.clear(Stage::Http(accepted.head.clone()), used.clone()).await?;
        self.count(length_of(&parts)).await?;
        self.prepare(&declared, &mut parts, &accepted).await?;
        address(&mut parts, &declared.host, &accepted, sender.version())?;
        let sending = Arc::new(Carried { exchange: Arc::clone(self), refusal: Mutex::default() });
        let body = match accepted.push {
            Some(push) => self.judged(push, body, accepted.body_max).await?,
            None => {
                let (sending, broker) = (Arc::clone(&sending), Arc::clone(&declared.broker));
                Outgoing::new(body, sending, broker, accepted.body_max).boxed_unsync()
            }
        };
        let sent = sender.send(Request::from_parts(parts, body)).await;
        let answer = sent.map_err(|unsent| {
            // A body that was refused ends the request.
            if let Some(refusal) = sending.refusal() {
                return Unanswered::Stopped(refusal);
            }
            let host = &declared.host.host;
            match unsent {
                Unsent::NotTaken(why) => Unanswered::NotTaken(format!("`{host}` gave no answer: {why}")),
                Unsent::Failed(why) => Unanswered::Unreachable(format!("`{host}` gave no answer: {why}")),
            }
        })?;
        if let Some(name) = used.filter(|_| answer.status() == StatusCode::UNAUTHORIZED) {
            declared.broker.loaded().refused(&name, Instant::now());
        }
        self.passed_back(&declared, answer, client)
    }

    /// Reads the body of a push as a whole, and has it judged.
    async fn judged(
        &self,
        push: Push,
        mut body: Incoming,
        body_max: Option<u64>,
    ) -> Result<Content, Unanswered> {
        let refused = |why: String| Unanswered::Refused(ConnectionRefusal::by_host("host.push-rule", why));
        let place = PUSHES.take().await.map_err(|error| Unanswered::Unreachable(error.to_string()))?;
        let most = push.bytes_max().min(body_max.unwrap_or(u64::MAX));
        let mut whole = Vec::new();
        loop {
            let read = place.read(whole.len(), body.frame()).await;
            let Some(frame) = read.map_err(|TooSlow| refused(TooSlow::WHY.to_owned()))? else { break };
            let frame = frame.map_err(|error| Unanswered::Unreachable(error.to_string()))?;
            let Ok(piece) = frame.into_data() else { continue };
            whole.extend_from_slice(&piece);
            if u64::try_from(whole.len()).map_or(true, |length| length > most) {
                let reason =
                    format!("the push is not sent: it is larger than the {most} bytes that its rule allows");
                return Err(refused(reason));
            }
            self.count(u64::try_from(piece.len()).unwrap_or(u64::MAX)).await?;
        }
        let judging = tokio::task::spawn_blocking(move || push.judge(&whole).map(|()| whole)).await;
        let whole = judging.map_err(|error| Unanswered::Unreachable(error.to_string()))?;
        let whole = Full::new(Bytes::from(whole.map_err(Unanswered::Refused)?));
        Ok(whole.map_err(|never| match never {}).boxed_unsync())
    }

    /// Returns what the settings now have about the host: they can change while a connection is open.
    fn declared(&self) -> Result<Declared, ConnectionRefusal> {
        let broker = self.scope.judge.broker()?;
        let declared = broker.and_then(|broker| {
            let host = Arc::clone(broker.host(&self.wanted.target, self.wanted.port)?);
            Some(Declared { broker, host })
        });
        declared.ok_or_else(|| {
            let reason = "the settings have changed and no longer have this host; connect again";
            ConnectionRefusal::by_host("host.settings-changed", reason)
        })
    }

    /// Makes the headers of a request that goes to the server, with the credential in them.
    async fn prepare(
        &self,
        declared: &Declared,
        parts: &mut Parts,
        accepted: &Accepted<'_>,
    ) -> Result<(), Unanswered> {
        of_this_connection_only(&mut parts.headers);
        parts.headers.remove(CONTENT_LENGTH);
        if declared.host.credentials.is_empty() {
            return Ok(());
        }
        // The gate finds a credential in an answer only if it can read the whole of it.
        parts.headers.insert(ACCEPT_ENCODING, HeaderValue::from_static("identity"));
        parts.headers.remove(ACCEPT_CHARSET);
        for name in ASK_FOR_OTHER_FORMS {
            parts.headers.remove(name);
        }
        // All of them: the server can repeat one in the answer to a request without it, and that answer is masked too.
        for credential in &declared.host.credentials {
            declared.load(&credential.name).await?;
        }
        let Some(used) = &accepted.credential else { return Ok(()) };
        let name = &used.credential.name;
        self.record_use(name, accepted).await?;
        let secret = declared.load(name).await?;
        used.fill(&secret, &mut parts.headers).map_err(|why| unusable(name, why))
    }

    /// Has the use of a credential logged before the request is sent.
    async fn record_use(&self, name: &str, accepted: &Accepted<'_>) -> Result<(), Unanswered> {
        let (judge, request) = (Arc::clone(&self.scope.judge), self.request.clone());
        let (name, head) = (name.to_owned(), accepted.head.clone());
        let recorded = self.scope.shared.decider.ask(move || judge.credential_used(&request, &name, &head));
        recorded.await.ok_or_else(|| Unanswered::Refused(crate::unix::scope::closing()))
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
}

impl Declared {
    /// Returns a credential, read from its source if need be.
    async fn load(&self, name: &str) -> Result<Arc<Secret>, Unanswered> {
        let loaded = self.broker.loaded();
        if let Some(known) = loaded.known(name) {
            return Ok(known);
        }
        let reading = Arc::clone(&loaded.reading).lock_owned().await;
        let (broker, wanted) = (Arc::clone(&self.broker), name.to_owned());
        let read = tokio::task::spawn_blocking(move || {
            let secret = broker.loaded().secret(&wanted);
            // Held until here also if the client withdraws its request.
            drop(reading);
            secret
        });
        read.await.map_err(|error| unusable(name, &error.to_string()))?.map_err(|why| unusable(name, &why))
    }
}

/// One request, while its body is sent.
struct Carried {
    exchange: Arc<Exchange>,
    refusal: Mutex<Option<ConnectionRefusal>>,
}

impl Carried {
    /// Returns why the body was refused.
    fn refusal(&self) -> Option<ConnectionRefusal> {
        self.refusal.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

impl Sending for Carried {
    fn spend(self: Arc<Self>, count: u64) -> Waiting {
        Box::pin(async move { self.exchange.count(count).await })
    }

    fn refused(&self, refusal: ConnectionRefusal) {
        self.exchange.outcome.note(Ending::Refused(refusal.clone()));
        *self.refusal.lock().unwrap_or_else(PoisonError::into_inner) = Some(refusal);
    }
}

/// Addresses a request to the server, in the version that the server speaks.
fn address(
    parts: &mut Parts,
    host: &BrokeredHost,
    accepted: &Accepted<'_>,
    server: HttpVersion,
) -> Result<(), Unanswered> {
    let name = match (&host.host, host.port) {
        (Endpoint::Domain(name), 443) => name.clone(),
        (host, port) => host.with_port(port),
    };
    let unusable = |error: &dyn std::fmt::Display| Unanswered::Unreachable(error.to_string());
    match server {
        HttpVersion::One => {
            parts.version = hyper::Version::HTTP_11;
            parts.uri = origin_form(accepted.target.clone());
            let name = HeaderValue::from_str(&name).map_err(|error| unusable(&error))?;
            parts.headers.insert(HOST, name);
        }
        HttpVersion::Two => {
            parts.version = hyper::Version::HTTP_2;
            let uri = Uri::builder().scheme(Scheme::HTTPS).authority(name);
            let uri = uri.path_and_query(accepted.target.clone()).build();
            parts.uri = uri.map_err(|error| unusable(&error))?;
            parts.headers.remove(HOST);
            if accepted.takes_trailers {
                parts.headers.insert(TE, HeaderValue::from_static("trailers"));
            }
        }
    }
    Ok(())
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

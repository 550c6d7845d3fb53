//! The requests of a brokered connection on their way to the server.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use http_body_util::{BodyExt as _, Full};
use hyper::Request;
use hyper::body::{Body as _, Incoming};
use hyper::header::{ACCEPT_CHARSET, ACCEPT_ENCODING, CONTENT_LENGTH, HeaderValue};
use hyper::http::request::Parts;
use portcullis_credential_broker::{
    Accepted, Destination, Follows, Push, Secret, in_first_version, of_this_connection_only,
};
use portcullis_decision::ConnectionRefusal;

use super::addressing::address;
use super::broken::Unanswered;
use super::clearing::UseLogged;
use super::declared::{Content, Declared};
use super::exchange::{Answer, Exchange};
use super::outgoing::{Outgoing, Sending, Waiting};
use super::refusals::Kind;
use super::sender::{Sender, Unsent};
use super::version::HttpVersion;
use crate::judge::Ending;
use crate::unix::push_slots::{PUSHES, TooSlow};

/// Headers that ask for a part of an answer (some servers take those beyond the standard as well), or for one with
/// compressed messages.
const ASK_FOR_OTHER_FORMS: [&str; 13] = [
    "a-im",
    "connect-accept-encoding",
    "grpc-accept-encoding",
    "if-range",
    "range",
    "request-range",
    "x-amz-range",
    "x-cos-range",
    "x-goog-range",
    "x-ms-range",
    "x-obs-range",
    "x-oss-range",
    "x-range",
];

impl Exchange {
    /// Answers one request.
    pub(super) async fn answer(self: &Arc<Self>, request: Request<Incoming>, sender: &Sender) -> Answer {
        let kind = Kind::of(request.headers());
        let (parts, body) = request.into_parts();
        match self.pass_on(parts, &mut Some(body), HttpVersion::One, sender).await {
            Ok(answer) => answer,
            Err(unanswered) => self.unanswered(unanswered, kind, HttpVersion::One),
        }
    }

    /// Judges a request and sends it on. A body that is left has not been read.
    pub(super) async fn pass_on(
        self: &Arc<Self>,
        mut parts: Parts,
        body: &mut Option<Incoming>,
        client: HttpVersion,
        sender: &Sender,
    ) -> Result<Answer, Unanswered> {
        let declared = self.declared().map_err(Unanswered::Refused)?;
        let placeholders = declared.broker.placeholders();
        let has_ended = body.as_ref().is_none_or(|body| body.is_end_stream());
        let follows = if has_ended { Follows::Nothing } else { Follows::Content };
        in_first_version(&mut parts, follows).map_err(Unanswered::Refused)?;
        let destination = Destination { host: &declared.host, placeholders };
        let accepted = destination.judge(&parts).map_err(Unanswered::Refused)?;
        let used = accepted.credential.as_ref().map(|used| used.credential.name.clone());
        let logged = self.clear_request(&declared, &accepted, length_of(&parts)).await?;
        let signed = self.verified(&declared, &accepted, (&parts, body)).await?;
        self.prepare(&declared, &mut parts, &accepted, logged).await?;
        address(&mut parts, &declared.host, &accepted, sender.version())?;
        // The signature covers the host, which `address` writes.
        signed.sign(&declared, &accepted, &mut parts).await?;
        let is_outdated =
            |status| accepted.credential.as_ref().is_some_and(|used| used.may_be_refused_with(status));
        let sending = Arc::new(Carried { exchange: Arc::clone(self), refusal: Mutex::default() });
        let body = match (accepted.push, signed.body, body.take()) {
            (Some(push), _, Some(body)) => self.judged(push, body, accepted.body_max).await?,
            (_, Some(whole), _) => Full::new(whole).map_err(|never| match never {}).boxed_unsync(),
            (_, None, None) => Full::default().map_err(|never| match never {}).boxed_unsync(),
            (None, None, Some(body)) => {
                let sending = Arc::clone(&sending) as Arc<dyn Sending>;
                let broker = Arc::clone(&declared.broker);
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
        if let Some(name) = used.filter(|_| is_outdated(answer.status())) {
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
            self.count_piece(u64::try_from(piece.len()).unwrap_or(u64::MAX)).await?;
        }
        // A client that leaves does not end the judgement, so the place is kept until then.
        let judging =
            tokio::task::spawn_blocking(move || push.judge(&whole).map(|()| place.hold(whole))).await;
        let whole = judging.map_err(|error| Unanswered::Unreachable(error.to_string()))?;
        let whole = Full::new(whole.map_err(Unanswered::Refused)?);
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
        logged: UseLogged,
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
        if logged == UseLogged::No {
            self.record_use(name, accepted).await?;
        }
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

    /// Counts a piece of a body that was read.
    pub(super) async fn count_piece(&self, length: u64) -> Result<(), Unanswered> {
        // Empty ones were not counted when they came.
        if length > 0 {
            self.unread.read();
        }
        self.count(length).await
    }

    /// Counts bytes, and has it decided whether there may be more of them than the budget allows.
    pub(super) async fn count(&self, count: u64) -> Result<(), Unanswered> {
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
    pub(super) async fn load(&self, name: &str) -> Result<Arc<Secret>, Unanswered> {
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
        Box::pin(async move { self.exchange.count_piece(count).await })
    }

    fn refused(&self, refusal: ConnectionRefusal) {
        self.exchange.outcome.note(Ending::Refused(refusal.clone()));
        *self.refusal.lock().unwrap_or_else(PoisonError::into_inner) = Some(refusal);
    }
}

pub(super) fn unusable(name: &str, why: &str) -> Unanswered {
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

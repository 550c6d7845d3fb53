//! The requests of a brokered connection on their way to the server.

use std::sync::Arc;
use std::time::Instant;

use http_body_util::{BodyExt as _, Full};
use hyper::Request;
use hyper::body::{Bytes, Incoming};
use hyper::header::{ACCEPT, ACCEPT_CHARSET, ACCEPT_ENCODING, CONTENT_LENGTH, HOST, HeaderValue};
use hyper::http::request::Parts;
use portcullis_decision::request::Endpoint;

use super::answers::PUSH_RESULT;
use super::broken::Unanswered;
use super::clearing::UseLogged;
use super::declared::{Content, Declared};
use super::outgoing::{Outgoing, Sending, Waiting};
use super::{Answer, Exchange, Sender};
use crate::broker::{Accepted, Destination, Push, Secret, of_this_connection_only, origin_form};
use crate::judge::{ConnectionRefusal, Ending};
use crate::unix::push_slots::PUSHES;

/// Headers that ask for a part of an answer. Some servers take those beyond the standard as well.
const ASK_FOR_PARTS: [&str; 5] = ["if-range", "range", "request-range", "x-ms-range", "x-range"];

impl Exchange {
    /// Answers one request.
    pub(super) async fn answer(self: &Arc<Self>, request: Request<Incoming>, sender: &Sender) -> Answer {
        let is_of_git = request.headers().get(ACCEPT).is_some_and(|kinds| kinds == PUSH_RESULT);
        match self.pass_on(request, sender).await {
            Ok(answer) => answer,
            Err(Unanswered::Refused(refusal)) if is_of_git => self.push_refused(refusal),
            Err(unanswered) => self.without_answer(unanswered),
        }
    }

    async fn pass_on(
        self: &Arc<Self>,
        request: Request<Incoming>,
        sender: &Sender,
    ) -> Result<Answer, Unanswered> {
        let (mut parts, mut body) = request.into_parts();
        let declared = self.declared().map_err(Unanswered::Refused)?;
        let placeholders = declared.broker.placeholders();
        let destination = Destination { host: &declared.host, placeholders };
        let accepted = destination.judge(&parts).map_err(Unanswered::Refused)?;
        let used = accepted.credential.as_ref().map(|used| used.credential.name.clone());
        let logged = self.clear_request(&declared, &accepted, length_of(&parts)).await?;
        let signed = self.verified(&declared, &accepted, (&parts, &mut body)).await?;
        self.prepare(&declared, &mut parts, &accepted, logged).await?;
        signed.sign(&declared, &accepted, &mut parts).await?;
        let is_outdated =
            |status| accepted.credential.as_ref().is_some_and(|used| used.may_be_refused_with(status));
        let body = match (accepted.push, signed.body) {
            (Some(push), _) => self.judged(push, body, accepted.body_max).await?,
            (None, Some(whole)) => Full::new(whole).map_err(|never| match never {}).boxed_unsync(),
            (None, None) => {
                let sending = Arc::clone(self) as Arc<dyn Sending>;
                let broker = Arc::clone(&declared.broker);
                Outgoing::new(body, sending, broker, accepted.body_max).boxed_unsync()
            }
        };
        let mut sender = sender.lock().await;
        let is_ready = sender.ready().await;
        let sent = match is_ready {
            Ok(()) => sender.send_request(Request::from_parts(parts, body)).await,
            Err(error) => Err(error),
        };
        drop(sender);
        let answer = sent.map_err(|error| {
            // A body that was refused ends the request.
            match self.ending().clone() {
                Ending::Refused(refusal) => Unanswered::Refused(refusal),
                Ending::Closed | Ending::Unreachable(_) => {
                    Unanswered::Unreachable(format!("`{}` gave no answer: {error}", declared.host.host))
                }
            }
        })?;
        if let Some(name) = used.filter(|_| is_outdated(answer.status())) {
            declared.broker.loaded().refused(&name, Instant::now());
        }
        self.passed_back(&declared, answer)
    }

    /// Reads the body of a push as a whole, and has it judged.
    async fn judged(
        &self,
        push: Push,
        mut body: Incoming,
        body_max: Option<u64>,
    ) -> Result<Content, Unanswered> {
        let _permit = PUSHES.acquire().await.map_err(|error| Unanswered::Unreachable(error.to_string()))?;
        let most = push.bytes_max().min(body_max.unwrap_or(u64::MAX));
        let mut whole = Vec::new();
        while let Some(frame) = body.frame().await {
            let frame = frame.map_err(|error| Unanswered::Unreachable(error.to_string()))?;
            let Ok(piece) = frame.into_data() else { continue };
            whole.extend_from_slice(&piece);
            if u64::try_from(whole.len()).map_or(true, |length| length > most) {
                let reason =
                    format!("the push is not sent: it is larger than the {most} bytes that its rule allows");
                return Err(Unanswered::Refused(ConnectionRefusal::by_host("host.push-rule", reason)));
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

    /// Makes the head of a request that goes to the server, with the credential in it.
    async fn prepare(
        &self,
        declared: &Declared,
        parts: &mut Parts,
        accepted: &Accepted<'_>,
        logged: UseLogged,
    ) -> Result<(), Unanswered> {
        of_this_connection_only(&mut parts.headers);
        parts.headers.remove(CONTENT_LENGTH);
        parts.uri = origin_form(accepted.target.clone());
        parts.version = hyper::Version::HTTP_11;
        let host = match (&declared.host.host, declared.host.port) {
            (Endpoint::Domain(name), 443) => name.clone(),
            (host, port) => host.with_port(port),
        };
        let host =
            HeaderValue::from_str(&host).map_err(|error| Unanswered::Unreachable(error.to_string()))?;
        parts.headers.insert(HOST, host);
        if declared.host.credentials.is_empty() {
            return Ok(());
        }
        // The gate finds a credential in an answer only if it can read the whole of it.
        parts.headers.insert(ACCEPT_ENCODING, HeaderValue::from_static("identity"));
        parts.headers.remove(ACCEPT_CHARSET);
        for name in ASK_FOR_PARTS {
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
        if let Some(known) = self.broker.loaded().known(name) {
            return Ok(known);
        }
        let (broker, wanted) = (Arc::clone(&self.broker), name.to_owned());
        let loaded = tokio::task::spawn_blocking(move || broker.loaded().secret(&wanted)).await;
        loaded.map_err(|error| unusable(name, &error.to_string()))?.map_err(|why| unusable(name, &why))
    }
}

impl Sending for Exchange {
    fn spend(self: Arc<Self>, count: u64) -> Waiting {
        Box::pin(async move { self.count(count).await })
    }

    fn refused(&self, refusal: ConnectionRefusal) {
        *self.ending() = Ending::Refused(refusal);
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

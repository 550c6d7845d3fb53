//! Requests that commands have signed: their signature is checked before the gate makes one of its own.

use http_body_util::BodyExt as _;
use hyper::body::{Bytes, Incoming};
use hyper::http::request::Parts;
use portcullis_credential_broker::{Accepted, GRAPHQL_MAX, Verified};
use portcullis_decision::ConnectionRefusal;
use tokio::sync::Semaphore;

use super::broken::Unanswered;
use super::declared::Declared;
use super::exchange::Exchange;
use super::requests::unusable;
use crate::unix::push_slots::BODIES;

/// The longest body that is read to be signed, in bytes. Services that want that take no longer ones, but for uploads,
/// and clients state the hash of those.
const SIGNED_BODY_MAX: usize = 8 << 20;

/// One permit for each document of GraphQL that is judged. Its tokens can take tens of MiB.
static JUDGED: Semaphore = Semaphore::const_new(2);

/// Why a body is refused that came too slowly.
const TOO_SLOW: &str =
    "the body of the request comes too slowly to be judged as a whole, and others wait for its place";

/// What was found out about the signature of a request.
#[derive(Default)]
pub(super) struct CheckedSignature {
    /// The signature, if the request has one.
    verified: Option<Verified>,
    /// The body, if it was read for that.
    pub(super) body: Option<Bytes>,
}

impl CheckedSignature {
    /// Signs a request in the form in which it is sent.
    pub(super) async fn sign(
        &self,
        declared: &Declared,
        accepted: &Accepted<'_>,
        parts: &mut Parts,
    ) -> Result<(), Unanswered> {
        let Some(used) = accepted.credential.as_ref().filter(|used| used.signs()) else { return Ok(()) };
        let name = &used.credential.name;
        let secret = declared.load(name).await?;
        used.sign(&secret, parts, self.verified.as_ref()).map_err(|why| unusable(name, why))
    }
}

impl Exchange {
    /// Checks the signature of a request and the GraphQL in it, and reads its body if need be.
    pub(super) async fn verified(
        &self,
        declared: &Declared,
        accepted: &Accepted<'_>,
        (parts, body): (&Parts, &mut Option<Incoming>),
    ) -> Result<CheckedSignature, Unanswered> {
        let used = accepted.credential.as_ref();
        let is_signed = used.is_some_and(|used| used.needs_body());
        let is_judged = (is_signed || accepted.operations.is_some()) && accepted.push.is_none();
        let body = match body.as_mut().filter(|_| is_judged) {
            Some(body) => Some(self.whole(declared, accepted, body).await?),
            None => None,
        };
        if let Some(operations) = &accepted.operations {
            let (operations, body) = (operations.clone(), body.clone().unwrap_or_default());
            // A long document takes milliseconds, in which other connections go on, and tens of MiB.
            let place = JUDGED.acquire().await.map_err(|error| Unanswered::Unreachable(error.to_string()))?;
            let judging = tokio::task::spawn_blocking(move || {
                // A client that leaves does not end the judgement, so the place is kept until then.
                let _place = place;
                operations.judge(&body)
            });
            let judged = judging.await.map_err(|error| Unanswered::Unreachable(error.to_string()))?;
            judged.map_err(Unanswered::Refused)?;
        }
        let Some(used) = used else { return Ok(CheckedSignature { verified: None, body }) };
        let verified = used.verify(parts, body.as_deref()).map_err(Unanswered::Refused)?;
        Ok(CheckedSignature { verified, body })
    }

    /// Reads a body as a whole. It is searched and counted like others.
    async fn whole(
        &self,
        declared: &Declared,
        accepted: &Accepted<'_>,
        body: &mut Incoming,
    ) -> Result<Bytes, Unanswered> {
        let refused = |rule, reason: &str| Err(Unanswered::Refused(ConnectionRefusal::by_host(rule, reason)));
        let most = accepted.body_max.and_then(|most| usize::try_from(most).ok()).unwrap_or(usize::MAX);
        let place = BODIES.take().await.map_err(|error| Unanswered::Unreachable(error.to_string()))?;
        let mut whole = Vec::new();
        loop {
            let Ok(read) = place.read(whole.len(), body.frame()).await else {
                return refused("host.malformed", TOO_SLOW);
            };
            let Some(frame) = read else { break };
            let frame = frame.map_err(|error| Unanswered::Unreachable(error.to_string()))?;
            let Ok(piece) = frame.into_data() else { continue };
            whole.extend_from_slice(&piece);
            if whole.len() > most {
                let reason = "the body of the request is larger than `network.requests` allows";
                return refused("host.request-rule", reason);
            }
            if accepted.operations.is_some() && whole.len() > GRAPHQL_MAX {
                return refused(
                    "host.request-rule",
                    "its GraphQL cannot be judged: the body is longer than 1 MiB",
                );
            }
            if whole.len() > SIGNED_BODY_MAX {
                let reason = "the request does not state the hash of its body, which is too large to be read for that; \
                              have the client send `x-amz-content-sha256`";
                return refused("host.credential-signature", reason);
            }
            self.count_piece(u64::try_from(piece.len()).unwrap_or(u64::MAX)).await?;
        }
        if let Some(what) = declared.broker.placeholders().found_in(&whole) {
            let reason =
                format!("{what} stands in the body of the request, where the settings do not have it");
            return refused("host.placeholder", &reason);
        }
        Ok(place.hold(whole))
    }
}

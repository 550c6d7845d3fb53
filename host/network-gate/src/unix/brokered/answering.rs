//! An answer on its way to the client.

use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::task::{Context, Poll, ready};

use hyper::body::{Body, Bytes, Frame, Incoming, SizeHint};
use hyper::header::{HeaderMap, HeaderValue};
use hyper::http::response;
use portcullis_credential_broker::{Masker, Opening, of_this_connection_only};
use portcullis_decision::ConnectionRefusal;

use super::broken::Broken;
use super::exchange::Exchange;
use super::version::HttpVersion;
use crate::judge::Ending;
use crate::unix::pump::Traffic;

/// A body in which credentials are masked. Its length does not change.
pub(super) struct Answering {
    body: Incoming,
    masker: Masker,
    /// The first bytes, if they are looked at, and the connection that ends if they cannot be read.
    opening: Option<(Opening, Arc<Exchange>)>,
    traffic: Arc<Traffic>,
    /// How many bytes the server has sent more than were passed on.
    held: u64,
    /// Whether the server's trailers are passed on. Those of HTTP/1.1 are not: no tool needs them.
    client: HttpVersion,
    trailers: Option<HeaderMap>,
    has_ended: bool,
    /// Why the answer broke off; reported after the bytes that came before.
    broken: Option<Broken>,
}

impl Answering {
    pub(super) fn new(body: Incoming, masker: Masker, traffic: Arc<Traffic>, client: HttpVersion) -> Self {
        let has_ended = body.is_end_stream();
        let broken = None;
        Self { body, masker, opening: None, traffic, held: 0, client, trailers: None, has_ended, broken }
    }

    /// Ends the answer if its first bytes show characters in which no credential could be found.
    pub(super) fn refusing_wide(self, opening: Opening, exchange: &Arc<Exchange>) -> Self {
        Self { opening: Some((opening, Arc::clone(exchange))), ..self }
    }

    /// Looks at a piece of the answer, and returns an error if it shows such characters.
    fn look_at(&mut self, piece: &[u8]) -> Result<(), Broken> {
        let Some((opening, exchange)) = &mut self.opening else { return Ok(()) };
        if !opening.is_wide_after(piece) {
            return Ok(());
        }
        let reason = format!(
            "`{}` answered with a text in UTF-16, UTF-32 or EBCDIC, so the credential could not be found in it",
            exchange.declared.host.host
        );
        let refusal = ConnectionRefusal::by_host("host.unreadable-answer", reason);
        exchange.outcome.note(Ending::Refused(refusal.clone()));
        Err(Broken(refusal.reason))
    }

    /// Keeps the trailers of an answer until its body has been passed on.
    fn keep(&mut self, mut trailers: HeaderMap) {
        of_this_connection_only(&mut trailers);
        if self.client == HttpVersion::Two {
            self.trailers = Some(masked(&trailers, &self.masker));
        }
    }
}

impl Body for Answering {
    type Data = Bytes;
    type Error = Broken;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Broken>>> {
        loop {
            if self.has_ended {
                self.held = 0;
                let rest = self.masker.finish();
                if !rest.is_empty() {
                    return Poll::Ready(Some(Ok(Frame::data(Bytes::from(rest)))));
                }
                if let Some(broken) = self.broken.take() {
                    return Poll::Ready(Some(Err(broken)));
                }
                return Poll::Ready(self.trailers.take().map(|trailers| Ok(Frame::trailers(trailers))));
            }
            match ready!(Pin::new(&mut self.body).poll_frame(context)) {
                None => self.has_ended = true,
                Some(Err(error)) => {
                    (self.has_ended, self.broken) = (true, Some(Broken(error.to_string())));
                }
                Some(Ok(frame)) => {
                    let piece = match frame.into_data() {
                        Ok(piece) => piece,
                        Err(frame) => {
                            frame.into_trailers().into_iter().for_each(|trailers| self.keep(trailers));
                            self.has_ended = true;
                            continue;
                        }
                    };
                    if let Err(broken) = self.look_at(&piece) {
                        return Poll::Ready(Some(Err(broken)));
                    }
                    let count = length(&piece);
                    self.traffic.received.fetch_add(count, Ordering::Relaxed);
                    let passed = self.masker.push(&piece);
                    self.held = (self.held + count).saturating_sub(length(&passed));
                    if !passed.is_empty() {
                        return Poll::Ready(Some(Ok(Frame::data(Bytes::from(passed)))));
                    }
                }
            }
        }
    }

    fn is_end_stream(&self) -> bool {
        self.held == 0 && self.trailers.is_none() && self.broken.is_none() && self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        let inner = self.body.size_hint();
        let mut hint = SizeHint::new();
        if let Some(upper) = inner.upper() {
            hint.set_upper(upper.saturating_add(self.held));
        }
        hint.set_lower(inner.lower().saturating_add(self.held).min(hint.upper().unwrap_or(u64::MAX)));
        hint
    }
}

fn length(bytes: &[u8]) -> u64 {
    u64::try_from(bytes.len()).unwrap_or(u64::MAX)
}

/// Masks credentials in the head of an answer.
pub(super) fn mask_head(head: &mut response::Parts, masker: &Masker) {
    head.extensions.remove::<hyper::ext::ReasonPhrase>();
    head.headers = masked(&head.headers, masker);
}

fn masked(headers: &HeaderMap, masker: &Masker) -> HeaderMap {
    let mut masked = HeaderMap::with_capacity(headers.len());
    for (name, value) in headers {
        let mut bytes = value.as_bytes().to_vec();
        let mut name_bytes = name.as_str().as_bytes().to_vec();
        if masker.mask(&mut name_bytes) {
            continue;
        }
        match masker.mask(&mut bytes).then(|| HeaderValue::from_bytes(&bytes)) {
            Some(Ok(value)) => masked.append(name.clone(), value),
            Some(Err(_)) => continue,
            None => masked.append(name.clone(), value.clone()),
        };
    }
    masked
}

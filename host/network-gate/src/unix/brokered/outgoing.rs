//! The body of a request on its way to the server.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use hyper::body::{Body, Bytes, Frame, Incoming, SizeHint};
use hyper::header::{HeaderMap, HeaderName, HeaderValue};
use portcullis_credential_broker::{Broker, Finder};
use portcullis_decision::ConnectionRefusal;

use super::broken::{Broken, Unanswered};

/// A piece's wait for the budget.
pub(super) type Waiting = Pin<Box<dyn Future<Output = Result<(), Unanswered>> + Send>>;

/// The connection that a body is sent on.
pub(super) trait Sending: Send + Sync {
    /// Counts bytes, and waits until they are within the budget.
    fn spend(self: Arc<Self>, count: u64) -> Waiting;

    /// Notes that the body is refused.
    fn refused(&self, refusal: ConnectionRefusal);
}

/// A body whose bytes are searched and counted before they are sent.
pub(crate) struct Outgoing {
    body: Incoming,
    sending: Arc<dyn Sending>,
    /// Knows what the body is searched for.
    broker: Arc<Broker>,
    finder: Finder,
    /// How many bytes it may still have.
    left: Option<u64>,
    /// A piece that waits for the budget.
    waiting: Option<(Bytes, Waiting)>,
}

impl Outgoing {
    pub(super) fn new(
        body: Incoming,
        sending: Arc<dyn Sending>,
        broker: Arc<Broker>,
        most: Option<u64>,
    ) -> Self {
        Self { body, sending, broker, finder: Finder::default(), left: most, waiting: None }
    }

    /// Refuses a piece that may not be sent.
    fn check(&mut self, piece: &Bytes) -> Result<(), ConnectionRefusal> {
        if let Some(what) = self.finder.find(self.broker.placeholders(), piece) {
            let reason =
                format!("{what} stands in the body of the request, where the settings do not have it");
            return Err(ConnectionRefusal::by_host("host.placeholder", reason));
        }
        let Some(left) = self.left else { return Ok(()) };
        let count = u64::try_from(piece.len()).unwrap_or(u64::MAX);
        let Some(left) = left.checked_sub(count) else {
            let reason = "the body of the request is larger than `network.requests` allows";
            return Err(ConnectionRefusal::by_host("host.request-rule", reason));
        };
        self.left = Some(left);
        Ok(())
    }

    /// Refuses trailers with a placeholder, which shows that a program sends credentials where they do not belong.
    fn check_trailers(&self, trailers: &HeaderMap) -> Option<ConnectionRefusal> {
        let placeholders = self.broker.placeholders();
        let found = |(name, value): (&HeaderName, &HeaderValue)| {
            placeholders
                .found_in(name.as_str().as_bytes())
                .or_else(|| placeholders.found_in(value.as_bytes()))
        };
        let what = trailers.iter().find_map(found)?;
        let reason =
            format!("{what} stands in the trailers of the request, where the settings do not have it");
        Some(ConnectionRefusal::by_host("host.placeholder", reason))
    }

    fn refused(&self, refusal: ConnectionRefusal) -> Broken {
        let why = refusal.text.clone();
        self.sending.refused(refusal);
        Broken(why)
    }
}

impl Body for Outgoing {
    type Data = Bytes;
    type Error = Broken;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Broken>>> {
        loop {
            if let Some((piece, mut waiting)) = self.waiting.take() {
                return match waiting.as_mut().poll(context) {
                    Poll::Pending => {
                        self.waiting = Some((piece, waiting));
                        Poll::Pending
                    }
                    Poll::Ready(Ok(())) => Poll::Ready(Some(Ok(Frame::data(piece)))),
                    Poll::Ready(Err(Unanswered::Refused(refusal) | Unanswered::Stopped(refusal))) => {
                        Poll::Ready(Some(Err(self.refused(refusal))))
                    }
                    Poll::Ready(Err(Unanswered::Unreachable(why) | Unanswered::NotTaken(why))) => {
                        Poll::Ready(Some(Err(Broken(why))))
                    }
                    Poll::Ready(Err(Unanswered::Abandoned)) => {
                        Poll::Ready(Some(Err(Broken("the client has gone".to_owned()))))
                    }
                };
            }
            let piece = match ready!(Pin::new(&mut self.body).poll_frame(context)) {
                None => return Poll::Ready(None),
                Some(Err(error)) => return Poll::Ready(Some(Err(Broken(error.to_string())))),
                // Trailers are not passed on: no tool needs them, and servers differ in what they take from them.
                Some(Ok(frame)) => match frame.into_data() {
                    Ok(piece) => piece,
                    Err(frame) => {
                        match frame.into_trailers().ok().and_then(|found| self.check_trailers(&found)) {
                            Some(refusal) => return Poll::Ready(Some(Err(self.refused(refusal)))),
                            None => continue,
                        }
                    }
                },
            };
            if let Err(refusal) = self.check(&piece) {
                return Poll::Ready(Some(Err(self.refused(refusal))));
            }
            let sending = Arc::clone(&self.sending);
            let count = u64::try_from(piece.len()).unwrap_or(u64::MAX);
            self.waiting = Some((piece, sending.spend(count)));
        }
    }

    fn is_end_stream(&self) -> bool {
        self.waiting.is_none() && self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

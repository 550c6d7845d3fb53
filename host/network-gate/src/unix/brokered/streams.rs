//! The requests of a client that speaks HTTP/2.

use std::sync::Arc;
use std::time::Duration;

use http_body_util::{BodyExt as _, Full};
use hyper::body::Incoming;
use hyper::{Method, Request};
use tokio::time::timeout;

use super::broken::Unanswered;
use super::exchange::{Answer, Exchange};
use super::refusals::Kind;
use super::sender::Sender;
use super::version::HttpVersion;

/// How much of the body of a refused request is read, and for how long.
const LEFT_MAX: usize = 64 * 1024;
const LEFT_WAIT: Duration = Duration::from_secs(1);

impl Exchange {
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
        let is_head = request.method() == Method::HEAD;
        let (parts, body) = request.into_parts();
        let mut body = Some(body);
        let unanswered = match self.pass_on(parts, &mut body, HttpVersion::Two, sender).await {
            Ok(answer) => return Ok(answer),
            // The connection ends when that to the server has ended. With both at once, clients do not try again.
            Err(Unanswered::NotTaken(_)) => return Err(h2::Reason::REFUSED_STREAM.into()),
            Err(unanswered) => unanswered,
        };
        if let Some(left) = body {
            self.read_rest(left).await;
        }
        let mut answer = self.unanswered(unanswered, kind, HttpVersion::Two);
        if is_head {
            // The library takes the body away in HTTP/1.1 only.
            *answer.body_mut() = Full::default().map_err(|never| match never {}).boxed_unsync();
        }
        Ok(answer)
    }

    /// Reads a body that is not sent on. Otherwise its stream would be reset, and clients that still send it do not read
    /// the answer (curl).
    async fn read_rest(&self, mut body: Incoming) {
        let reading = async {
            let mut length = 0;
            while let Some(Ok(frame)) = body.frame().await {
                let Some(piece) = frame.data_ref().filter(|piece| !piece.is_empty()) else { continue };
                self.unread.read();
                length += piece.len();
                if length > LEFT_MAX {
                    break;
                }
            }
        };
        let _too_slow = timeout(LEFT_WAIT, reading).await;
    }
}

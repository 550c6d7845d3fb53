//! The answers to the requests of a brokered connection.

use http_body_util::{BodyExt as _, Full};
use hyper::body::{Bytes, Incoming};
use hyper::header::{
    CONNECTION, CONTENT_ENCODING, CONTENT_LENGTH, CONTENT_RANGE, CONTENT_TYPE, HeaderValue, TRANSFER_ENCODING,
};
use hyper::{Response, StatusCode};

use super::answering::{Answering, mask_head};
use super::broken::Unanswered;
use super::declared::Declared;
use super::{Answer, Exchange};
use crate::broker::of_this_connection_only;
use crate::judge::{ConnectionRefusal, Ending};

/// The kind of answer that git wants to a push.
pub(super) const PUSH_RESULT: &str = "application/x-git-receive-pack-result";

/// The longest text in a packet of git's protocol, in bytes.
const PACKET_MAX: usize = 900;

impl Exchange {
    /// Returns the server's answer in the form in which it is passed on, without credentials in it.
    pub(super) fn passed_back(
        &self,
        declared: &Declared,
        answer: Response<Incoming>,
    ) -> Result<Answer, Unanswered> {
        let (mut head, body) = answer.into_parts();
        if head.headers.contains_key(TRANSFER_ENCODING) {
            // Such a length does not count (RFC 9112 6.3), and must not reach a client that counts it.
            head.headers.remove(CONTENT_LENGTH);
        }
        if head.status == StatusCode::SWITCHING_PROTOCOLS {
            return Err(Unanswered::Unreachable(format!(
                "`{}` switched to another protocol without being asked",
                declared.host.host
            )));
        }
        if declared.host.credentials.is_empty() {
            of_this_connection_only(&mut head.headers);
            let body = Answering::new(body, None, self.traffic.clone());
            return Ok(Response::from_parts(head, body.boxed_unsync()));
        }
        let is_plain = |encoding: &HeaderValue| {
            let is_one = |known: &[u8]| encoding.as_bytes().eq_ignore_ascii_case(known);
            is_one(b"identity") || is_one(b"")
        };
        let is_chunked = |encoding: &HeaderValue| encoding.as_bytes().eq_ignore_ascii_case(b"chunked");
        let unreadable = |how: &str| {
            let reason = format!(
                "`{}` answered {how}, so the credential could not be found in it",
                declared.host.host
            );
            Err(Unanswered::Refused(ConnectionRefusal::by_host("host.unreadable-answer", reason)))
        };
        if !head.headers.get_all(CONTENT_ENCODING).iter().all(is_plain)
            || !head.headers.get_all(TRANSFER_ENCODING).iter().all(is_chunked)
        {
            return unreadable("compressed although it was asked not to");
        }
        // A command could collect a credential from parts that are each too short to be recognized.
        if head.status == StatusCode::PARTIAL_CONTENT || head.headers.contains_key(CONTENT_RANGE) {
            return unreadable("with a part although it was asked for the whole");
        }
        if head.headers.get_all(CONTENT_TYPE).iter().any(has_wide_characters) {
            return unreadable("in UTF-16, UTF-32 or UTF-7");
        }
        of_this_connection_only(&mut head.headers);
        let masker = declared.broker.loaded().masker();
        mask_head(&mut head, &masker);
        let body = Answering::new(body, Some(masker), self.traffic.clone());
        Ok(Response::from_parts(head, body.boxed_unsync()))
    }

    /// Tells git why a push is refused: it shows its user the text of an error in its own protocol, and that of no
    /// other answer.
    pub(super) fn push_refused(&self, refusal: ConnectionRefusal) -> Answer {
        let mut text = format!("portcullis: {}", refusal.text);
        text.truncate(text.floor_char_boundary(PACKET_MAX));
        // A packet on the band of errors that cannot be recovered from (gitprotocol-pack(5)).
        let packet = format!("{:04x}\x03{text}\n", text.len() + 6);
        let mut answer = self.without_answer(Unanswered::Refused(refusal));
        *answer.status_mut() = StatusCode::OK;
        answer.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(PUSH_RESULT));
        *answer.body_mut() = Full::new(Bytes::from(packet)).map_err(|never| match never {}).boxed_unsync();
        answer
    }

    /// Tells the client why there is no answer, and ends the connection.
    pub(super) fn without_answer(&self, unanswered: Unanswered) -> Answer {
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

/// Returns true if a media type names a character set in which a text does not have the bytes that it has in ASCII.
fn has_wide_characters(kind: &HeaderValue) -> bool {
    let kind = kind.as_bytes().to_ascii_lowercase();
    let names: [&[u8]; 6] = [b"utf-16", b"utf16", b"utf-32", b"utf32", b"utf-7", b"ucs-"];
    names.iter().any(|name| kind.windows(name.len()).any(|part| part == *name))
}

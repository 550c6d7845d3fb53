//! The answers to the requests of a brokered connection.

use std::sync::Arc;

use http_body_util::BodyExt as _;
use hyper::body::Incoming;
use hyper::header::{
    CONTENT_ENCODING, CONTENT_LENGTH, CONTENT_RANGE, CONTENT_TYPE, HeaderValue, TRANSFER_ENCODING,
};
use hyper::{Response, StatusCode, Version};
use portcullis_credential_broker::{Opening, is_readable, of_this_connection_only};
use portcullis_decision::ConnectionRefusal;

use super::answering::{Answering, mask_head};
use super::broken::Unanswered;
use super::declared::Declared;
use super::exchange::{Answer, Exchange};
use super::version::HttpVersion;

/// Headers that name a compression of each message in an answer, or a change of the whole (RFC 3229).
const OTHER_ENCODINGS: [&str; 3] = ["connect-content-encoding", "grpc-encoding", "im"];

impl Exchange {
    /// Returns the server's answer in the form in which it is passed on, without credentials in it.
    pub(super) fn passed_back(
        self: &Arc<Self>,
        declared: &Declared,
        answer: Response<Incoming>,
        client: HttpVersion,
    ) -> Result<Answer, Unanswered> {
        let (mut head, body) = answer.into_parts();
        head.version = match client {
            HttpVersion::One => Version::HTTP_11,
            HttpVersion::Two => Version::HTTP_2,
        };
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
        let masker = declared.broker.loaded().masker();
        // No credential is sent to such a host. It can have one from another host, so what can be read is searched.
        if declared.host.credentials.is_empty() {
            of_this_connection_only(&mut head.headers);
            mask_head(&mut head, &masker);
            let body = Answering::new(body, masker, self.traffic.clone(), client);
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
        let mut others = OTHER_ENCODINGS.iter().flat_map(|name| head.headers.get_all(*name).iter());
        if !head.headers.get_all(CONTENT_ENCODING).iter().all(is_plain)
            || !others.all(is_plain)
            || !head.headers.get_all(TRANSFER_ENCODING).iter().all(is_chunked)
        {
            return unreadable("compressed although it was asked not to");
        }
        // A command could collect a credential from parts that are each too short to be recognized.
        if head.status == StatusCode::PARTIAL_CONTENT || head.headers.contains_key(CONTENT_RANGE) {
            return unreadable("with a part although it was asked for the whole");
        }
        if !head.headers.get_all(CONTENT_TYPE).iter().all(is_readable) {
            return unreadable("in a character set that the gate cannot search");
        }
        of_this_connection_only(&mut head.headers);
        mask_head(&mut head, &masker);
        let opening = Opening::new(&head.headers);
        let body = Answering::new(body, masker, self.traffic.clone(), client).refusing_wide(opening, self);
        Ok(Response::from_parts(head, body.boxed_unsync()))
    }
}

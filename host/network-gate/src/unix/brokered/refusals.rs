//! What a client is told about a request that got no answer of the server, in the words of its protocol.

use http_body_util::{BodyExt as _, Full};
use hyper::body::Bytes;
use hyper::header::{ACCEPT, CONNECTION, CONTENT_TYPE, HeaderMap, HeaderValue};
use hyper::{Response, StatusCode};
use portcullis_decision::ConnectionRefusal;

use super::broken::Unanswered;
use super::exchange::{Answer, Exchange};
use super::version::HttpVersion;
use crate::judge::Ending;

/// The kind of answer that git wants to a push.
const PUSH_RESULT: &str = "application/x-git-receive-pack-result";
/// The longest text in a packet of git's protocol, in bytes.
const PACKET_MAX: usize = 900;
/// How the kinds of content of gRPC begin.
const GRPC: &str = "application/grpc";
/// The statuses of gRPC for a denied request, and for a server that cannot be reached.
const PERMISSION_DENIED: &str = "7";
const UNAVAILABLE: &str = "14";

/// The protocol that a request belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// A push of git, which shows its user the text of an error in its own protocol, and that of no other answer.
    Push,
    /// A call of gRPC, which shows the status and the message in its own headers.
    Grpc,
    Other,
}

impl Kind {
    pub(super) fn of(headers: &HeaderMap) -> Self {
        let is_grpc = |kind: &HeaderValue| kind.as_bytes().starts_with(GRPC.as_bytes());
        match (headers.get(ACCEPT), headers.get(CONTENT_TYPE)) {
            (Some(accepted), _) if accepted == PUSH_RESULT => Self::Push,
            (_, Some(kind)) if is_grpc(kind) => Self::Grpc,
            (_, _) => Self::Other,
        }
    }
}

impl Exchange {
    /// Notes why a request has no answer, and tells the client.
    pub(super) fn unanswered(&self, unanswered: Unanswered, kind: Kind, client: HttpVersion) -> Answer {
        match &unanswered {
            Unanswered::Refused(refusal) => self.outcome.note(Ending::Refused(refusal.clone())),
            Unanswered::Unreachable(why) | Unanswered::NotTaken(why) => {
                self.outcome.note(Ending::Unreachable(why.clone()));
            }
            Unanswered::Stopped(_) | Unanswered::Abandoned => {}
        }
        match (&unanswered, kind, client) {
            (Unanswered::Refused(refusal), Kind::Push, _) => self.push_refused(refusal, client),
            (_, Kind::Grpc, HttpVersion::Two) => self.call_refused(&unanswered),
            (_, _, _) => self.without_answer(unanswered, client),
        }
    }

    fn push_refused(&self, refusal: &ConnectionRefusal, client: HttpVersion) -> Answer {
        let mut text = format!("portcullis: {}", refusal.text);
        text.truncate(text.floor_char_boundary(PACKET_MAX));
        // A packet on the band of errors that cannot be recovered from (gitprotocol-pack(5)).
        let packet = format!("{:04x}\x03{text}\n", text.len() + 6);
        let mut answer = self.without_answer(Unanswered::Refused(refusal.clone()), client);
        *answer.status_mut() = StatusCode::OK;
        answer.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(PUSH_RESULT));
        *answer.body_mut() = Full::new(Bytes::from(packet)).map_err(|never| match never {}).boxed_unsync();
        answer
    }

    fn call_refused(&self, unanswered: &Unanswered) -> Answer {
        let (status, _, why) = self.words(unanswered);
        let status = if status == StatusCode::BAD_GATEWAY { UNAVAILABLE } else { PERMISSION_DENIED };
        let mut answer = Response::new(Full::default().map_err(|never| match never {}).boxed_unsync());
        let headers = answer.headers_mut();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static(GRPC));
        headers.insert("grpc-status", HeaderValue::from_static(status));
        if let Ok(message) = HeaderValue::from_str(&percent_encoded(&format!("portcullis: {why}"))) {
            headers.insert("grpc-message", message);
        }
        headers.insert("x-portcullis", HeaderValue::from_static("refused"));
        answer
    }

    /// Returns the answer that tells a client why there is none; in HTTP/1.1 it ends the connection.
    pub(super) fn without_answer(&self, unanswered: Unanswered, client: HttpVersion) -> Answer {
        let (status, in_second_version, why) = self.words(&unanswered);
        let body = Full::new(Bytes::from(format!("portcullis: {why}\n")));
        let mut answer = Response::new(body.map_err(|never| match never {}).boxed_unsync());
        *answer.status_mut() = if client == HttpVersion::Two { in_second_version } else { status };
        let headers = answer.headers_mut();
        if client == HttpVersion::One {
            headers.insert(CONNECTION, HeaderValue::from_static("close"));
        }
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("text/plain; charset=utf-8"));
        headers.insert("x-portcullis", HeaderValue::from_static("refused"));
        answer
    }

    /// Returns the status in both versions, and the reason.
    fn words(&self, unanswered: &Unanswered) -> (StatusCode, StatusCode, String) {
        let place = self.wanted.target.with_port(self.wanted.port);
        match unanswered {
            Unanswered::Refused(refusal) | Unanswered::Stopped(refusal) => {
                // A client of HTTP/2 may use a connection for another host, until it is told not to (RFC 9113 9.1.2).
                let is_misdirected = refusal.rule == "host.other-server";
                let in_second_version =
                    if is_misdirected { StatusCode::MISDIRECTED_REQUEST } else { StatusCode::FORBIDDEN };
                let why = format!("the request to {place} is denied: {}", refusal.text);
                (StatusCode::FORBIDDEN, in_second_version, why)
            }
            Unanswered::Unreachable(why) | Unanswered::NotTaken(why) => {
                (StatusCode::BAD_GATEWAY, StatusCode::BAD_GATEWAY, why.clone())
            }
            Unanswered::Abandoned => (StatusCode::BAD_GATEWAY, StatusCode::BAD_GATEWAY, String::new()),
        }
    }
}

/// Writes a message of gRPC: printable ASCII, and everything else in hexadecimal digits.
fn percent_encoded(text: &str) -> String {
    let escaped = |byte: u8| match byte {
        b'%' | ..b' ' | 0x7f.. => format!("%{byte:02X}"),
        printable => char::from(printable).to_string(),
    };
    text.bytes().map(escaped).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_of_grpc_are_printable() {
        assert_eq!(percent_encoded("a `b` 100 %\n\u{e4}"), "a `b` 100 %25%0A%C3%A4");
    }

    #[test]
    fn the_kind_of_a_request_is_seen_from_its_headers() {
        let check = |name: &'static str, value: &'static str, wanted| {
            let headers = HeaderMap::from_iter([(
                hyper::header::HeaderName::from_static(name),
                HeaderValue::from_static(value),
            )]);
            assert_eq!(Kind::of(&headers), wanted, "{name}: {value}");
        };
        check("accept", PUSH_RESULT, Kind::Push);
        check("content-type", "application/grpc", Kind::Grpc);
        check("content-type", "application/grpc+proto", Kind::Grpc);
        check("content-type", "application/json", Kind::Other);
        check("accept", "application/grpc", Kind::Other);
    }
}

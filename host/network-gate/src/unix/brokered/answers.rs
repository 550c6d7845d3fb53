//! The answers to the requests of a brokered connection.

use http_body_util::BodyExt as _;
use hyper::body::Incoming;
use hyper::header::{
    CONTENT_ENCODING, CONTENT_LENGTH, CONTENT_RANGE, CONTENT_TYPE, HeaderValue, TRANSFER_ENCODING,
};
use hyper::{Response, StatusCode, Version};

use super::answering::{Answering, mask_head};
use super::broken::Unanswered;
use super::declared::Declared;
use super::exchange::{Answer, Exchange};
use super::version::HttpVersion;
use crate::broker::of_this_connection_only;
use crate::judge::ConnectionRefusal;

/// Headers that name a compression of each message in an answer, or a change of the whole (RFC 3229).
const OTHER_ENCODINGS: [&str; 3] = ["connect-content-encoding", "grpc-encoding", "im"];

impl Exchange {
    /// Returns the server's answer in the form in which it is passed on, without credentials in it.
    pub(super) fn passed_back(
        &self,
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
        if head.headers.get_all(CONTENT_TYPE).iter().any(has_wide_characters) {
            return unreadable("in UTF-16, UTF-32, UTF-7 or EBCDIC");
        }
        of_this_connection_only(&mut head.headers);
        mask_head(&mut head, &masker);
        let body = Answering::new(body, masker, self.traffic.clone(), client);
        Ok(Response::from_parts(head, body.boxed_unsync()))
    }
}

/// Returns true if a media type names a character set in which a text does not have the bytes that it has in ASCII.
fn has_wide_characters(kind: &HeaderValue) -> bool {
    // Names of character sets have several spellings.
    let plain = |part: &str| part.chars().filter(char::is_ascii_alphanumeric).collect::<String>();
    let kind = String::from_utf8_lossy(kind.as_bytes()).to_ascii_lowercase();
    let set = kind.split_once("charset").map(|(_, set)| plain(set)).unwrap_or_default();
    let kind = plain(&kind);
    ["utf16", "utf32", "utf7"].iter().any(|name| kind.contains(name))
        || ["cp037", "cp500", "cp1047", "ebcdic", "ibm", "iso10646", "ucs", "unicode"]
            .iter()
            .any(|name| set.contains(name))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn character_sets_without_the_bytes_of_ascii_are_known() {
        for kind in [
            "text/html; charset=UTF-16",
            "text/html; charset=utf_16le",
            "text/html;charset=\"unicode\"",
            "text/html; charset = UCS-2",
            "text/html; charset=IBM037",
            "text/html; charset=cp037",
            "text/html; charset=ISO-10646-UCS-4",
        ] {
            assert!(has_wide_characters(&HeaderValue::from_static(kind)), "{kind}");
        }
        for kind in
            ["application/json", "text/html; charset=utf-8", "text/plain; charset=ISO-8859-16", "x/focus"]
        {
            assert!(!has_wide_characters(&HeaderValue::from_static(kind)), "{kind}");
        }
    }
}

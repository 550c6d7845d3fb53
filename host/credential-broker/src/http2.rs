//! Gives a request of HTTP/2 the form that it has in HTTP/1.1, so that one judgement serves both versions.

use hyper::Version;
use hyper::header::{
    CONNECTION, CONTENT_LENGTH, COOKIE, HOST, HeaderMap, HeaderName, HeaderValue, TE, TRANSFER_ENCODING,
    UPGRADE,
};
use hyper::http::request::Parts;
use portcullis_decision::ConnectionRefusal;

use super::well_formed::malformed;

/// Headers that frame a message or concern one connection, which HTTP/2 does not have (RFC 9113 8.2.2).
static FOREIGN: [HeaderName; 5] = [
    CONNECTION,
    HeaderName::from_static("keep-alive"),
    HeaderName::from_static("proxy-connection"),
    TRANSFER_ENCODING,
    UPGRADE,
];

/// Whether content follows the head of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Follows {
    /// The request has only a head.
    Nothing,
    /// A body follows.
    Content,
}

/// Gives a request of HTTP/2 the form of HTTP/1.1; any other is left as it is.
pub fn in_first_version(request: &mut Parts, follows: Follows) -> Result<(), ConnectionRefusal> {
    if request.version != Version::HTTP_2 {
        return Ok(());
    }
    let headers = &mut request.headers;
    // The library refuses these as well; what is judged must not depend on that.
    if let Some(name) = FOREIGN.iter().find(|name| headers.contains_key(*name)) {
        return Err(malformed(&format!("HTTP/2 has no header `{name}`")));
    }
    if headers.get_all(TE).iter().any(|value| value != "trailers") {
        return Err(malformed("its `TE` is not `trailers`"));
    }
    if headers.values().any(has_spaces_around) {
        return Err(malformed("the value of a header begins or ends with a space"));
    }
    let Some(authority) = request.uri.authority() else {
        return Err(malformed("it does not have exactly one `:authority`"));
    };
    if !headers.contains_key(HOST) {
        let host = HeaderValue::from_str(authority.as_str());
        headers.insert(HOST, host.map_err(|_| malformed("its `:authority` is no host"))?);
    }
    join_cookies(headers)?;
    if follows == Follows::Content && !headers.contains_key(CONTENT_LENGTH) {
        headers.insert(TRANSFER_ENCODING, HeaderValue::from_static("chunked"));
    }
    request.version = Version::HTTP_11;
    Ok(())
}

fn has_spaces_around(value: &HeaderValue) -> bool {
    let is_space = |byte: Option<&u8>| matches!(byte, Some(b' ' | b'\t'));
    is_space(value.as_bytes().first()) || is_space(value.as_bytes().last())
}

/// Makes one header of the pieces in which HTTP/2 sends cookies (RFC 9113 8.2.3).
fn join_cookies(headers: &mut HeaderMap) -> Result<(), ConnectionRefusal> {
    let pieces: Vec<&[u8]> = headers.get_all(COOKIE).iter().map(HeaderValue::as_bytes).collect();
    if pieces.len() > 1 {
        let joined = HeaderValue::from_bytes(&pieces.join(&b"; "[..]));
        headers.insert(COOKIE, joined.map_err(|_| malformed("its cookies are no text"))?);
    }
    Ok(())
}

#[cfg(test)]
mod tests;

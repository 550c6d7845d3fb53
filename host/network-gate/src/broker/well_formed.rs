//! The form of requests that the gate passes on: both sides must read the same request in the same bytes.

use hyper::header::{
    AUTHORIZATION, CONNECTION, CONTENT_LENGTH, HOST, HeaderMap, HeaderName, HeaderValue, TE, TRAILER,
    TRANSFER_ENCODING, UPGRADE,
};
use hyper::http::request::Parts;
use hyper::{Method, Version};

use crate::connection_refusal::ConnectionRefusal;

/// Headers that concern one connection only (RFC 9110 7.6.1), besides those that `Connection` names.
const OF_ONE_CONNECTION: &[&str] =
    &["connection", "keep-alive", "proxy-connection", "te", "trailer", "transfer-encoding", "upgrade"];

/// Headers by which some servers take another method or path than the ones that were judged.
const REWRITES: &[&str] = &[
    "x-http-method",
    "x-http-method-override",
    "x-method-override",
    "x-original-uri",
    "x-original-url",
    "x-rewrite-url",
];

/// Parameters of a query by which some servers take another method than the one that was judged.
const METHOD_PARAMETERS: &[&str] = &["$httpmethod", "_method", "x-http-method-override"];

/// Refuses what the gate does not pass on.
pub(super) fn is_well_formed(request: &Parts) -> Result<(), ConnectionRefusal> {
    if !matches!(request.version, Version::HTTP_10 | Version::HTTP_11) {
        return Err(malformed("its version of HTTP is not 1.0 or 1.1"));
    }
    if request.method == Method::CONNECT {
        return Err(malformed("it asks for a tunnel"));
    }
    if request.headers.contains_key(UPGRADE) {
        let reason = "it asks for another protocol, and the requests to this host are checked";
        return Err(ConnectionRefusal::by_host("host.brokered-upgrade", reason));
    }
    if request.headers.get_all(CONTENT_LENGTH).iter().count() > 1 {
        return Err(malformed("it has more than one `Content-Length`"));
    }
    let encodings: Vec<&HeaderValue> = request.headers.get_all(TRANSFER_ENCODING).iter().collect();
    let is_chunked = |value: &HeaderValue| value.as_bytes().eq_ignore_ascii_case(b"chunked");
    if encodings.len() > 1 || !encodings.into_iter().all(is_chunked) {
        return Err(malformed("its `Transfer-Encoding` is not `chunked`"));
    }
    if request.headers.get_all(AUTHORIZATION).iter().count() > 1 {
        return Err(malformed("it has more than one `Authorization`"));
    }
    if let Some(name) = request.headers.keys().map(HeaderName::as_str).find(|name| misleads(name)) {
        return Err(malformed(&format!("servers differ in what they take from `{name}`")));
    }
    if let Some(name) = METHOD_PARAMETERS.iter().find(|name| has_parameter(request, name)) {
        return Err(malformed(&format!("some servers take another method from `{name}` in the query")));
    }
    // Otherwise a header that a rule wants would be there for the check, and not for the server.
    let is_usual = |name: &str| name == "close" || OF_ONE_CONNECTION.contains(&name);
    if !named_by_connection(&request.headers).iter().all(|name| is_usual(name)) {
        return Err(malformed("its `Connection` names a header that is for the server"));
    }
    Ok(())
}

/// Returns true if a query has a parameter, however its name is written.
fn has_parameter(request: &Parts, wanted: &str) -> bool {
    let is_wanted = |pair: &str| {
        let name = pair.split('=').next().unwrap_or_default();
        percent_decoded(name).eq_ignore_ascii_case(wanted.as_bytes())
    };
    request.uri.query().unwrap_or_default().split(['&', ';']).any(is_wanted)
}

/// Returns the bytes of a percent-encoded text.
pub(super) fn percent_decoded(text: &str) -> Vec<u8> {
    let mut rest = text.as_bytes();
    let mut decoded = Vec::new();
    while let [first, after @ ..] = rest {
        let digits =
            after.get(..2).filter(|_| *first == b'%').and_then(|digits| std::str::from_utf8(digits).ok());
        let escaped = digits.and_then(|digits| u8::from_str_radix(digits, 16).ok());
        decoded.push(escaped.unwrap_or(*first));
        rest = if escaped.is_some() { after.get(2..).unwrap_or_default() } else { after };
    }
    decoded
}

/// Returns true for a header that leads some servers to another request than the one that was judged.
fn misleads(name: &str) -> bool {
    // Servers that hand headers on as variables read `_` and `-` as one.
    let plain = name.replace('_', "-");
    let is_framing =
        [AUTHORIZATION, CONTENT_LENGTH, HOST, TRANSFER_ENCODING].iter().any(|known| *known == *plain);
    REWRITES.contains(&plain.as_str()) || plain != name && is_framing
}

/// Returns what the header `Connection` lists, in lower case.
fn named_by_connection(headers: &HeaderMap) -> Vec<String> {
    let lists = headers.get_all(CONNECTION).iter().map(|value| String::from_utf8_lossy(value.as_bytes()));
    let names = lists.flat_map(|list| {
        list.split(',').map(|name| name.trim().to_ascii_lowercase()).collect::<Vec<String>>()
    });
    names.filter(|name| !name.is_empty()).collect()
}

/// Removes the headers that concern one connection only.
pub(crate) fn of_this_connection_only(headers: &mut HeaderMap) {
    for name in named_by_connection(headers) {
        headers.remove(name);
    }
    for name in OF_ONE_CONNECTION {
        headers.remove(*name);
    }
    debug_assert!(!headers.contains_key(TE) && !headers.contains_key(TRAILER));
}

pub(super) fn malformed(problem: &str) -> ConnectionRefusal {
    ConnectionRefusal::by_host("host.malformed", format!("the request cannot be passed on: {problem}"))
}

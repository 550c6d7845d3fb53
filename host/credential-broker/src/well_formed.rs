//! The form of requests that the gate passes on: both sides must read the same request in the same bytes.

use hyper::header::{
    AUTHORIZATION, CONNECTION, CONTENT_ENCODING, CONTENT_LENGTH, CONTENT_TYPE, COOKIE, HOST, HeaderMap,
    HeaderName, HeaderValue, TE, TRAILER, TRANSFER_ENCODING, UPGRADE,
};
use hyper::http::request::Parts;
use hyper::{Method, Version};
use portcullis_decision::ConnectionRefusal;

/// Headers that concern one connection only (RFC 9110 7.6.1), besides those that `Connection` names.
const OF_ONE_CONNECTION: &[&str] =
    &["connection", "keep-alive", "proxy-connection", "te", "trailer", "transfer-encoding", "upgrade"];

/// Headers by which some servers take another method, host or path than the ones that were judged.
const REWRITES: &[&str] = &[
    "forwarded",
    "http-method",
    // Variables of CGI and WSGI, which some servers also take from headers.
    "path-info",
    "script-name",
    "x-envoy-original-path",
    "x-forwarded-host",
    "x-forwarded-method",
    "x-forwarded-path",
    "x-forwarded-prefix",
    "x-forwarded-script-name",
    "x-forwarded-uri",
    "x-forwarded-url",
    "x-http-destinationurl",
    "x-http-method",
    "x-http-method-override",
    "x-http-path-override",
    "x-http-verb",
    "x-method",
    "x-method-override",
    "x-original-host",
    "x-original-method",
    "x-original-path",
    "x-original-uri",
    "x-original-url",
    "x-path-info",
    "x-rewrite-uri",
    "x-rewrite-url",
    "x-script-name",
    "x-waws-unencoded-url",
];

/// Parameters of a query by which some servers take another method than the one that was judged.
const METHOD_PARAMETERS: &[&str] = &[
    "$httpmethod",
    "_httpmethod",
    "_method",
    "methodoverride",
    "x-http-method",
    "x-http-method-override",
    "x-method-override",
];

/// The same, if the value is a method: these names are also used for other things.
const NAMES_OF_METHODS: &[&str] = &["http_method", "httpmethod", "method"];
/// The methods that change something.
const METHODS: &[&str] = &["delete", "patch", "post", "put"];

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
        return Err(malformed(&format!("servers differ in what they take from `{name}`; leave it out")));
    }
    if names_have_code_points(request) {
        return Err(malformed("a name in its query is written with `%u`, which few servers read"));
    }
    if let Some(name) = method_parameter(request) {
        return Err(malformed(&format!(
            "some servers take another method from `{name}` in the query; send that method itself"
        )));
    }
    // Otherwise a header that a rule wants would be there for the check, and not for the server.
    let is_usual = |name: &str| name == "close" || OF_ONE_CONNECTION.contains(&name);
    if !named_by_connection(&request.headers).iter().all(|name| is_usual(name)) {
        return Err(malformed("its `Connection` names a header that is for the server"));
    }
    Ok(())
}

/// Returns the name of the first parameter of a query by which some servers take another method, however it is written.
fn method_parameter(request: &Parts) -> Option<&'static str> {
    let mut pairs = request.uri.query().unwrap_or_default().split(['&', ';']);
    pairs.find_map(|pair| {
        let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
        let decoded = percent_decoded(name);
        // `[name]` is `name` for some parsers.
        let bare = decoded.iter().filter(|byte| !matches!(byte, b'[' | b']')).map(u8::to_ascii_lowercase);
        let names = [as_variable(&decoded), bare.collect()];
        let value = percent_decoded(value);
        let is_method = METHODS.iter().any(|method| value.eq_ignore_ascii_case(method.as_bytes()));
        let known = METHOD_PARAMETERS.iter().chain(NAMES_OF_METHODS.iter().filter(|_| is_method));
        known.copied().find(|known| names.contains(&as_variable(known.as_bytes())))
    })
}

/// Returns true if a name in the query is written with code points (`%u005f`), by which some servers take another name.
fn names_have_code_points(request: &Parts) -> bool {
    let mut pairs = request.uri.query().unwrap_or_default().split(['&', ';']);
    pairs.any(|pair| pair.split('=').next().is_some_and(|name| name.to_ascii_lowercase().contains("%u")))
}

/// Returns the name under which PHP stores a parameter, in lower case. PHP removes leading spaces, replaces spaces, dots
/// and a leading `[` by `_`, and cuts the name at a NUL and at an index (`[`).
fn as_variable(name: &[u8]) -> Vec<u8> {
    let spaces = name.iter().take_while(|byte| matches!(byte, b' ' | b'+')).count();
    let name = name.get(spaces..).unwrap_or_default();
    let is_end = |(at, byte): (usize, &u8)| *byte == 0 || *byte == b'[' && at > 0;
    let end = name.iter().enumerate().position(is_end).unwrap_or(name.len());
    let part = name.get(..end).unwrap_or_default();
    let as_known = |byte: &u8| if matches!(byte, b' ' | b'+' | b'.' | b'[') { b'_' } else { *byte };
    part.iter().map(as_known).map(|byte| byte.to_ascii_lowercase()).collect()
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
    let is_judged =
        [AUTHORIZATION, CONTENT_ENCODING, CONTENT_LENGTH, CONTENT_TYPE, COOKIE, HOST, TRANSFER_ENCODING]
            .iter()
            .any(|known| *known == *plain);
    REWRITES.contains(&plain.replace('.', "-").as_str()) || plain != name && is_judged
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
pub fn of_this_connection_only(headers: &mut HeaderMap) {
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

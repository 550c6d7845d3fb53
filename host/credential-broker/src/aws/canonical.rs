//! The canonical form of a request, of which a signature is made.

use hyper::header::HOST;
use hyper::http::request::Parts;

/// How the path of a request stands in its canonical form. Clients differ: most services want the path encoded again,
/// S3 does not.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum PathForm {
    /// As it is sent.
    AsSent,
    /// Each `%` in it is encoded.
    EncodedAgain,
}

/// Returns the canonical form of a request with these signed headers, in their order; `None` if one is missing or
/// cannot be read.
pub(super) fn canonical(
    request: &Parts,
    names: &[String],
    payload: &str,
    path_form: PathForm,
) -> Option<String> {
    let path = match path_form {
        PathForm::AsSent => request.uri.path().to_owned(),
        PathForm::EncodedAgain => encoded(request.uri.path().as_bytes(), b"/"),
    };
    let mut text =
        format!("{}\n{path}\n{}\n", request.method, query(request.uri.query().unwrap_or_default()));
    for name in names {
        text.push_str(&format!("{name}:{}\n", value(request, name)?));
    }
    Some(format!("{text}\n{}\n{payload}", names.join(";")))
}

/// Returns the values of a header, without surplus spaces.
fn value(request: &Parts, name: &str) -> Option<String> {
    let mut values = Vec::new();
    for value in request.headers.get_all(name) {
        let words: Vec<&str> = value.to_str().ok()?.split_ascii_whitespace().collect();
        values.push(words.join(" "));
    }
    // HTTP/2 has it in the target.
    if values.is_empty() && name == HOST.as_str() {
        values.push(request.uri.authority()?.as_str().to_owned());
    }
    (!values.is_empty()).then(|| values.join(","))
}

/// Sorts the parameters of a query.
fn query(text: &str) -> String {
    let pair = |pair: &str| {
        let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
        [name, value].map(|part| encoded(&decoded(part), b""))
    };
    let mut pairs: Vec<[String; 2]> = text.split('&').filter(|pair| !pair.is_empty()).map(pair).collect();
    pairs.sort();
    pairs.iter().map(|pair| pair.join("=")).collect::<Vec<_>>().join("&")
}

/// Percent-encodes a text, but for the unreserved characters (RFC 3986 2.3) and those to be kept.
fn encoded(text: &[u8], kept: &[u8]) -> String {
    let mut encoded = String::new();
    for &byte in text {
        if byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) || kept.contains(&byte) {
            encoded.push(char::from(byte));
        } else {
            encoded.push_str(&format!("%{byte:02X}"));
        }
    }
    encoded
}

/// Returns the bytes of a percent-encoded text.
pub(super) fn decoded(text: &str) -> Vec<u8> {
    super::super::well_formed::percent_decoded(text)
}

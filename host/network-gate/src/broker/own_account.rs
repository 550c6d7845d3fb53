//! Finds credentials that are not those of the settings, which would carry data to somebody else's account.

use hyper::header::HeaderMap;
use hyper::http::uri::PathAndQuery;
use portcullis_text::secrets::{has_secret, is_secret_name};

/// Headers that carry credentials under names that do not say so.
const CARRIES_CREDENTIALS: &[&str] = &[
    "authorization",
    "cookie",
    "proxy-authorization",
    "x-amz-security-token",
    "x-goog-iam-authorization-token",
];

/// Names of parameters that carry credentials, besides those that say so.
const NAMES_IN_QUERIES: &[&str] = &[
    "access",
    "auth",
    "authorization",
    "bearer",
    "code",
    "jwt",
    "key",
    "pat",
    "session",
    "sid",
    "sig",
    "signature",
    "ticket",
];

/// Returns what to call the first foreign credential of a request. `is_own` is true for the headers of the declared one.
pub(super) fn foreign_credential(
    headers: &HeaderMap,
    target: &PathAndQuery,
    is_own: impl Fn(&str) -> bool,
) -> Option<String> {
    for (name, value) in headers {
        let name = name.as_str();
        if is_own(name) {
            continue;
        }
        let is_one = CARRIES_CREDENTIALS.contains(&name)
            || is_secret_name(&name.replace('-', "_"))
            || has_secret(&String::from_utf8_lossy(value.as_bytes()));
        if is_one {
            return Some(format!("the header `{name}`"));
        }
    }
    if has_secret(target.path()) {
        return Some("its path".to_owned());
    }
    for pair in target.query().unwrap_or_default().split(['&', ';']) {
        let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
        let name = name.to_ascii_lowercase();
        let is_named = is_secret_name(&name.replace('-', "_"))
            || NAMES_IN_QUERIES.contains(&name.as_str())
            || name.contains('%')
            || name.starts_with("x-amz-")
            || name.starts_with("x-goog-");
        if is_named || has_secret(value) {
            return Some("a parameter of its query".to_owned());
        }
    }
    None
}

//! Finds credentials that are not those of the settings, which would carry data to somebody else's account.

use hyper::header::HeaderMap;
use hyper::http::uri::PathAndQuery;
use portcullis_text::secrets::{has_secret, is_secret_name};

use super::well_formed::percent_decoded;

/// Headers that carry credentials under names that do not say so. Not all names with such words do: npm sends
/// `npm-session` and `npm-auth-type` with every request.
const CARRIES_CREDENTIALS: &[&str] = &[
    "authentication",
    "authorization",
    "bearer",
    "cookie",
    "dpop",
    "hmac",
    "jwt",
    "key",
    "npm-otp",
    "otp",
    "proxy-authorization",
    // Names of people, for servers that trust a proxy with them.
    "remote-user",
    "session",
    "sid",
    // Another account, for the administrator of a GitLab.
    "sudo",
    "ticket",
    "x-account",
    "x-account-id",
    "x-amz-security-token",
    "x-auth",
    "x-auth-request-email",
    "x-auth-request-user",
    "x-authenticated-user",
    "x-authentication",
    "x-bearer",
    "x-forwarded-email",
    "x-forwarded-preferred-username",
    "x-forwarded-user",
    "x-goog-iam-authorization-token",
    "x-honeycomb-team",
    "x-jfrog-art-api",
    "x-jwt",
    "x-jwt-assertion",
    "x-oauth",
    "x-otp",
    "x-otp-code",
    "x-remote-user",
    "x-sentry-auth",
    "x-session",
    "x-session-id",
    "x-sid",
    "x-tableau-auth",
    "x-ticket",
    "x-user",
    "x-user-id",
    "x-webauth-user",
    "x-wsse",
    "x-zumo-auth",
];

/// Names of parameters that carry credentials, besides those that say so.
const NAMES_IN_QUERIES: &[&str] = &[
    "access",
    "appid",
    "assertion",
    "auth",
    "authorization",
    "bearer",
    "client_id",
    "code",
    "cred",
    "hmac",
    "jsessionid",
    "jwt",
    "key",
    "key-pair-id",
    "otp",
    "pat",
    "phpsessid",
    "policy",
    "pwd",
    "samlresponse",
    "session",
    "session_id",
    "sessionid",
    "sid",
    "sig",
    "signature",
    "sudo",
    "ticket",
];

/// Headers and parameters with values of the server, which can look like a credential and are none: those with which a
/// client asks whether its copy is current, and for the next page of a list.
const OF_THE_SERVER: &[&str] = &["if-match", "if-none-match", "if-range"];
const OF_LISTS: &[&str] = &[
    "after",
    "before",
    "continuation",
    "continuation-token",
    "continuationtoken",
    "continue",
    "cursor",
    "end_cursor",
    "marker",
    "next_page_token",
    "next_token",
    "nexttoken",
    "page",
    "page_token",
    "pagetoken",
    "start_cursor",
    "starting_after",
];

/// User names that stand before tokens in `Authorization: Basic` and name no account.
const GENERIC_USERS: &[&str] = &[
    "",
    "__token__",
    "_json_key",
    "_json_key_base64",
    "_token",
    "api",
    "apikey",
    "aws",
    "git",
    "gitlab-ci-token",
    "me",
    "nobody",
    "oauth2",
    "oauth2accesstoken",
    "token",
    "user",
    "username",
    "x-access-token",
    "x-bitbucket-api-token-auth",
    "x-oauth-basic",
    "x-token-auth",
];

/// Returns true for a user name that names no account.
pub(super) fn is_generic_user(user: &str) -> bool {
    GENERIC_USERS.contains(&user.to_ascii_lowercase().as_str())
}

/// Returns what to call the first foreign credential of a request. `is_own` is true for the headers of the declared one.
pub(super) fn foreign_credential(
    headers: &HeaderMap,
    target: &PathAndQuery,
    is_own: impl Fn(&str) -> bool,
) -> Option<String> {
    for (name, value) in headers {
        let name = name.as_str();
        if is_own(name) || OF_THE_SERVER.contains(&name) {
            continue;
        }
        let is_one = CARRIES_CREDENTIALS.contains(&name)
            || is_secret_name(&name.replace('-', "_"))
            || has_secret(&String::from_utf8_lossy(value.as_bytes()));
        if is_one {
            return Some(format!("the header `{name}`"));
        }
    }
    let in_path = target.path().split(';').skip(1).map(|rest| rest.split('/').next().unwrap_or_default());
    if has_secret(target.path()) || in_path.into_iter().any(is_foreign_parameter) {
        return Some("its path".to_owned());
    }
    let mut in_query = target.query().unwrap_or_default().split(['&', ';']);
    in_query.any(is_foreign_parameter).then(|| "a parameter of its query".to_owned())
}

/// Returns true for a parameter that carries a credential; `a[key]=x` counts as `key`.
fn is_foreign_parameter(pair: &str) -> bool {
    let (written, value) = pair.split_once('=').unwrap_or((pair, ""));
    let name = String::from_utf8_lossy(&percent_decoded(written)).to_ascii_lowercase();
    let mut parts = name.split(['[', ']']);
    if parts.next().is_some_and(|first| OF_LISTS.contains(&first)) && !parts.any(is_known_name) {
        return false;
    }
    let is_named = name.split(['[', ']']).any(is_known_name)
        || name.contains('%')
        || name.starts_with("x-amz-")
        || name.starts_with("x-goog-");
    is_named || has_secret(written) || has_secret(value)
}

fn is_known_name(name: &str) -> bool {
    is_secret_name(&name.replace('-', "_")) || NAMES_IN_QUERIES.contains(&name)
}

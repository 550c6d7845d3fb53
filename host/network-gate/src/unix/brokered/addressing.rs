//! The address of a request, in the version of HTTP that the server speaks.

use hyper::Uri;
use hyper::header::{HOST, HeaderValue, TE};
use hyper::http::request::Parts;
use hyper::http::uri::Scheme;
use portcullis_credential_broker::{Accepted, BrokeredHost, origin_form};
use portcullis_decision::request::Endpoint;

use super::broken::Unanswered;
use super::version::HttpVersion;

/// Addresses a request to the server.
pub(super) fn address(
    parts: &mut Parts,
    host: &BrokeredHost,
    accepted: &Accepted<'_>,
    server: HttpVersion,
) -> Result<(), Unanswered> {
    let name = match (&host.host, host.port) {
        (Endpoint::Domain(name), 443) => name.clone(),
        (host, port) => host.with_port(port),
    };
    let unusable = |error: &dyn std::fmt::Display| Unanswered::Unreachable(error.to_string());
    match server {
        HttpVersion::One => {
            parts.version = hyper::Version::HTTP_11;
            parts.uri = origin_form(accepted.target.clone());
            let name = HeaderValue::from_str(&name).map_err(|error| unusable(&error))?;
            parts.headers.insert(HOST, name);
        }
        HttpVersion::Two => {
            parts.version = hyper::Version::HTTP_2;
            let uri = Uri::builder().scheme(Scheme::HTTPS).authority(name);
            let uri = uri.path_and_query(accepted.target.clone()).build();
            parts.uri = uri.map_err(|error| unusable(&error))?;
            parts.headers.remove(HOST);
            if accepted.takes_trailers {
                parts.headers.insert(TE, HeaderValue::from_static("trailers"));
            }
        }
    }
    Ok(())
}

//! Batches over HTTP.

use std::collections::BTreeMap;
use std::io::ErrorKind;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use ureq::http::StatusCode;
use ureq::tls::{Certificate, RootCerts, TlsConfig};
use ureq::{Agent, Timeout};

use crate::answer::{Accepted, SendError};
use crate::destination::HeaderValue;
use crate::format::Format;
use crate::stream::certificates;

/// How long a batch may take.
const PATIENCE: Duration = Duration::from_secs(60);
/// How long connecting may take.
const CONNECTING: Duration = Duration::from_secs(10);
/// The longest time that a collector can ask to wait.
const WAIT_MAX: Duration = Duration::from_secs(3600);
/// The largest answer that is read.
const ANSWER_MAX: u64 = 64 << 10;
/// The longest text of a collector in messages.
const SAID_MAX: usize = 200;

/// A collector that takes batches over HTTP.
#[derive(Debug)]
pub(crate) struct Http {
    agent: Agent,
    url: String,
    headers: BTreeMap<String, HeaderValue>,
}

impl Http {
    pub(crate) fn new(
        url: &str,
        headers: &BTreeMap<String, HeaderValue>,
        ca: Option<&Path>,
    ) -> Result<Self, SendError> {
        let roots = certificates(ca).map_err(SendError::not_sent)?;
        let roots: Vec<Certificate<'static>> =
            roots.iter().map(|one| Certificate::from_der(one.as_ref()).to_owned()).collect();
        let tls = TlsConfig::builder()
            .root_certs(RootCerts::new_with_certs(&roots))
            .unversioned_rustls_crypto_provider(Arc::new(rustls::crypto::ring::default_provider()))
            .build();
        let agent: Agent = Agent::config_builder()
            .http_status_as_error(false)
            // Records go to the named collector and nowhere else.
            .max_redirects(0)
            .timeout_global(Some(PATIENCE))
            .timeout_connect(Some(CONNECTING))
            .user_agent(concat!("portcullis/", env!("CARGO_PKG_VERSION")))
            .tls_config(tls)
            .build()
            .into();
        Ok(Self { agent, url: url.to_owned(), headers: headers.clone() })
    }

    pub(crate) fn send(&self, format: Format, body: &[u8]) -> Result<Accepted, SendError> {
        let mut request = self.agent.post(&self.url).header("content-type", "application/json");
        for (name, value) in &self.headers {
            let value = value.read().map_err(|reason| {
                SendError::not_sent(format!("the header `{name}` cannot be sent: {reason}"))
            })?;
            request = request.header(name, value);
        }
        let mut answer = request.send(body).map_err(|error| self.failed(&error))?;
        let status = answer.status();
        let wait =
            answer.headers().get("retry-after").and_then(|value| value.to_str().ok()).and_then(seconds);
        let said = answer.body_mut().with_config().limit(ANSWER_MAX).read_to_string().unwrap_or_default();
        if status.is_success() {
            return Ok(format.accepted(&said));
        }
        let text: String = said.chars().filter(|one| (' '..='~').contains(one)).take(SAID_MAX).collect();
        let text = if text.is_empty() { text } else { format!(": {text}") };
        let reason = format!("`{}` answered {status}{text}", self.url);
        Err(match status {
            StatusCode::BAD_REQUEST | StatusCode::PAYLOAD_TOO_LARGE | StatusCode::UNPROCESSABLE_ENTITY => {
                SendError::Refused { reason }
            }
            // The others tell of the collector or its configuration, not of these records.
            _ => SendError::NotSent { reason, wait },
        })
    }

    fn failed(&self, error: &ureq::Error) -> SendError {
        let reason = format!("sending to `{}`: {error}", self.url);
        if has_not_connected(error) { SendError::not_sent(reason) } else { SendError::unclear(reason) }
    }
}

/// Returns true for errors that come before a request is sent.
fn has_not_connected(error: &ureq::Error) -> bool {
    if let ureq::Error::Io(error) = error {
        return is_of_connecting(error.kind());
    }
    matches!(
        error,
        ureq::Error::HostNotFound
            | ureq::Error::ConnectionFailed
            | ureq::Error::Tls(_)
            | ureq::Error::Rustls(_)
            | ureq::Error::BadUri(_)
            | ureq::Error::Timeout(Timeout::Resolve | Timeout::Connect)
    )
}

/// Returns true for errors that only connecting has.
fn is_of_connecting(kind: ErrorKind) -> bool {
    matches!(
        kind,
        ErrorKind::ConnectionRefused
            | ErrorKind::HostUnreachable
            | ErrorKind::NetworkUnreachable
            | ErrorKind::AddrNotAvailable
    )
}

/// Parses `Retry-After` in seconds. A date is not worth a calendar: the usual pause applies.
fn seconds(value: &str) -> Option<Duration> {
    value.trim().parse().ok().map(|seconds| Duration::from_secs(seconds).min(WAIT_MAX))
}

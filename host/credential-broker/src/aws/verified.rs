//! The signature of the gate, with the user's keys.

use std::time::SystemTime;

use hyper::header::{AUTHORIZATION, HOST, HeaderName, HeaderValue};
use hyper::http::request::Parts;

use super::canonical::{PathForm, canonical};
use super::keys::AwsKeys;
use super::names::{ALGORITHM, DATE, OWN_HEADERS, PAYLOAD, TOKEN, amz_date};
use super::scope::Scope;
use super::signature::{hash, signature};

/// A request whose signature by a command was found to be right.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Verified {
    scope: Scope,
    /// The names of the headers that the command has signed.
    names: Vec<String>,
    payload: String,
    path_form: PathForm,
}

impl Verified {
    pub(super) fn new(scope: Scope, names: Vec<String>, payload: String, path_form: PathForm) -> Self {
        Self { scope, names, payload, path_form }
    }

    /// Returns the base of a signature for a request of the gate's own, without a body.
    pub fn of_own_request(service: String, region: String) -> Self {
        let path_form = if service.starts_with("s3") { PathForm::AsSent } else { PathForm::EncodedAgain };
        let scope = Scope { day: String::new(), region, service };
        Self { scope, names: vec![PAYLOAD.to_owned()], payload: hash(b""), path_form }
    }

    /// Returns the header with the hash of the body.
    pub fn payload_header(&self) -> (&'static str, &str) {
        (PAYLOAD, &self.payload)
    }

    /// Signs a request in the form in which it is sent.
    pub fn sign(&self, keys: &AwsKeys, request: &mut Parts, now: SystemTime) -> Result<(), &'static str> {
        let unfit = |_error| "it cannot stand in a header";
        let date = amz_date(now);
        let scope = Scope { day: date.chars().take(8).collect(), ..self.scope.clone() };
        request.headers.insert(DATE, HeaderValue::from_str(&date).map_err(unfit)?);
        request.headers.remove(TOKEN);
        if let Some(token) = keys.token() {
            request.headers.insert(TOKEN, sensitive(token)?);
        }
        let names = self.names(request);
        let canonical = canonical(request, &names, &self.payload, self.path_form);
        let canonical = canonical.ok_or("one of its headers cannot be read")?;
        let signature = signature(keys.secret(), &date, &scope, &canonical);
        let value = format!(
            "{ALGORITHM} Credential={}/{}, SignedHeaders={}, Signature={signature}",
            keys.id(),
            scope.text(),
            names.join(";")
        );
        request.headers.insert(AUTHORIZATION, sensitive(&value)?);
        Ok(())
    }

    /// Returns the headers to sign: those that the command has signed, as far as they are still there, and those that
    /// must be.
    fn names(&self, request: &Parts) -> Vec<String> {
        let kept = self.names.iter().filter(|name| request.headers.contains_key(name.as_str())).cloned();
        let own = request.headers.keys().map(HeaderName::as_str).filter(|name| name.starts_with(OWN_HEADERS));
        let mut names: Vec<String> = kept.chain(own.chain([HOST.as_str()]).map(str::to_owned)).collect();
        names.sort();
        names.dedup();
        names
    }
}

fn sensitive(text: &str) -> Result<HeaderValue, &'static str> {
    let mut value = HeaderValue::from_str(text).map_err(|_error| "it cannot stand in a header")?;
    value.set_sensitive(true);
    Ok(value)
}

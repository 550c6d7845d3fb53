//! A request that a command has signed with its placeholders.

use std::time::{Duration, SystemTime};

use hyper::header::{AUTHORIZATION, HOST, HeaderMap, RANGE};
use hyper::http::request::Parts;
use portcullis_decision::ConnectionRefusal;

use super::canonical::{PathForm, canonical, decoded};
use super::keys::AwsPlaceholders;
use super::names::{ALGORITHM, DATE, OWN_HEADERS, PAYLOAD, TOKEN, amz_date};
use super::scope::{AwsLimits, Scope};
use super::signature::{hash, signature};
use super::verified::Verified;

/// How far the time of a signature may be from now; servers accept no more either.
const SKEW: Duration = Duration::from_secs(15 * 60);
/// Hashes of a body that stand for no hash.
const UNSIGNED: [&str; 2] = ["UNSIGNED-PAYLOAD", "STREAMING-UNSIGNED-PAYLOAD-TRAILER"];
/// Parameters of a query that are a signature.
const SIGNED_QUERY: &str = "x-amz-credential";

/// A signature of a command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Signed {
    pub(super) scope: Scope,
    /// The time, as `X-Amz-Date` has it.
    date: String,
    /// The names of the signed headers, sorted.
    pub(super) names: Vec<String>,
    signature: String,
    /// The hash of the body as the command states it; `None` if the body has to be hashed.
    payload: Option<String>,
}

impl Signed {
    /// Returns the signature in a request with a placeholder; `None` if it has none.
    pub(crate) fn of(
        request: &Parts,
        placeholders: &AwsPlaceholders,
        limits: &AwsLimits,
        now: SystemTime,
    ) -> Result<Option<Self>, ConnectionRefusal> {
        if has_signed_query(request, &placeholders.id) {
            let reason = "it is signed in its query (a presigned URL), and the gate signs headers only; send the \
                          request with the AWS command or library itself";
            return Err(unusable(reason));
        }
        let given = request.headers.get(AUTHORIZATION).and_then(|value| value.to_str().ok());
        let Some(given) = given.filter(|given| given.contains(placeholders.id.as_str())) else {
            return Ok(None);
        };
        let signed = Self::parse(given, request, placeholders)?;
        signed.check_time(now)?;
        signed.check_headers(&request.headers, placeholders)?;
        if let Some(part) = limits.outside(&signed.scope) {
            return Err(unusable(&format!("it is signed for {part}, which the settings do not have")));
        }
        Ok(Some(signed))
    }

    fn parse(
        given: &str,
        request: &Parts,
        placeholders: &AwsPlaceholders,
    ) -> Result<Self, ConnectionRefusal> {
        let rest = given.strip_prefix(ALGORITHM).and_then(|rest| rest.strip_prefix(' '));
        let rest = rest.ok_or_else(|| {
            unusable(&format!(
                "the gate knows the algorithm {ALGORITHM} only; have the client use signature version 4"
            ))
        })?;
        let parts: Vec<&str> = rest.split(',').map(str::trim).collect();
        let malformed = || unusable("its `Authorization` is not as AWS defines it");
        let [credential, names, signature] = parts.as_slice() else { return Err(malformed()) };
        let scope =
            credential.strip_prefix("Credential=").and_then(|text| text.strip_prefix(&placeholders.id));
        let scope = scope.and_then(|text| Scope::parse(text.strip_prefix('/')?)).ok_or_else(malformed)?;
        let names = names.strip_prefix("SignedHeaders=").ok_or_else(malformed)?;
        let names: Vec<String> = names.split(';').map(str::to_owned).collect();
        let signature = signature.strip_prefix("Signature=").ok_or_else(malformed)?;
        let is_digit = |byte: u8| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte);
        if signature.len() != 64 || !signature.bytes().all(is_digit) {
            return Err(malformed());
        }
        let date = only(&request.headers, DATE)?.ok_or_else(|| unusable("it has no header `x-amz-date`"))?;
        let payload = only(&request.headers, PAYLOAD)?.map(|stated| payload(&stated)).transpose()?;
        Ok(Self { scope, date, names, signature: signature.to_owned(), payload })
    }

    fn check_time(&self, now: SystemTime) -> Result<(), ConnectionRefusal> {
        let is_digit = |(at, byte): (usize, u8)| match at {
            8 => byte == b'T',
            15 => byte == b'Z',
            _ => byte.is_ascii_digit(),
        };
        let is_date = self.date.len() == 16 && self.date.bytes().enumerate().all(is_digit);
        if !is_date || !self.date.starts_with(&self.scope.day) {
            return Err(unusable("its time is none, or another than the day of its scope"));
        }
        // Such dates are sorted like texts.
        let (earliest, latest) = (amz_date(now.checked_sub(SKEW).unwrap_or(now)), amz_date(now + SKEW));
        if self.date < earliest || self.date > latest {
            return Err(unusable("it was signed more than 15 minutes ago, or in the future"));
        }
        Ok(())
    }

    /// Checks that everything is signed that counts.
    fn check_headers(
        &self,
        headers: &HeaderMap,
        placeholders: &AwsPlaceholders,
    ) -> Result<(), ConnectionRefusal> {
        if !self.names.is_sorted_by(|one, next| one < next) {
            return Err(unusable("the list of its signed headers is not sorted, or has one twice"));
        }
        if self.names.iter().any(|name| name == AUTHORIZATION.as_str()) {
            return Err(unusable("`Authorization` cannot be signed"));
        }
        let own = headers
            .keys()
            .map(hyper::header::HeaderName::as_str)
            .filter(|name| name.starts_with(OWN_HEADERS));
        for name in own.chain([HOST.as_str()]) {
            if !self.names.iter().any(|signed| signed == name) {
                return Err(unusable(&format!("its header `{name}` is not signed")));
            }
        }
        if only(headers, TOKEN)?.is_some_and(|token| token != placeholders.token) {
            return Err(unusable("its session token is not the placeholder"));
        }
        if headers.contains_key(RANGE) {
            let reason = "it asks for a part of an object, and the answer could not be searched for the credential; ask \
                          for the whole (`aws configure set default.s3.multipart_threshold 5GB`)";
            return Err(unusable(reason));
        }
        Ok(())
    }

    /// Returns true if the signature can only be checked with the body.
    pub(crate) fn needs_body(&self) -> bool {
        self.payload.is_none()
    }

    /// Checks the signature that a command has made with its placeholders. `body` is the whole body, if it was read.
    pub(crate) fn verify(
        &self,
        request: &Parts,
        body: Option<&[u8]>,
        placeholders: &AwsPlaceholders,
    ) -> Result<Verified, ConnectionRefusal> {
        let payload = self.payload.clone().or_else(|| body.map(hash));
        let payload = payload.ok_or_else(|| unusable("its body was not read"))?;
        let is_right = |form: &PathForm| {
            canonical(request, &self.names, &payload, *form).is_some_and(|canonical| {
                // Both are known inside, so the time that the comparison takes tells nothing.
                signature(&placeholders.secret, &self.date, &self.scope, &canonical) == self.signature
            })
        };
        match [PathForm::AsSent, PathForm::EncodedAgain].into_iter().find(is_right) {
            Some(form) => Ok(Verified::new(self.scope.clone(), self.names.clone(), payload, form)),
            None => Err(unusable(
                "its signature is not the one of its secret access key: something has changed the request, or a header \
                 that is signed is missing",
            )),
        }
    }
}

/// Returns the hash of a body, or the word in its place, if the gate can sign with it.
fn payload(stated: &str) -> Result<String, ConnectionRefusal> {
    let is_hash = stated.len() == 64 && stated.bytes().all(|byte| byte.is_ascii_hexdigit());
    if is_hash || UNSIGNED.contains(&stated) {
        return Ok(stated.to_owned());
    }
    Err(unusable(
        "the pieces of its body are signed one by one, and the gate cannot sign those anew; set \
         AWS_REQUEST_CHECKSUM_CALCULATION=when_required, or have the client send the hash of the whole body",
    ))
}

/// Returns the value of a header that a request has at most once.
fn only(headers: &HeaderMap, name: &str) -> Result<Option<String>, ConnectionRefusal> {
    let mut values = headers.get_all(name).iter();
    match (values.next().map(|value| value.to_str()), values.next()) {
        (None, _) => Ok(None),
        (Some(Ok(value)), None) => Ok(Some(value.to_owned())),
        (Some(_), _) => Err(unusable(&format!("its header `{name}` cannot be read, or is there twice"))),
    }
}

/// Returns true if a query has a signature with a placeholder.
fn has_signed_query(request: &Parts, id: &str) -> bool {
    let is_credential = |pair: &str| {
        let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
        decoded(name).eq_ignore_ascii_case(SIGNED_QUERY.as_bytes())
            && decoded(value).starts_with(id.as_bytes())
    };
    request.uri.query().unwrap_or_default().split('&').any(is_credential)
}

pub(super) fn unusable(reason: &str) -> ConnectionRefusal {
    let reason = format!("the request cannot be signed for AWS: {reason}");
    ConnectionRefusal::by_host("host.credential-signature", reason)
}

//! Judges one request to a brokered host, and puts a credential into it.

use std::time::SystemTime;

use hyper::header::{
    ACCEPT_ENCODING, AUTHORIZATION, CONTENT_LENGTH, HOST, HeaderMap, HeaderName, HeaderValue, TE,
    TRANSFER_ENCODING,
};
use hyper::http::request::Parts;
use hyper::http::uri::{PathAndQuery, Scheme};
use hyper::{Method, StatusCode, Uri};
use portcullis_decision::ConnectionRefusal;
use portcullis_decision::pattern::{Coverage, HostName, OperationPattern, RequestPath, RequestPattern};
use portcullis_decision::request::{Endpoint, HttpHead};
use portcullis_text::secrets::has_secret;
use zeroize::Zeroizing;

use super::aws::{self, AwsPlaceholders, Signed, Verified};
use super::basic;
use super::graphql::{Operations, OperationsRule};
use super::host::{BrokeredHost, Credential, Form, RequestLimits};
use super::own_account::{foreign_credential, is_generic_user};
use super::placeholders::Placeholders;
use super::push::Push;
use super::second_path::second_path;
use super::secret::Secret;
use super::well_formed::{is_well_formed, malformed};

/// The port of TLS, which a `Host` header need not name.
const TLS_PORT: u16 = 443;

/// A brokered host, with the placeholders that its requests are searched for.
#[derive(Debug, Clone, Copy)]
pub struct Destination<'a> {
    /// The host.
    pub host: &'a BrokeredHost,
    /// The placeholders.
    pub placeholders: &'a Placeholders,
}

/// A request that may be sent.
#[derive(Debug, PartialEq, Eq)]
pub struct Accepted<'a> {
    /// The credential to be put in.
    pub credential: Option<Use<'a>>,
    /// The head, in the form that policies get.
    pub head: HttpHead,
    /// The target in the form in which it is sent.
    pub target: PathAndQuery,
    /// The largest body, in bytes.
    pub body_max: Option<u64>,
    /// The push that the request is; its body is judged as a whole.
    pub push: Option<Push>,
    /// The operations of GraphQL that its body may have, if a rule says which.
    pub operations: Option<Operations>,
    /// Whether the client takes trailers in the answer.
    pub takes_trailers: bool,
}

/// A credential and its place in a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Use<'a> {
    /// The credential.
    pub credential: &'a Credential,
    place: Place,
}

/// The place of a placeholder in a request.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Place {
    /// After this scheme in `Authorization`.
    Scheme(&'static str),
    /// As the password of this user.
    Password(String),
    /// As the value of this header.
    Whole(HeaderName),
    /// In a signature of AWS.
    Signature(Box<Signed>),
}

impl<'a> Destination<'a> {
    /// Judges the head of a request.
    pub fn judge(&self, request: &Parts) -> Result<Accepted<'a>, ConnectionRefusal> {
        is_well_formed(request)?;
        self.names_this_host(request)?;
        let target = request.uri.path_and_query().cloned();
        let target = target.ok_or_else(|| malformed("it names no path"))?;
        let credential = self.credential(request)?;
        self.has_no_other_placeholder(request, &target, credential.as_ref())?;
        let path = RequestPath::parse(target.path());
        if path.is_none() && (credential.is_some() || self.host.requests.is_some()) {
            let reason =
                format!("servers read the path {} in different ways, so no rule matches it", target.path());
            return Err(ConnectionRefusal::by_host("host.ambiguous-path", reason));
        }
        self.names_no_other_path(request, credential.as_ref())?;
        let mut permitted = Vec::new();
        if let Some(Use { credential, .. }) = &credential {
            let rule = OperationsRule::Purpose(credential.name.clone());
            permitted.extend(credential.serves(request, &target, path.as_ref())?.map(|some| (rule, some)));
        }
        if let Some(limits) = &self.host.requests {
            let operations = limits.permit(request, &target, path.as_ref(), credential.as_ref())?;
            permitted.extend(operations.map(|some| (OperationsRule::Requests, some)));
        }
        let push = Push::of(&self.host.pushes, request, path.as_ref())?;
        let operations = Operations::new(permitted, request, push.is_some())?;
        let head = self.head(request, &target);
        let body_max = self.host.requests.as_ref().and_then(|limits| limits.body_max);
        let takes_trailers = takes_trailers(&request.headers);
        Ok(Accepted { credential, head, target, body_max, push, operations, takes_trailers })
    }

    /// Checks that the request is for the host that the connection goes to.
    fn names_this_host(&self, request: &Parts) -> Result<(), ConnectionRefusal> {
        let mut named = request.headers.get_all(HOST).iter();
        let (Some(host), None) = (named.next(), named.next()) else {
            return Err(malformed("it does not have exactly one `Host`"));
        };
        let is_this = host.to_str().is_ok_and(|text| self.is_authority(text));
        let is_usual_target = match (request.uri.scheme(), request.uri.authority()) {
            (None, None) => request.uri.path().starts_with('/'),
            (Some(scheme), Some(authority)) => {
                let is_path = request.uri.path().starts_with('/');
                *scheme == Scheme::HTTPS && self.is_authority(authority.as_str()) && is_path
            }
            (Some(_), None) | (None, Some(_)) => false,
        };
        if is_this && is_usual_target {
            return Ok(());
        }
        let reason = format!("it is for another server than `{}`", self.host.host);
        Err(ConnectionRefusal::by_host("host.other-server", reason))
    }

    /// Returns true if `text` is this host, with or without the port.
    fn is_authority(&self, text: &str) -> bool {
        let (name, port) = match text.rsplit_once(':') {
            Some((name, port)) if !name.contains(':') || name.ends_with(']') => (name, port.parse().ok()),
            _ => (text, Some(TLS_PORT)),
        };
        let is_this = HostName::parse(name).is_ok_and(|endpoint: Endpoint| endpoint == self.host.host);
        is_this && port == Some(self.host.port)
    }

    /// Returns the credential whose placeholder stands in its declared place.
    fn credential(&self, request: &Parts) -> Result<Option<Use<'a>>, ConnectionRefusal> {
        let mut found = None;
        for credential in &self.host.credentials {
            let Some(place) = place_of(credential, request)? else { continue };
            if found.replace(Use { credential, place }).is_some() {
                return Err(malformed("it has more than one credential"));
            }
        }
        Ok(found)
    }

    /// Refuses a placeholder anywhere but in the declared place.
    fn has_no_other_placeholder(
        &self,
        request: &Parts,
        target: &PathAndQuery,
        declared: Option<&Use<'a>>,
    ) -> Result<(), ConnectionRefusal> {
        let stopped = |what: String, place: &str| {
            let reason = format!("{what} stands in {place}, where the settings do not have it");
            Err(ConnectionRefusal::by_host("host.placeholder", reason))
        };
        if let Some(what) = self.placeholders.found_in(target.as_str().as_bytes()) {
            return stopped(what, "the target of the request");
        }
        if let Some(Place::Password(user)) = declared.map(|declared| &declared.place)
            && let Some(what) = self.placeholders.found_in(user.as_bytes())
        {
            return stopped(what, "the user name");
        }
        for (name, value) in &request.headers {
            if let Some(what) = self.placeholders.found_in(name.as_str().as_bytes()) {
                return stopped(what, "the name of a header");
            }
            if declared.is_some_and(|declared| declared.is_in(name.as_str())) {
                continue;
            }
            if let Some(what) = self.placeholders.found_in(value.as_bytes()) {
                return stopped(what, &format!("the header `{name}`"));
            }
        }
        Ok(())
    }

    /// Refuses a request that names a second path, unless the rules permit every path.
    fn names_no_other_path(
        &self,
        request: &Parts,
        credential: Option<&Use<'_>>,
    ) -> Result<(), ConnectionRefusal> {
        let Some(name) = second_path(request) else { return Ok(()) };
        let reason =
            |rules: &str| format!("`{name}` names a second path, which only `* /**` in {rules} permits");
        if let Some(Use { credential, .. }) = credential
            && !Coverage::is_everything(&credential.purpose)
        {
            let reason = reason(&format!("`for` of the credential `{}`", credential.name));
            return Err(ConnectionRefusal::by_host("host.credential-purpose", reason));
        }
        if let Some(limits) = &self.host.requests
            && !Coverage::is_everything(&limits.allow)
        {
            return Err(ConnectionRefusal::by_host("host.request-rule", reason("`network.requests`")));
        }
        Ok(())
    }

    fn head(&self, request: &Parts, target: &PathAndQuery) -> HttpHead {
        let port = if self.host.port == TLS_PORT { String::new() } else { format!(":{}", self.host.port) };
        let host = match &self.host.host {
            Endpoint::Address(address) if address.is_ipv6() => format!("[{address}]"),
            other @ (Endpoint::Domain(_) | Endpoint::Address(_)) => other.to_string(),
        };
        HttpHead {
            method: request.method.to_string(),
            url: format!("https://{host}{port}{target}"),
            header_names: request.headers.keys().map(|name| name.as_str().to_owned()).collect(),
        }
    }
}

fn takes_trailers(headers: &HeaderMap) -> bool {
    let lists = headers.get_all(TE).iter().filter_map(|list| list.to_str().ok());
    lists.flat_map(|list| list.split(',')).any(|one| one.trim().eq_ignore_ascii_case("trailers"))
}

fn has_body(headers: &HeaderMap) -> bool {
    let is_empty = |length: &HeaderValue| length.as_bytes() == b"0";
    headers.contains_key(TRANSFER_ENCODING) || headers.get(CONTENT_LENGTH).is_some_and(|one| !is_empty(one))
}

/// Returns true for a request to a place where rules permit some operations of GraphQL, if servers could read one
/// elsewhere than in the body of a POST.
fn may_hide_operations(patterns: &[RequestPattern], request: &Parts, path: Option<&RequestPath>) -> bool {
    let posted = path.map_or(Coverage::None, |path| Coverage::of(patterns, "POST", path));
    matches!(posted, Coverage::Operations(_))
        && request.method != Method::POST
        && (request.uri.query().is_some() || has_body(&request.headers))
}

impl Credential {
    /// Checks that a request is one that the credential is for. If that depends on the GraphQL in its body, the operations
    /// are returned.
    fn serves(
        &self,
        request: &Parts,
        target: &PathAndQuery,
        path: Option<&RequestPath>,
    ) -> Result<Option<Vec<OperationPattern>>, ConnectionRefusal> {
        let method = request.method.as_str();
        if may_hide_operations(&self.purpose, request, path) {
            let reason = format!(
                "the credential `{}` is for some operations of GraphQL at {}, which {method} could send in another \
                 way",
                self.name,
                target.path()
            );
            return Err(ConnectionRefusal::by_host("host.credential-purpose", reason));
        }
        match path.map_or(Coverage::None, |path| Coverage::of(&self.purpose, method, path)) {
            Coverage::Whole => Ok(None),
            Coverage::Operations(operations) => Ok(Some(operations)),
            Coverage::None => {
                let reason = format!("the credential `{}` is not for {method} {}", self.name, target.path());
                Err(ConnectionRefusal::by_host("host.credential-purpose", reason))
            }
        }
    }
}

impl RequestLimits {
    /// Checks that a request is permitted. If that depends on the GraphQL in its body, the operations are returned.
    fn permit(
        &self,
        request: &Parts,
        target: &PathAndQuery,
        path: Option<&RequestPath>,
        credential: Option<&Use<'_>>,
    ) -> Result<Option<Vec<OperationPattern>>, ConnectionRefusal> {
        let refused = |reason: String| Err(ConnectionRefusal::by_host("host.request-rule", reason));
        let method = request.method.as_str();
        if may_hide_operations(&self.allow, request, path) {
            return refused(format!(
                "`network.requests` allows some operations of GraphQL at {}, which {method} could send in another way",
                target.path()
            ));
        }
        let operations = match path.map_or(Coverage::None, |path| Coverage::of(&self.allow, method, path)) {
            Coverage::Whole => None,
            Coverage::Operations(operations) => Some(operations),
            Coverage::None => {
                return refused(format!("no rule in `network.requests` allows {method} {}", target.path()));
            }
        };
        if let Some(missing) = self.headers.iter().find(|name| !request.headers.contains_key(name.as_str())) {
            return refused(format!("the request has no header `{missing}`, which `network.requests` wants"));
        }
        let length = request.headers.get(CONTENT_LENGTH).and_then(|value| value.to_str().ok());
        let length = length.and_then(|length| length.parse::<u64>().ok());
        if let (Some(most), Some(length)) = (self.body_max, length)
            && length > most
        {
            return refused(format!("the request has {length} bytes, `network.requests` allows {most}"));
        }
        if self.own_account_only {
            let is_own = |name: &str| credential.is_some_and(|declared| declared.is_in(name));
            if let Some(what) = foreign_credential(&request.headers, target, is_own) {
                let reason = format!("{what} may hold a credential that the settings do not have");
                return Err(ConnectionRefusal::by_host("host.other-account", reason));
            }
            if credential.is_some_and(Use::may_name_an_account) {
                let reason = "the user name before the credential may be a key for another account; the settings can \
                              say which name is sent, as `user` of the credential";
                return Err(ConnectionRefusal::by_host("host.other-account", reason));
            }
            // A key could stand in the body, which some servers also read with GET.
            if credential.is_none() && (!request.method.is_safe() || has_body(&request.headers)) {
                let what = if request.method.is_safe() { "a body" } else { method };
                let reason =
                    format!("{what} without a credential of the settings may be for another account");
                return Err(ConnectionRefusal::by_host("host.other-account", reason));
            }
        }
        Ok(operations)
    }
}

impl Use<'_> {
    /// Returns true if the credential is in this header.
    fn is_in(&self, header: &str) -> bool {
        match &self.place {
            Place::Scheme(_) | Place::Password(_) => header == AUTHORIZATION.as_str(),
            Place::Whole(name) => header == name.as_str(),
            Place::Signature(_) => header == AUTHORIZATION.as_str() || header == aws::TOKEN,
        }
    }

    /// Returns true if the command has chosen a user name that a server may take as a key.
    fn may_name_an_account(&self) -> bool {
        let is_chosen = matches!(self.credential.form, Form::Basic { user: None });
        matches!(&self.place, Place::Password(user) if is_chosen && !is_generic_user(user))
    }

    /// Returns true if the request is signed with the credential.
    pub fn signs(&self) -> bool {
        matches!(self.place, Place::Signature(_))
    }

    /// Returns true if the credential can only be used with the whole body.
    pub fn needs_body(&self) -> bool {
        matches!(&self.place, Place::Signature(signed) if signed.needs_body())
    }

    /// Checks the signature of a command, if the credential is one that signs. `body` is the whole body, if it was
    /// read.
    pub fn verify(
        &self,
        request: &Parts,
        body: Option<&[u8]>,
    ) -> Result<Option<Verified>, ConnectionRefusal> {
        let Place::Signature(signed) = &self.place else { return Ok(None) };
        let placeholders = AwsPlaceholders::of(&self.credential.placeholder);
        signed.verify(request, body, &placeholders).map(Some)
    }

    /// Returns true if a server may answer like this because the credential is an old one.
    pub fn may_be_refused_with(&self, status: StatusCode) -> bool {
        match &self.place {
            // S3 answers with 400 to a token that has expired, other services of AWS with 403.
            Place::Signature(_) => matches!(status.as_u16(), 400 | 401 | 403),
            Place::Scheme(_) | Place::Password(_) | Place::Whole(_) => status == StatusCode::UNAUTHORIZED,
        }
    }

    /// Puts the credential into its place. A request that is signed keeps its placeholders until [`Self::sign`].
    pub fn fill(&self, secret: &Secret, headers: &mut HeaderMap) -> Result<(), &'static str> {
        // The gate finds the credential in an answer only if it can read it.
        headers.insert(ACCEPT_ENCODING, HeaderValue::from_static("identity"));
        let text = || secret.text().ok_or("it is no text, as its form wants it");
        let (header, value) = match &self.place {
            Place::Scheme(scheme) => (&AUTHORIZATION, Zeroizing::new(format!("{scheme} {}", text()?))),
            Place::Password(user) => {
                (&AUTHORIZATION, Zeroizing::new(format!("Basic {}", *basic::encode(user, text()?))))
            }
            Place::Whole(name) => (name, Zeroizing::new(text()?.to_owned())),
            Place::Signature(_) => return Ok(()),
        };
        let mut value = HeaderValue::from_str(&value).map_err(|_| "it cannot stand in a header")?;
        value.set_sensitive(true);
        headers.insert(header, value);
        Ok(())
    }

    /// Signs a request in the form in which it is sent, if the credential is one that signs. The signature of the
    /// command must have been checked.
    pub fn sign(
        &self,
        secret: &Secret,
        request: &mut Parts,
        verified: Option<&Verified>,
    ) -> Result<(), &'static str> {
        if !self.signs() {
            return Ok(());
        }
        let keys = secret.aws().ok_or("it is no key of AWS, as its form wants it")?;
        let verified = verified.ok_or("the signature of the command was not checked")?;
        verified.sign(keys, request, SystemTime::now())
    }
}

/// Returns the place of a placeholder if it is the declared one.
fn place_of(credential: &Credential, request: &Parts) -> Result<Option<Place>, ConnectionRefusal> {
    let Form::Aws(limits) = &credential.form else { return Ok(place_of_text(credential, &request.headers)) };
    let placeholders = AwsPlaceholders::of(&credential.placeholder);
    let signed = Signed::of(request, &placeholders, limits, SystemTime::now())?;
    Ok(signed.map(|signed| Place::Signature(Box::new(signed))))
}

/// Returns the place of a placeholder that stands for a text.
fn place_of_text(credential: &Credential, headers: &HeaderMap) -> Option<Place> {
    let scheme_and_value = || headers.get(AUTHORIZATION)?.to_str().ok()?.split_once(' ');
    let is_placeholder = |text: &str| text == credential.placeholder;
    match &credential.form {
        Form::Bearer => {
            let (scheme, value) = scheme_and_value()?;
            let known = ["Bearer", "token"].into_iter().find(|known| scheme.eq_ignore_ascii_case(known))?;
            is_placeholder(value.trim()).then_some(Place::Scheme(known))
        }
        Form::Basic { user } => {
            let (scheme, value) = scheme_and_value()?;
            let (sent, password) =
                basic::decode(value.trim()).filter(|_| scheme.eq_ignore_ascii_case("basic"))?;
            // Some servers take the name as a key, which would be that of another account.
            let is_name = user.is_some() || !has_secret(&sent);
            (is_placeholder(&password) && is_name).then(|| Place::Password(user.clone().unwrap_or(sent)))
        }
        Form::Header(name) => {
            let name = HeaderName::from_bytes(name.as_bytes()).ok()?;
            let mut values = headers.get_all(&name).iter();
            let (Some(value), None) = (values.next(), values.next()) else { return None };
            value.to_str().is_ok_and(is_placeholder).then_some(Place::Whole(name))
        }
        Form::Aws(_) => None,
    }
}

/// Returns the target of a request as a client of a server writes it.
pub fn origin_form(target: PathAndQuery) -> Uri {
    Uri::from(target)
}

#[cfg(test)]
mod tests;

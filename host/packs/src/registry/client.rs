//! Asks registries, as the distribution specification of OCI says.
//!
//! Nothing that comes from a registry is believed: every answer has a limit, and what was asked for by digest is
//! compared with it.

use std::sync::Arc;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::Deserialize;
use ureq::http::{HeaderMap, Method, Request, Response, StatusCode};
use ureq::tls::{Certificate, RootCerts, TlsConfig};
use ureq::{Agent, Body};

use super::RegistryError;
use super::artifact::{self, Artifact, Descriptor, MANIFEST, MANIFEST_MAX, Manifest};
use super::credentials::Credentials;
use super::reference::{Reference, is_loopback};
use crate::signature::{Signatures, TEXT_MAX};
use crate::store::{COMPONENT_MAX, Signed};

/// How long one exchange may take.
const PATIENCE: Duration = Duration::from_secs(300);
/// How long a connection may take.
const CONNECTING: Duration = Duration::from_secs(20);
/// Largest list of tags, in bytes of one page.
const TAGS_MAX: u64 = 4 << 20;
/// Most pages of tags.
const PAGES_MAX: usize = 50;
/// Longest text of an error that is shown.
const SAID_MAX: usize = 300;

/// A client of registries.
#[derive(Debug)]
pub struct Registry {
    /// For this machine, where nothing is between the registry and us.
    local: Agent,
    /// For all others: whatever they redirect to is asked by TLS as well.
    remote: Agent,
    credentials: Credentials,
    /// The proof of who we are, and for which registry, once that has said how it wants it.
    authorization: Option<(String, String)>,
}

/// What is sent.
struct Sent<'a> {
    method: Method,
    url: String,
    headers: Vec<(&'static str, &'a str)>,
    body: &'a [u8],
    what: String,
}

impl Registry {
    /// Makes a client; the certificates are those of the system, or of SSL_CERT_FILE.
    #[must_use]
    pub fn new(credentials: Credentials) -> Self {
        let found = rustls_native_certs::load_native_certs();
        let roots: Vec<Certificate<'static>> =
            found.certs.iter().map(|one| Certificate::from_der(one.as_ref()).to_owned()).collect();
        let tls = TlsConfig::builder()
            .root_certs(RootCerts::new_with_certs(&roots))
            .unversioned_rustls_crypto_provider(Arc::new(rustls::crypto::ring::default_provider()))
            .build();
        let agent = |tls_only: bool| -> Agent {
            Agent::config_builder()
                .http_status_as_error(false)
                .https_only(tls_only)
                .max_redirects(5)
                .timeout_global(Some(PATIENCE))
                .timeout_connect(Some(CONNECTING))
                .user_agent(concat!("portcullis/", env!("CARGO_PKG_VERSION")))
                .tls_config(tls.clone())
                .build()
                .into()
        };
        Self { local: agent(false), remote: agent(true), credentials, authorization: None }
    }

    fn agent(&self, of: &Reference) -> &Agent {
        if of.is_local() { &self.local } else { &self.remote }
    }

    /// Puts a component there, with its signatures. Gives the digest of its manifest.
    ///
    /// # Errors
    /// When the registry does not take it.
    pub fn push(
        &mut self,
        to: &Reference,
        signed: &Signed,
        imports: &[String],
        exports: &[String],
    ) -> Result<String, RegistryError> {
        let component = artifact::of_component(&signed.bytes, imports, exports);
        self.refuse_other_bytes(to, &signed.bytes)?;
        if !signed.signatures.is_empty() {
            // First, so that nobody sees the component without them.
            let tag = artifact::signature_tag(&signed.bytes);
            self.put(&to.tagged(&tag), &artifact::of_signatures(&signed.signatures))?;
        }
        self.put(to, &component)?;
        Ok(format!("sha256:{}", crate::digest(&component.manifest)))
    }

    /// A version means the same bytes for ever.
    fn refuse_other_bytes(&mut self, to: &Reference, component: &[u8]) -> Result<(), RegistryError> {
        let there = match self.manifest(to) {
            Err(RegistryError::Missing(_)) => return Ok(()),
            there => Manifest::parse(&there?)?,
        };
        let digest = format!("sha256:{}", crate::digest(component));
        match there.component() {
            Ok(layer) if layer.digest == digest => Ok(()),
            Ok(_) | Err(_) => Err(RegistryError::Taken(to.to_string())),
        }
    }

    /// Gets a component with its signatures.
    ///
    /// # Errors
    /// When it is not there, is no policy, or is not what was asked for.
    pub fn pull(&mut self, from: &Reference) -> Result<Signed, RegistryError> {
        let manifest = Manifest::parse(&self.manifest(from)?)?;
        let component = self.blob(from, manifest.component()?, COMPONENT_MAX)?;
        let signatures = self.signatures(from, &component)?;
        Ok(Signed { bytes: component, signatures })
    }

    /// The tags of a repository.
    ///
    /// # Errors
    /// When it is not there, or the answer cannot be used.
    pub fn tags(&mut self, of: &Reference) -> Result<Vec<String>, RegistryError> {
        #[derive(Deserialize)]
        struct Page {
            #[serde(default)]
            tags: Option<Vec<String>>,
        }
        let mut tags = Vec::new();
        let mut url = format!("{}/tags/list?n=1000", root(of));
        for _ in 0..PAGES_MAX {
            let what = format!("the list of versions of `{}`", of.place());
            let response = self.send(of, &get(url.clone(), &what, "application/json"))?;
            let next = next_page(response.headers()).map(|next| absolute(of, &next));
            let bytes = body(of, response, &what, TAGS_MAX)?;
            let page: Page = serde_json::from_slice(&bytes).map_err(RegistryError::Manifest)?;
            tags.extend(page.tags.unwrap_or_default());
            match next {
                Some(next) if is_same_host(of, &next) => url = next,
                Some(_) | None => break,
            }
        }
        Ok(tags)
    }

    /// The signatures of a component; none where nobody has put any there.
    fn signatures(&mut self, from: &Reference, component: &[u8]) -> Result<Signatures, RegistryError> {
        let bytes = match self.manifest(&from.tagged(&artifact::signature_tag(component))) {
            Err(RegistryError::Missing(_)) => return Ok(Signatures::default()),
            bytes => bytes?,
        };
        let manifest = Manifest::parse(&bytes)?;
        let mut texts = [String::new(), String::new()];
        for (text, layer) in texts.iter_mut().zip(manifest.signatures()) {
            if let Some(layer) = layer {
                let bytes = self.blob(from, layer, TEXT_MAX as u64)?;
                *text = String::from_utf8(bytes)
                    .map_err(|_| RegistryError::Shape("a signature is no text".to_owned()))?;
            }
        }
        let [ssh, minisign] = &texts;
        Signatures::parse(ssh, minisign).map_err(RegistryError::Signatures)
    }

    fn manifest(&mut self, of: &Reference) -> Result<Vec<u8>, RegistryError> {
        let name = of.digest.as_deref().or(of.tag.as_deref()).unwrap_or("latest");
        let what = format!("the artifact `{of}`");
        let response = self.send(of, &get(format!("{}/manifests/{name}", root(of)), &what, MANIFEST))?;
        let bytes = body(of, response, &what, MANIFEST_MAX)?;
        match &of.digest {
            Some(digest) => same(digest, bytes),
            None => Ok(bytes),
        }
    }

    fn blob(&mut self, of: &Reference, blob: &Descriptor, max: u64) -> Result<Vec<u8>, RegistryError> {
        let what = format!("the blob `{}` of `{}`", blob.digest, of.place());
        if blob.size > max {
            return Err(RegistryError::TooLarge { host: of.host.clone(), what, max });
        }
        let url = format!("{}/blobs/{}", root(of), blob.digest);
        let response = self.send(of, &get(url, &what, "application/octet-stream"))?;
        same(&blob.digest, body(of, response, &what, blob.size)?)
    }

    fn put(&mut self, to: &Reference, artifact: &Artifact) -> Result<(), RegistryError> {
        for blob in &artifact.blobs {
            self.put_blob(to, blob)?;
        }
        let name = to.tag.as_deref().unwrap_or("latest");
        let sent = Sent {
            method: Method::PUT,
            url: format!("{}/manifests/{name}", root(to)),
            headers: vec![("content-type", MANIFEST)],
            body: &artifact.manifest,
            what: format!("taking `{to}`"),
        };
        self.send(to, &sent).map(drop)
    }

    fn put_blob(&mut self, to: &Reference, blob: &[u8]) -> Result<(), RegistryError> {
        let digest = format!("sha256:{}", crate::digest(blob));
        let what = format!("the blob `{digest}`");
        let there = Sent {
            method: Method::HEAD,
            url: format!("{}/blobs/{digest}", root(to)),
            headers: Vec::new(),
            body: &[],
            what: what.clone(),
        };
        match self.send(to, &there) {
            Err(RegistryError::Missing(_)) => {}
            known => return known.map(drop),
        }
        let begin = Sent {
            method: Method::POST,
            url: format!("{}/blobs/uploads/", root(to)),
            headers: Vec::new(),
            body: &[],
            what: format!("the upload of {what}"),
        };
        let begun = self.send(to, &begin)?;
        let place = begun.headers().get("location").and_then(|place| place.to_str().ok());
        let place = place.ok_or_else(|| RegistryError::Missing(format!("the place for {what}")))?;
        let mut url = absolute(to, place);
        url.push(if url.contains('?') { '&' } else { '?' });
        url.push_str(&format!("digest={digest}"));
        let upload = Sent {
            method: Method::PUT,
            url,
            headers: vec![("content-type", "application/octet-stream")],
            body: blob,
            what: format!("the upload of {what}"),
        };
        self.send(to, &upload).map(drop)
    }

    /// Sends a request, once more with a proof of who we are where the registry wants one.
    fn send(&mut self, to: &Reference, sent: &Sent<'_>) -> Result<Response<Body>, RegistryError> {
        let mut response = self.send_once(to, sent)?;
        if response.status() == StatusCode::UNAUTHORIZED {
            let challenge = response.headers().get("www-authenticate").and_then(|text| text.to_str().ok());
            let proof = self.prove(to, challenge.unwrap_or_default())?;
            self.authorization = proof.map(|proof| (to.host.clone(), proof));
            if self.authorization.is_some() {
                response = self.send_once(to, sent)?;
            }
        }
        let status = response.status();
        if status.is_success() {
            return Ok(response);
        }
        if status == StatusCode::NOT_FOUND {
            return Err(RegistryError::Missing(sent.what.clone()));
        }
        let said = response.body_mut().with_config().limit(64 << 10).read_to_string().unwrap_or_default();
        let said: String =
            said.chars().filter(|character| (' '..='~').contains(character)).take(SAID_MAX).collect();
        let hint = if status == StatusCode::UNAUTHORIZED { "; `docker login` keeps credentials" } else { "" };
        let said = if said.is_empty() { hint.to_owned() } else { format!(": {said}{hint}") };
        let what = sent.what.clone();
        Err(RegistryError::Status { host: to.host.clone(), status: status.as_u16(), what, said })
    }

    fn send_once(&self, to: &Reference, sent: &Sent<'_>) -> Result<Response<Body>, RegistryError> {
        let failed = |source: ureq::Error| RegistryError::Transport {
            host: to.host.clone(),
            source: Box::new(source),
        };
        let mut request = Request::builder().method(sent.method.clone()).uri(&sent.url);
        for (name, value) in &sent.headers {
            request = request.header(*name, *value);
        }
        // A place for uploads may be somebody else's.
        let own =
            self.authorization.as_ref().filter(|(host, _)| *host == to.host && is_same_host(to, &sent.url));
        if let Some((_, authorization)) = own {
            request = request.header("authorization", authorization.as_str());
        }
        let answered = if sent.method == Method::GET || sent.method == Method::HEAD {
            request.body(()).map_err(ureq::Error::from).and_then(|request| self.agent(to).run(request))
        } else {
            request.body(sent.body).map_err(ureq::Error::from).and_then(|request| self.agent(to).run(request))
        };
        answered.map_err(failed)
    }

    /// Answers a challenge; none: there is nothing to answer it with.
    fn prove(&self, to: &Reference, challenge: &str) -> Result<Option<String>, RegistryError> {
        let pair = self
            .credentials
            .find(&to.host)
            .map_err(|reason| RegistryError::Credentials { host: to.host.clone(), reason })?;
        let basic = pair.map(|pair| format!("Basic {}", STANDARD.encode(pair)));
        let Some(parameters) = challenge.strip_prefix("Bearer ") else { return Ok(basic) };
        let parameter = |name: &str| parameter(parameters, name);
        let realm = parameter("realm").unwrap_or_default();
        let is_safe = realm.starts_with("https://")
            || to.is_local() && realm.strip_prefix("http://").is_some_and(|rest| is_loopback(host_of(rest)));
        if !is_safe {
            return Err(RegistryError::Realm { host: to.host.clone(), realm });
        }
        let mut url = format!("{realm}{}", if realm.contains('?') { '&' } else { '?' });
        for name in ["service", "scope"] {
            if let Some(value) = parameter(name) {
                url.push_str(&format!("{name}={}&", escaped(&value)));
            }
        }
        self.token(to, url.trim_end_matches(['&', '?']), basic.as_deref()).map(Some)
    }

    fn token(&self, to: &Reference, url: &str, basic: Option<&str>) -> Result<String, RegistryError> {
        #[derive(Deserialize)]
        struct Token {
            #[serde(default)]
            token: String,
            #[serde(default)]
            access_token: String,
        }
        let failed = |source: ureq::Error| RegistryError::Transport {
            host: to.host.clone(),
            source: Box::new(source),
        };
        let mut request = self.agent(to).get(url);
        if let Some(basic) = basic {
            request = request.header("authorization", basic);
        }
        let response = request.call().map_err(failed)?;
        let status = response.status();
        let what = "a token".to_owned();
        if !status.is_success() {
            let (host, said) = (to.host.clone(), "; `docker login` keeps credentials".to_owned());
            return Err(RegistryError::Status { host, status: status.as_u16(), what, said });
        }
        let bytes = body(to, response, &what, MANIFEST_MAX)?;
        let Token { token, access_token } =
            serde_json::from_slice(&bytes).map_err(RegistryError::Manifest)?;
        Ok(format!("Bearer {}", if token.is_empty() { access_token } else { token }))
    }
}

fn get<'a>(url: String, what: &str, accept: &'static str) -> Sent<'a> {
    Sent { method: Method::GET, url, headers: vec![("accept", accept)], body: &[], what: what.to_owned() }
}

/// Plain HTTP is spoken with this very machine only.
fn root(of: &Reference) -> String {
    format!("{}/v2/{}", origin(of), of.repository)
}

fn origin(of: &Reference) -> String {
    format!("{}://{}", if of.is_local() { "http" } else { "https" }, of.host)
}

fn absolute(of: &Reference, place: &str) -> String {
    if place.starts_with('/') { format!("{}{place}", origin(of)) } else { place.to_owned() }
}

fn is_same_host(of: &Reference, url: &str) -> bool {
    url.strip_prefix(&origin(of)).is_some_and(|rest| rest.starts_with('/'))
}

/// Host and port of what follows `http://`.
fn host_of(rest: &str) -> &str {
    rest.split(['/', '?', '#']).next().unwrap_or_default()
}

/// Reads an answer of at most `max` bytes.
fn body(of: &Reference, response: Response<Body>, what: &str, max: u64) -> Result<Vec<u8>, RegistryError> {
    let read = response.into_body().into_with_config().limit(max + 1).read_to_vec();
    match read {
        Ok(bytes) if bytes.len() as u64 <= max => Ok(bytes),
        Ok(_) | Err(ureq::Error::BodyExceedsLimit(_)) => {
            Err(RegistryError::TooLarge { host: of.host.clone(), what: what.to_owned(), max })
        }
        Err(source) => Err(RegistryError::Transport { host: of.host.clone(), source: Box::new(source) }),
    }
}

fn same(wanted: &str, bytes: Vec<u8>) -> Result<Vec<u8>, RegistryError> {
    let found = format!("sha256:{}", crate::digest(&bytes));
    if found == wanted { Ok(bytes) } else { Err(RegistryError::Digest { wanted: wanted.to_owned(), found }) }
}

/// The address of the next page: `Link: </v2/...>; rel="next"`.
fn next_page(headers: &HeaderMap) -> Option<String> {
    let link = headers.get("link")?.to_str().ok()?;
    let (place, rest) = link.strip_prefix('<')?.split_once('>')?;
    rest.contains("next").then(|| place.to_owned())
}

/// A parameter of a challenge: `realm="...",service="..."`.
fn parameter(parameters: &str, name: &str) -> Option<String> {
    let mut rest = parameters;
    while let Some((key, after)) = rest.split_once("=\"") {
        let (value, next) = after.split_once('"')?;
        if key.trim_start_matches([',', ' ']) == name {
            return Some(value.to_owned());
        }
        rest = next;
    }
    None
}

/// Writes a text as part of a query.
fn escaped(text: &str) -> String {
    let one = |byte: u8| match byte {
        b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' => char::from(byte).to_string(),
        other => format!("%{other:02X}"),
    };
    text.bytes().map(one).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn challenges_are_read() {
        let text = "realm=\"https://a.test/token\",service=\"a.test\",scope=\"repository:a/b:pull,push\"";
        assert_eq!(parameter(text, "realm").as_deref(), Some("https://a.test/token"));
        assert_eq!(parameter(text, "scope").as_deref(), Some("repository:a/b:pull,push"));
        assert_eq!(parameter(text, "alm"), None);
        assert_eq!(escaped("repository:a/b"), "repository%3Aa%2Fb");
    }

    #[test]
    fn credentials_stay_with_their_host() {
        let of = Reference::parse("localhost:5000/a").unwrap();
        for (url, same) in [
            ("http://localhost:5000/v2/a", true),
            ("http://localhost:50001/v2/a", false),
            ("http://localhost:5000.evil.test/v2/a", false),
            ("https://localhost:5000/v2/a", false),
        ] {
            assert_eq!(is_same_host(&of, url), same, "{url}");
        }
        let client = Registry::new(Credentials::default());
        for realm in ["http://evil.test/token", "ftp://a", "", "http://localhost@evil.test/"] {
            let refused = client.prove(&of, &format!("Bearer realm=\"{realm}\""));
            assert!(matches!(refused, Err(RegistryError::Realm { .. })), "{realm}");
        }
    }
}

//! One request to a registry and its answer, within limits.

use std::io::Read as _;

use ureq::Body;
use ureq::http::{HeaderMap, Method, Request, Response, StatusCode};

use super::RegistryError;
use super::client::{Registry, Transfer};
use super::reference::Reference;

/// Number of bytes between two progress reports.
const PART: u64 = 256 << 10;
/// Largest length of a registry's error text in messages.
const SAID_MAX: usize = 300;

/// A request to a registry.
pub(super) struct Sent<'a> {
    pub(super) method: Method,
    pub(super) url: String,
    pub(super) headers: Vec<(&'static str, &'a str)>,
    pub(super) body: &'a [u8],
    pub(super) what: String,
}

impl Registry {
    /// Sends a request. If the registry asks for authorization, sends it once more with a proof.
    pub(super) fn send(&mut self, to: &Reference, sent: &Sent<'_>) -> Result<Response<Body>, RegistryError> {
        // Requests with a body report their size instead.
        if sent.body.is_empty() {
            (self.tell)(Transfer::Asking);
        }
        let answered = self.answered(to, sent);
        (self.tell)(Transfer::Over);
        answered
    }

    fn answered(&mut self, to: &Reference, sent: &Sent<'_>) -> Result<Response<Body>, RegistryError> {
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
        // An upload location may be on another host, which must not get the credentials.
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
}

pub(super) fn get<'a>(url: String, what: &str, accept: &'static str) -> Sent<'a> {
    Sent { method: Method::GET, url, headers: vec![("accept", accept)], body: &[], what: what.to_owned() }
}

/// Returns the base URL of a repository. Plain HTTP is used only for this machine.
pub(super) fn root(of: &Reference) -> String {
    format!("{}/v2/{}", origin(of), of.repository)
}

fn origin(of: &Reference) -> String {
    format!("{}://{}", if of.is_local() { "http" } else { "https" }, of.host)
}

pub(super) fn absolute(of: &Reference, place: &str) -> String {
    if place.starts_with('/') { format!("{}{place}", origin(of)) } else { place.to_owned() }
}

pub(super) fn is_same_host(of: &Reference, url: &str) -> bool {
    url.strip_prefix(&origin(of)).is_some_and(|rest| rest.starts_with('/'))
}

/// Reads an answer of at most `max` bytes.
pub(super) fn body(
    of: &Reference,
    response: Response<Body>,
    what: &str,
    max: u64,
) -> Result<Vec<u8>, RegistryError> {
    body_watched(of, response, what, max, |_| {})
}

/// Reads an answer of at most `max` bytes, and calls `tell` with the number of bytes so far.
pub(super) fn body_watched(
    of: &Reference,
    response: Response<Body>,
    what: &str,
    max: u64,
    tell: impl Fn(u64),
) -> Result<Vec<u8>, RegistryError> {
    let too_large = || RegistryError::TooLarge { host: of.host.clone(), what: what.to_owned(), max };
    let mut reader = response.into_body().into_with_config().limit(max + 1).reader();
    let mut bytes = Vec::new();
    loop {
        let read = (&mut reader).take(PART).read_to_end(&mut bytes);
        let count = bytes.len() as u64;
        match read.map_err(ureq::Error::from) {
            Ok(_) if count > max => return Err(too_large()),
            Ok(0) => return Ok(bytes),
            Ok(_) => tell(count),
            Err(ureq::Error::BodyExceedsLimit(_)) => return Err(too_large()),
            Err(source) => {
                return Err(RegistryError::Transport { host: of.host.clone(), source: Box::new(source) });
            }
        }
    }
}

pub(super) fn same(wanted: &str, bytes: Vec<u8>) -> Result<Vec<u8>, RegistryError> {
    let found = format!("sha256:{}", crate::digest::digest(&bytes));
    if found == wanted { Ok(bytes) } else { Err(RegistryError::Digest { wanted: wanted.to_owned(), found }) }
}

/// Returns the address of the next page of tags from `Link: </v2/...>; rel="next"`. It may be relative.
pub(super) fn next_page(of: &Reference, headers: &HeaderMap) -> Option<String> {
    let link = headers.get("link")?.to_str().ok()?;
    let (place, rest) = link.strip_prefix('<')?.split_once('>')?;
    let address = match place {
        query if query.starts_with('?') => format!("{}/tags/list{query}", root(of)),
        beside if beside.starts_with("list") => format!("{}/tags/{beside}", root(of)),
        place => absolute(of, place),
    };
    rest.contains("next").then_some(address)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_next_page() {
        let of = Reference::parse("localhost:5000/a/b").unwrap();
        let next = |link: &str| {
            let mut headers = HeaderMap::new();
            headers.insert("link", link.parse().unwrap());
            next_page(&of, &headers)
        };
        let at = |rest: &str| Some(format!("http://localhost:5000{rest}"));
        for (link, expected) in [
            ("</v2/a/b/tags/list?last=x>; rel=\"next\"", at("/v2/a/b/tags/list?last=x")),
            ("<?last=x>; rel=next", at("/v2/a/b/tags/list?last=x")),
            ("<list?last=x>; rel=\"next\"", at("/v2/a/b/tags/list?last=x")),
            ("<http://evil.test/x>; rel=\"next\"", Some("http://evil.test/x".to_owned())),
            ("<//evil.test/x>; rel=\"next\"", at("//evil.test/x")),
            ("</v2/a>; rel=\"last\"", None),
            ("nothing", None),
        ] {
            assert_eq!(next(link), expected, "{link}");
        }
    }
}

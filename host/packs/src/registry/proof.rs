//! Authorization for registries: a password, or a token that another server issues.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::Deserialize;
use ureq::http::Uri;

use super::RegistryError;
use super::artifact::MANIFEST_MAX;
use super::client::Registry;
use super::exchange::body;
use super::reference::{Reference, is_loopback};

impl Registry {
    /// Returns the authorization for a challenge, or `None` if there is none.
    pub(super) fn prove(&self, to: &Reference, challenge: &str) -> Result<Option<String>, RegistryError> {
        let pair = self
            .credentials
            .find(&to.host)
            .map_err(|reason| RegistryError::Credentials { host: to.host.clone(), reason })?;
        let basic = pair.map(|pair| format!("Basic {}", STANDARD.encode(pair)));
        let Some(parameters) = challenge.strip_prefix("Bearer ") else { return Ok(basic) };
        let parameter = |name: &str| parameter(parameters, name);
        let realm = parameter("realm").unwrap_or_default();
        if !is_safe(&realm, to) {
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
        let unreadable = |source| RegistryError::Answer { host: to.host.clone(), what: what.clone(), source };
        let Token { token, access_token } = serde_json::from_slice(&bytes).map_err(unreadable)?;
        Ok(format!("Bearer {}", if token.is_empty() { access_token } else { token }))
    }
}

/// Returns true if credentials may be sent to a realm.
///
/// The realm must be encrypted or on this machine. It must not contain a user name, which always comes from
/// the credentials.
fn is_safe(realm: &str, to: &Reference) -> bool {
    let Ok(uri) = realm.parse::<Uri>() else { return false };
    let Some(authority) = uri.authority().filter(|authority| !authority.as_str().contains('@')) else {
        return false;
    };
    match uri.scheme_str() {
        Some("https") => true,
        Some("http") => to.is_local() && is_loopback(authority.as_str()),
        Some(_) | None => false,
    }
}

/// Returns a parameter of a challenge, as in `realm="...",service="..."`.
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

/// Escapes a text for a URL query.
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
    use crate::registry::Credentials;
    use crate::registry::exchange::is_same_host;

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
        for realm in [
            "http://evil.test/token",
            "ftp://a",
            "",
            "http://localhost@evil.test/",
            "http://localhost:1@192.0.2.2/token",
            "https://localhost:1@192.0.2.2/token",
            "http://localhost.evil.test/",
            "http:///token",
        ] {
            let refused = client.prove(&of, &format!("Bearer realm=\"{realm}\""));
            assert!(matches!(refused, Err(RegistryError::Realm { .. })), "{realm}");
        }
        for (realm, host, safe) in [
            ("http://localhost:1/token", "localhost:5000", true),
            ("http://[::1]:1/token?a=b", "localhost:5000", true),
            ("http://localhost:1/token", "a.test", false),
            ("https://auth.test/token", "a.test", true),
        ] {
            let of = Reference::parse(&format!("{host}/a")).unwrap();
            assert_eq!(is_safe(realm, &of), safe, "{realm}");
        }
    }
}

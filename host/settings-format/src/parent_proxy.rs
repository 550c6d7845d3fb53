//! The user's own proxy, through which allowed connections go.

use portcullis_decision::pattern::{HostName, HostPattern, NetworkPattern};
use portcullis_decision::request::Endpoint;

/// The proxies for connections.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ParentProxy {
    /// Proxy for port 80, and for all other ports if `https` is unset.
    pub http: Option<ProxyAddress>,
    /// Proxy for all ports but 80, and for port 80 if `http` is unset.
    pub https: Option<ProxyAddress>,
    /// Hosts that are connected to directly.
    pub direct: Vec<NetworkPattern>,
}

/// A proxy, with its protocol.
#[derive(Clone, PartialEq, Eq)]
pub struct ProxyAddress {
    /// The protocol.
    pub protocol: ProxyProtocol,
    /// The host.
    pub host: Endpoint,
    /// The port.
    pub port: u16,
    /// User name and password.
    pub credentials: Option<(String, String)>,
}

/// The protocol of a proxy.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ProxyProtocol {
    /// HTTP, with `CONNECT`.
    Http,
    /// The same in TLS.
    Https,
    /// SOCKS 5; the proxy resolves host names.
    Socks,
}

/// The port of plain HTTP.
const HTTP_PORT: u16 = 80;

/// The port of HTTP in TLS.
const HTTPS_PORT: u16 = 443;

/// The usual port of SOCKS (RFC 1928).
const SOCKS_PORT: u16 = 1080;

impl ParentProxy {
    /// Returns the proxy for a host and port, or `None` for a direct connection.
    #[must_use]
    pub fn proxy_for(&self, target: &Endpoint, port: u16) -> Option<&ProxyAddress> {
        if self.direct.iter().any(|pattern| pattern.matches(target, port)) {
            return None;
        }
        let (first, second) =
            if port == HTTP_PORT { (&self.http, &self.https) } else { (&self.https, &self.http) };
        first.as_ref().or(second.as_ref())
    }

    /// Parses a list in the form of `NO_PROXY`.
    ///
    /// It has comma-separated names (which include their subdomains), addresses and CIDR blocks; `*` matches
    /// everything.
    ///
    /// # Errors
    /// When an entry has another form.
    pub fn read_direct(text: &str) -> Result<Vec<NetworkPattern>, String> {
        let entries = text.split(',').map(str::trim).filter(|entry| !entry.is_empty());
        let mut patterns = Vec::new();
        for entry in entries {
            let bare = entry.strip_prefix("*.").or_else(|| entry.strip_prefix('.')).unwrap_or(entry);
            let pattern = NetworkPattern::parse(bare).map_err(|error| format!("`{entry}`: {error}"))?;
            if let HostPattern::Name(name) = &pattern.host {
                let host = HostPattern::Below(name.clone());
                patterns.push(NetworkPattern { host, ..pattern.clone() });
            }
            patterns.push(pattern);
        }
        Ok(patterns)
    }
}

impl ProxyAddress {
    /// Parses `http://[user:password@]host[:port]`, or the same with `https` or `socks5`.
    ///
    /// # Errors
    /// When the text has another form; the error says why.
    pub fn parse(text: &str) -> Result<Self, String> {
        let (scheme, rest) = text
            .split_once("://")
            .ok_or("write `http://host:port`, `https://host:port` or `socks5://host:port`")?;
        let (protocol, usual) = match scheme.to_ascii_lowercase().as_str() {
            "http" => (ProxyProtocol::Http, HTTP_PORT),
            "socks5" | "socks5h" => (ProxyProtocol::Socks, SOCKS_PORT),
            "https" => (ProxyProtocol::Https, HTTPS_PORT),
            other => {
                return Err(format!(
                    "`{other}` is no kind of proxy; write `http://`, `https://` or `socks5://`"
                ));
            }
        };
        let rest = rest.strip_suffix('/').unwrap_or(rest);
        let (credentials, place) = match rest.rsplit_once('@') {
            None => (None, rest),
            Some((credentials, place)) => (Some(read_credentials(credentials)?), place),
        };
        let (host, port) = match place.rsplit_once(':') {
            Some((host, port)) if !host.contains(':') || host.ends_with(']') => (
                host,
                port.parse().ok().filter(|&port| port != 0).ok_or("its port is no number from 1 to 65535")?,
            ),
            _ => (place, usual),
        };
        let host = HostName::parse(host).map_err(|error| error.to_string())?;
        Ok(Self { protocol, host, port, credentials })
    }
}

/// Maximum length of user name and password each, in bytes; the limit of SOCKS.
const CREDENTIAL_BYTES: usize = 255;

fn read_credentials(text: &str) -> Result<(String, String), String> {
    let (user, password) = text.split_once(':').unwrap_or((text, ""));
    let read = |text: &str| {
        let text =
            decoded(text).ok_or("a `%` in the user's name or password is not followed by two digits")?;
        let is_usable = text.len() <= CREDENTIAL_BYTES && !text.chars().any(char::is_control);
        if is_usable {
            Ok(text)
        } else {
            Err("the user's name or password is too long, or has control characters")
        }
    };
    Ok((read(user)?, read(password)?))
}

/// Decodes percent-encoding, or returns `None` if it is invalid.
fn decoded(text: &str) -> Option<String> {
    let mut parts = text.split('%');
    let mut bytes = parts.next()?.as_bytes().to_vec();
    for part in parts {
        let (digits, rest) = part.split_at_checked(2)?;
        bytes.push(u8::from_str_radix(digits, 16).ok()?);
        bytes.extend_from_slice(rest.as_bytes());
    }
    String::from_utf8(bytes).ok()
}

impl std::fmt::Debug for ProxyAddress {
    /// Omits the password, which must not appear in logs.
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { protocol, host, port, credentials } = self;
        let user = credentials.as_ref().map(|(user, _)| user);
        formatter
            .debug_struct("ProxyAddress")
            .field("protocol", protocol)
            .field("host", host)
            .field("port", port)
            .field("user", &user)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_of_proxies() {
        type Parts<'a> = (ProxyProtocol, &'a str, u16, Option<(&'a str, &'a str)>);
        let check = |text: &str, expected: Option<Parts<'_>>| {
            let found = ProxyAddress::parse(text).ok();
            let found =
                found.map(|found| (found.protocol, found.host.to_string(), found.port, found.credentials));
            let owned = |(user, password): (&str, &str)| (user.to_owned(), password.to_owned());
            let expected = expected.map(|(protocol, host, port, credentials)| {
                (protocol, host.to_owned(), port, credentials.map(owned))
            });
            assert_eq!(found, expected, "{text}");
        };
        check("http://Proxy.Test:3128", Some((ProxyProtocol::Http, "proxy.test", 3128, None)));
        check("http://proxy.test/", Some((ProxyProtocol::Http, "proxy.test", 80, None)));
        check("HTTPS://me:x@p.test", Some((ProxyProtocol::Https, "p.test", 443, Some(("me", "x")))));
        check("https://p.test:3129/", Some((ProxyProtocol::Https, "p.test", 3129, None)));
        check("socks5h://[::1]:9050", Some((ProxyProtocol::Socks, "::1", 9050, None)));
        check("SOCKS5://10.0.0.1", Some((ProxyProtocol::Socks, "10.0.0.1", 1080, None)));
        check("http://a%40b:c%3A@p.test:1", Some((ProxyProtocol::Http, "p.test", 1, Some(("a@b", "c:")))));
        check("http://user@p.test:1", Some((ProxyProtocol::Http, "p.test", 1, Some(("user", "")))));
        for text in [
            "",
            "proxy.test:3128",
            "ftp://p.test",
            "http://",
            "http://p.test:0",
            "http://p.test:x",
            "http://p.test/path",
            "http://a%4:b@p.test",
            "http://a%0a:b@p.test",
        ] {
            check(text, None);
        }
        let shown = format!("{:?}", ProxyAddress::parse("http://me:secret@p.test:1").unwrap());
        assert!(shown.contains("me") && !shown.contains("secret"), "{shown}");
    }

    #[test]
    fn each_place_has_its_proxy() {
        let proxy = |text| ProxyAddress::parse(text).ok();
        let both = ParentProxy {
            http: proxy("http://h.test:1"),
            https: proxy("http://s.test:2"),
            direct: ParentProxy::read_direct("corp.test, .in.test,10.0.0.0/8,*.x.test, y.test:8080").unwrap(),
        };
        let port_for = |all: &ParentProxy, host: &str, port| {
            all.proxy_for(&HostName::parse(host).unwrap(), port).map(|proxy| proxy.port)
        };
        assert_eq!(port_for(&both, "a.test", 80), Some(1));
        assert_eq!(port_for(&both, "a.test", 22), Some(2));
        for host in ["corp.test", "a.corp.test", "in.test", "a.in.test", "10.1.1.1", "b.x.test"] {
            assert_eq!(port_for(&both, host, 443), None, "{host}");
        }
        assert_eq!(port_for(&both, "y.test", 8080), None);
        assert_eq!(port_for(&both, "y.test", 443), Some(2));
        assert_eq!(port_for(&both, "notcorp.test", 443), Some(2));
        let one = ParentProxy { https: None, direct: Vec::new(), ..both };
        assert_eq!(port_for(&one, "a.test", 443), Some(1));
        assert_eq!(ParentProxy::read_direct("*").unwrap().len(), 1);
        assert!(ParentProxy::read_direct("a b").is_err());
    }
}

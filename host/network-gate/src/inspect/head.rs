//! Parses the head of an HTTP/1 request so strictly that no server can read it differently, see RFC 9112.
//!
//! Written by hand: `httparse` accepts lines without CR, which servers read differently.

use portcullis_decision::pattern::HostName;
use portcullis_decision::request::{Endpoint, HttpHead};

/// The longest accepted head, in bytes; servers accept 8 to 64 KiB.
pub const HEAD_MAX: usize = 64 * 1024;

/// The parts of a request that matter for the check.
#[derive(Debug, PartialEq, Eq)]
pub struct Head {
    /// Every server name in the request.
    pub names: Vec<Named>,
    /// The server that the target names, as in a request to a proxy: in absolute form, or of `CONNECT`. Its port is the
    /// scheme's where none is given.
    pub proxied: Option<Named>,
    /// The kind of the body.
    pub body: Body,
    /// The protocols that the client offers to switch to, in lower case.
    pub upgrade: Option<String>,
    /// The request as policies see it.
    pub shown: HttpHead,
}

/// A server that a request names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Named {
    /// Its canonical name, or its address.
    pub host: Endpoint,
    /// Its port, if the request gives one.
    pub port: Option<u16>,
}

/// The kind of a body.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Body {
    /// A body of this many bytes.
    Bytes(u64),
    /// Chunks, up to an empty one.
    Chunked,
    /// The data of a `CONNECT` tunnel, in any protocol.
    Tunnel,
}

/// Returns the end of the head in a stream, just after its empty line.
///
/// # Errors
/// For line ends that servers read differently.
pub fn end(bytes: &[u8]) -> Result<Option<usize>, &'static str> {
    end_behind(bytes, 0)
}

/// Like [`end`], but skips the first `known` bytes, which contain no end.
///
/// A slow client thus cannot have the same bytes scanned again for each new one.
pub(crate) fn end_behind(bytes: &[u8], known: usize) -> Result<Option<usize>, &'static str> {
    for (at, &byte) in bytes.iter().enumerate().skip(known) {
        let before = at.checked_sub(1).and_then(|before| bytes.get(before));
        let is_empty_line = || at.checked_sub(2).is_none_or(|before| bytes.get(before) == Some(&b'\n'));
        match byte {
            b'\n' if before != Some(&b'\r') => return Err("a line of the request ends without CR"),
            b'\n' if is_empty_line() => return Ok(Some(at + 1)),
            b'\n' => {}
            _ if before == Some(&b'\r') => return Err("there is a CR inside a line of the request"),
            _ => {}
        }
    }
    if bytes.len() > HEAD_MAX { Err("the head of the request is too long") } else { Ok(None) }
}

/// Parses a head that ends with its empty line.
///
/// # Errors
/// If the head is ambiguous.
pub fn read(head: &[u8]) -> Result<Head, &'static str> {
    if head.iter().any(|&byte| (byte < b' ' && !b"\r\n\t".contains(&byte)) || byte == 0x7f) {
        return Err("there is a control character in the request");
    }
    let text = String::from_utf8_lossy(head);
    let mut lines = text.split("\r\n");
    let (method, target, minor) = request_line(lines.next().unwrap_or_default())?;
    let fields = lines.take_while(|line| !line.is_empty()).map(field).collect::<Result<Vec<_>, _>>()?;
    let all = |name: &str| -> Vec<&str> {
        fields.iter().filter(|(known, _)| known.eq_ignore_ascii_case(name)).map(|(_, value)| *value).collect()
    };
    let hosts = all("host");
    if hosts.len() > 1 || hosts.is_empty() && minor > 0 {
        return Err("the request does not have exactly one `Host`");
    }
    let mut names: Vec<Named> = hosts.into_iter().map(authority).collect::<Result<_, _>>()?;
    let proxied = if method == "CONNECT" {
        Some(authority(target)?)
    } else if !target.starts_with('/') && target != "*" {
        Some(authority(of_absolute_form(target)?)?)
    } else {
        None
    };
    names.extend(proxied.clone());
    let proxied =
        proxied.map(|Named { host, port }| Named { host, port: port.or_else(|| usual_port(target)) });
    let body = if method == "CONNECT" {
        Body::Tunnel
    } else {
        body(&all("content-length"), &all("transfer-encoding"), minor)?
    };
    let upgrade = all("upgrade").join(",").to_ascii_lowercase();
    let url = match (target.starts_with('/') || target == "*", names.first()) {
        (true, Some(Named { host, port })) => {
            let port = port.map(|port| format!(":{port}")).unwrap_or_default();
            format!("http://{host}{port}{target}")
        }
        _ => target.to_owned(),
    };
    let header_names = fields.iter().map(|(name, _)| name.to_ascii_lowercase()).collect();
    let shown = HttpHead { method: method.to_owned(), url, header_names };
    Ok(Head { names, proxied, body, upgrade: (!upgrade.trim().is_empty()).then_some(upgrade), shown })
}

fn request_line(line: &str) -> Result<(&str, &str, u8), &'static str> {
    let mut words = line.split(' ');
    let (Some(method), Some(target), Some(version), None) =
        (words.next(), words.next(), words.next(), words.next())
    else {
        return Err("the first line of the request is malformed");
    };
    let minor = match version {
        "HTTP/1.0" => 0,
        "HTTP/1.1" => 1,
        _ => return Err("the request is of no version of HTTP/1"),
    };
    if !is_token(method) || target.is_empty() || target.contains('\t') {
        return Err("the first line of the request is malformed");
    }
    Ok((method, target, minor))
}

/// Parses a header field.
///
/// A line that begins with a space is refused: some servers append it to the line before ("obs-fold").
fn field(line: &str) -> Result<(&str, &str), &'static str> {
    let (name, value) = line.split_once(':').ok_or("a line of the request has no colon")?;
    if !is_token(name) {
        return Err("the name of a field of the request is malformed");
    }
    Ok((name, value.trim_matches([' ', '\t'])))
}

fn is_token(text: &str) -> bool {
    !text.is_empty()
        && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte))
}

/// Returns the authority of `http://authority/path`.
fn of_absolute_form(target: &str) -> Result<&str, &'static str> {
    let (scheme, rest) = target.split_once("://").ok_or("the target of the request is malformed")?;
    if !scheme.eq_ignore_ascii_case("http") && !scheme.eq_ignore_ascii_case("https") {
        return Err("the target of the request is no HTTP address");
    }
    // Some servers treat a backslash as a slash, others as part of the name; the check of the name refuses it.
    Ok(rest.find(['/', '?', '#']).and_then(|end| rest.get(..end)).unwrap_or(rest))
}

/// Returns the port of the scheme of `http://…` or `https://…`.
fn usual_port(target: &str) -> Option<u16> {
    let (scheme, _) = target.split_once("://")?;
    Some(if scheme.eq_ignore_ascii_case("https") { 443 } else { 80 })
}

/// Parses `host` or `host:port`.
pub(super) fn authority(text: &str) -> Result<Named, &'static str> {
    const ODD: &str = "the request names its server in an odd way";
    let (host, port) = match text.rsplit_once(':') {
        Some((host, port)) if !host.contains(':') || host.ends_with(']') => (host, Some(port)),
        _ => (text, None),
    };
    let is_number = |port: &str| !port.is_empty() && port.bytes().all(|byte| byte.is_ascii_digit());
    let port = match port {
        None => None,
        Some(port) if is_number(port) => Some(port.parse().map_err(|_too_big| ODD)?),
        Some(_) => return Err(ODD),
    };
    // A name with other characters has a second spelling in ASCII, and servers may disagree on which one counts.
    if !host.is_ascii() {
        return Err(ODD);
    }
    Ok(Named { host: HostName::parse(host).map_err(|_not_a_host| ODD)?, port })
}

/// Determines the kind of the body. With two lengths, or a length in two forms, servers could see different requests.
fn body(lengths: &[&str], encodings: &[&str], minor: u8) -> Result<Body, &'static str> {
    match (lengths, encodings) {
        ([], []) => Ok(Body::Bytes(0)),
        ([length], []) if length.bytes().all(|byte| byte.is_ascii_digit()) => {
            length.parse().map(Body::Bytes).map_err(|_not_a_number| "the length of the request is no number")
        }
        ([], [encoding]) if encoding.eq_ignore_ascii_case("chunked") && minor > 0 => Ok(Body::Chunked),
        _ => Err("the length of the request can be read in two ways"),
    }
}

/// A request to a proxy.
#[derive(Debug, PartialEq, Eq)]
pub struct Ordered {
    /// The host of the target.
    pub host: Endpoint,
    /// The port of the target, if the request gives one.
    pub port: Option<u16>,
    /// True for `CONNECT`, after which the client may speak any protocol.
    pub is_tunnel: bool,
    /// The value of `Proxy-Authorization`.
    pub password: Option<String>,
    /// The request for the server: without fields for the proxy, and marked as the last one of its connection.
    pub head: Vec<u8>,
}

/// Parses the head of a request to a proxy.
///
/// # Errors
/// As for [`read`], and if it names two servers or is not a request to a proxy.
pub fn order(head: &[u8]) -> Result<Ordered, &'static str> {
    let Head { names, .. } = read(head)?;
    let text = std::str::from_utf8(head).map_err(|_no_text| "the request is no text")?;
    let mut lines = text.split("\r\n");
    let (method, target, minor) = request_line(lines.next().unwrap_or_default())?;
    let is_tunnel = method == "CONNECT";
    if !is_tunnel && !target.to_ascii_lowercase().starts_with("http://") {
        return Err("a proxy is asked with a whole address that begins with http://, or with CONNECT");
    }
    // The name in the target comes last, after the one in `Host`.
    let Some((wanted, others)) = names.split_last() else { return Err("the request names no server") };
    if others.iter().any(|other| other.host != wanted.host || !is_same_port(other.port, wanted.port)) {
        return Err("the request names two servers");
    }
    let fields = lines.take_while(|line| !line.is_empty());
    let (of_proxy, of_server): (Vec<&str>, Vec<&str>) = fields.partition(|line| is_for_proxy(line));
    let passwords: Vec<&str> = of_proxy
        .iter()
        .filter_map(|line| field(line).ok())
        .filter(|(name, _)| is_password(name))
        .map(|(_, value)| value)
        .collect();
    let password = match passwords.as_slice() {
        [one] => Some((*one).to_owned()),
        _ => None,
    };
    let authority = of_absolute_form(target).unwrap_or_default();
    let path =
        target.split_once("://").and_then(|(_, rest)| rest.strip_prefix(authority)).unwrap_or_default();
    let path = if path.starts_with('/') { path.to_owned() } else { format!("/{path}") };
    let fields: String = of_server.iter().flat_map(|line| [line, "\r\n"]).collect();
    let head = format!("{method} {path} HTTP/1.{minor}\r\n{fields}Connection: close\r\n\r\n").into_bytes();
    Ok(Ordered { host: wanted.host.clone(), port: wanted.port, is_tunnel, password, head })
}

/// Compares the ports. The header may omit it.
fn is_same_port(header: Option<u16>, target: Option<u16>) -> bool {
    const USUAL: u16 = 80;
    header.is_none_or(|port| port == target.unwrap_or(USUAL))
}

fn is_password(name: &str) -> bool {
    name.eq_ignore_ascii_case("proxy-authorization")
}

/// Returns true if a field concerns the connection to the proxy.
fn is_for_proxy(line: &str) -> bool {
    let name = line.split(':').next().unwrap_or_default().to_ascii_lowercase();
    name.starts_with("proxy-") || matches!(name.as_str(), "connection" | "keep-alive")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(head: &str) -> Result<Vec<String>, &'static str> {
        let head = read(head.replace('\n', "\r\n").as_bytes())?;
        let shown = |named: &Named| match named.port {
            Some(port) => format!("{}:{port}", named.host),
            None => named.host.to_string(),
        };
        Ok(head.names.iter().map(shown).collect())
    }

    #[test]
    fn every_name_is_found_in_its_canonical_form() {
        for (head, expected) in [
            ("GET / HTTP/1.1\nHost: A.test.\n\n", vec!["a.test"]),
            ("GET / HTTP/1.1\nhOST:a.test:80\n\n", vec!["a.test:80"]),
            ("GET http://b.test/x HTTP/1.1\nHost: a.test\n\n", vec!["a.test", "b.test"]),
            ("GET HTTP://b.test:8080?x HTTP/1.1\nHost: a.test\n\n", vec!["a.test", "b.test:8080"]),
            ("CONNECT b.test:443 HTTP/1.1\nHost: a.test\n\n", vec!["a.test", "b.test:443"]),
            ("OPTIONS * HTTP/1.1\nHost: [::1]:8\n\n", vec!["::1:8"]),
            ("GET / HTTP/1.0\n\n", vec![]),
            ("GET / HTTP/1.1\nHost: 0x7f.1\n\n", vec!["127.0.0.1"]),
        ] {
            assert_eq!(names(head), Ok(expected.into_iter().map(str::to_owned).collect()), "{head}");
        }
    }

    #[test]
    fn the_server_that_a_proxy_is_asked_for_has_a_port() {
        for (line, expected) in [
            ("GET http://b.test/x HTTP/1.1", Some("b.test:80")),
            ("GET HTTPS://b.test HTTP/1.1", Some("b.test:443")),
            ("GET http://b.test:8080/http://c.test HTTP/1.1", Some("b.test:8080")),
            ("CONNECT [::1]:443 HTTP/1.1", Some("[::1]:443")),
            ("CONNECT b.test HTTP/1.1", None),
            ("GET /http://b.test/ HTTP/1.1", None),
            ("OPTIONS * HTTP/1.1", None),
        ] {
            let head = read(format!("{line}\r\nHost: a\r\n\r\n").as_bytes()).unwrap();
            let shown = head.proxied.and_then(|Named { host, port }| Some(host.with_port(port?)));
            assert_eq!(shown.as_deref(), expected, "{line}");
        }
    }

    #[test]
    fn what_two_servers_could_read_differently_is_refused() {
        for head in [
            "GET / HTTP/1.1\n\n",
            "GET / HTTP/1.1\nHost: a\nHost: b\n\n",
            "GET / HTTP/1.1\nHost: a\n folded\n\n",
            "GET / HTTP/1.1\nHost : a\n\n",
            "GET / HTTP/1.1\nHost: a@b\n\n",
            "GET / HTTP/1.1\nHost: a, b\n\n",
            "GET / HTTP/1.1\nHost: a:80:80\n\n",
            "GET / HTTP/1.1\nHost: a:+80\n\n",
            "GET / HTTP/1.1\nHost:\n\n",
            "GET  / HTTP/1.1\nHost: a\n\n",
            "GET /\tx HTTP/1.1\nHost: a\n\n",
            "GET / HTTP/1.1 \nHost: a\n\n",
            "GET / HTTP/2.0\nHost: a\n\n",
            "GET /\nHost: a\n\n",
            "GET http://a@b/ HTTP/1.1\nHost: a\n\n",
            "GET http://a\\b/ HTTP/1.1\nHost: a\n\n",
            "GET ftp://a/ HTTP/1.1\nHost: a\n\n",
            "GET a HTTP/1.1\nHost: a\n\n",
            "GET / HTTP/1.1\nHost: a\nnocolon\n\n",
            "GET / HTTP/1.1\nHost: a\nContent-Length: 1\nContent-Length: 1\n\n",
            "GET / HTTP/1.1\nHost: a\nContent-Length: 1\nTransfer-Encoding: chunked\n\n",
            "GET / HTTP/1.1\nHost: a\nContent-Length: +1\n\n",
            "GET / HTTP/1.1\nHost: a\nContent-Length: 1, 1\n\n",
            "GET / HTTP/1.1\nHost: a\nContent-Length:\n\n",
            "GET / HTTP/1.1\nHost: a\nTransfer-Encoding: gzip, chunked\n\n",
            "GET / HTTP/1.1\nHost: a\nTransfer-Encoding: xchunked\n\n",
            "GET / HTTP/1.0\nHost: a\nTransfer-Encoding: chunked\n\n",
            "GET / HTTP/1.1\nHost: a\0b\n\n",
        ] {
            assert!(names(head).is_err(), "{head:?}");
        }
    }

    #[test]
    fn the_end_is_the_first_empty_line() {
        assert_eq!(end(b"GET / HTTP/1.1\r\nHost: a\r\n\r\nrest"), Ok(Some(27)));
        assert_eq!(end(b"GET / HTTP/1.1\r\nHost: a\r\n\r"), Ok(None));
        assert!(end(b"GET / HTTP/1.1\nHost: a\r\n\r\n").is_err(), "bare LF");
        assert!(end(b"GET / HTTP/1.1\r\nX: a\rb\r\n\r\n").is_err(), "bare CR");
        assert!(end(&vec![b'a'; HEAD_MAX + 1]).is_err());
    }

    #[test]
    fn bodies_and_upgrades() {
        let read = |head: &str| {
            let head = read(format!("{head}\r\nHost: a\r\n\r\n").as_bytes()).unwrap();
            (head.body, head.upgrade)
        };
        assert_eq!(read("POST / HTTP/1.1\r\nContent-Length: 12"), (Body::Bytes(12), None));
        assert_eq!(read("POST / HTTP/1.1\r\nTransfer-Encoding: Chunked"), (Body::Chunked, None));
        assert_eq!(read("CONNECT a:1 HTTP/1.1"), (Body::Tunnel, None));
        let upgrade = read("GET / HTTP/1.1\r\nUpgrade: WebSocket");
        assert_eq!(upgrade, (Body::Bytes(0), Some("websocket".to_owned())));
    }

    #[test]
    fn a_proxy_sends_on_what_is_for_the_server() {
        let order = |head: &str| order(head.replace('\n', "\r\n").as_bytes());
        let asked = order(
            "GET http://A.test:8080/x?y HTTP/1.1\nHost: a.test:8080\nProxy-Authorization: Basic x\n\
             Proxy-Connection: keep-alive\nConnection: keep-alive\nAccept: */*\n\n",
        )
        .unwrap();
        assert_eq!((asked.host.to_string().as_str(), asked.port), ("a.test", Some(8080)));
        assert_eq!(asked.password.as_deref(), Some("Basic x"));
        let sent = "GET /x?y HTTP/1.1\r\nHost: a.test:8080\r\nAccept: */*\r\nConnection: close\r\n\r\n";
        assert_eq!(String::from_utf8(asked.head).unwrap(), sent);
        let bare = order("GET http://a.test?y HTTP/1.1\nHost: a.test\n\n").unwrap();
        assert!(String::from_utf8(bare.head).unwrap().starts_with("GET /?y HTTP/1.1\r\n"));
        assert!(order("CONNECT a.test:443 HTTP/1.1\nHost: a.test:443\n\n").unwrap().is_tunnel);
        for head in [
            "GET / HTTP/1.1\nHost: a.test\n\n",
            "GET http://a.test/ HTTP/1.1\nHost: b.test\n\n",
            "GET https://a.test/ HTTP/1.1\nHost: a.test\n\n",
            "CONNECT b.test:443 HTTP/1.1\nHost: a.test\n\n",
            "CONNECT a.test:443 HTTP/1.1\nHost: a.test:80\n\n",
        ] {
            assert!(order(head).is_err(), "{head}");
        }
    }

    proptest::proptest! {
        #[test]
        fn nothing_makes_it_panic(bytes in proptest::collection::vec(proptest::num::u8::ANY, 0..200)) {
            let _end = end(&bytes);
            drop(read(&bytes));
        }
    }
}

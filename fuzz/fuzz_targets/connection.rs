//! A whole connection of a client: the bytes that pass name only the allowed server, as other parsers see it, and do
//! not depend on how they are split. `cargo +nightly fuzz run connection --no-default-features --features network --
//! -dict=fuzz/http.dict`

#![no_main]

use httparse::{EMPTY_HEADER, Status};
use libfuzzer_sys::fuzz_target;
use portcullis_decision::request::Endpoint;
use portcullis_network_gate::inspect::{Inspector, Stop};
use portcullis_network_gate::{Checks, Stages};
use rustls::server::Acceptor;

const ALLOWED: &str = "a.test";
const PORT: u16 = 80;
/// Requests with more fields are not compared.
const FIELDS: usize = 64;
/// Possible answers of a server to an upgrade or a hello: accept, refuse, or request another hello.
const ANSWERS: [&[u8]; 4] = [
    b"HTTP/1.1 101 Switching Protocols\r\n\r\n",
    b"HTTP/1.1 200 OK\r\n\r\n",
    b"\x16\x03\x03\x00\x2c\x02\x00\x00\x28\x03\x03\x07\x07\x07\x07\x07\x07\x07\x07\x07\x07\x07\x07\x07\x07\x07\x07\
      \x07\x07\x07\x07\x07\x07\x07\x07\x07\x07\x07\x07\x07\x07\x07\x07\x00\x13\x01\x00\x00\x00",
    b"\x16\x03\x03\x00\x2c\x02\x00\x00\x28\x03\x03\xcf\x21\xad\x74\xe5\x9a\x61\x11\xbe\x1d\x8c\x02\x1e\x65\xb8\x91\
      \xc2\xa2\x11\x16\x7a\xbb\x8c\x5e\x07\x9e\x09\xe2\xc8\xa8\x33\x9c\x00\x13\x01\x00\x00\x00",
];

fuzz_target!(|bytes: &[u8]| {
    for answer in ANSWERS {
        let whole = carried(bytes, bytes.len().max(1), answer);
        let (single, stop) = carried(bytes, 1, answer);
        // Bytes that arrive together with refused ones do not pass; byte by byte they may have passed before.
        assert!(single.starts_with(&whole.0), "{}", bytes.escape_ascii());
        assert_eq!(stop.is_some(), whole.1.is_some(), "{}", bytes.escape_ascii());
        if stop.is_none() {
            assert_eq!(single.len(), whole.0.len(), "{}", bytes.escape_ascii());
        }
        by_a_server(&single);
        by_a_lenient_server(&single);
    }
});

/// Returns the bytes that pass, split into pieces of this size, and why the connection ended if it did.
fn carried(bytes: &[u8], step: usize, answer: &[u8]) -> (Vec<u8>, Option<Stop>) {
    let allowed = Endpoint::Domain(ALLOWED.to_owned());
    let mut inspector = Inspector::new(&allowed, PORT, Checks::default(), Stages::default());
    let mut through = Vec::new();
    for piece in bytes.chunks(step) {
        match inspector.push(piece) {
            Ok(ready) => through.extend(ready),
            Err(stop) => return (through, Some(stop)),
        }
        // A server answers once, after which more answers may be awaited.
        while inspector.awaits_answer() {
            let pushed = match inspector.answered(answer) {
                Ok(true) => inspector.push(&[]),
                Ok(false) => break,
                Err(stop) => Err(stop),
            };
            match pushed {
                Ok(ready) => through.extend(ready),
                Err(stop) => return (through, Some(stop)),
            }
        }
    }
    (through, None)
}

/// Parses requests as far as a server's parser understands them; each must name the allowed server.
fn by_a_server(mut bytes: &[u8]) {
    if let Some(name) = by_rustls(bytes) {
        assert!(name.eq_ignore_ascii_case(ALLOWED), "{name:?} in {bytes:?}");
    }
    loop {
        let shown = bytes.escape_ascii();
        let mut fields = [EMPTY_HEADER; FIELDS];
        let mut request = httparse::Request::new(&mut fields);
        let Ok(Status::Complete(length)) = request.parse(bytes) else { return };
        let value = |name: &str| {
            let field = request.headers.iter().find(|field| field.name.eq_ignore_ascii_case(name))?;
            Some(String::from_utf8_lossy(field.value).trim_matches([' ', '\t']).to_owned())
        };
        for host in request.headers.iter().filter(|field| field.name.eq_ignore_ascii_case("host")) {
            let host = String::from_utf8_lossy(host.value).into_owned();
            assert!(is_allowed(&format!("http://{}/", host.trim_matches([' ', '\t']))), "{shown}");
        }
        let path = request.path.unwrap_or_default();
        if path.contains("://") && !path.starts_with('/') {
            assert!(is_allowed(path), "{shown}");
        }
        // The following bytes may be of another protocol.
        if request.method == Some("CONNECT") || value("upgrade").is_some() {
            return;
        }
        let rest = &bytes[length..];
        if value("transfer-encoding").is_some() {
            let Some(after) = behind_chunks(rest) else { return };
            bytes = after;
        } else {
            let length = value("content-length").map_or(Ok(0), |length| length.parse::<usize>());
            let Some(after) = length.ok().and_then(|length| rest.get(length..)) else { return };
            bytes = after;
        }
    }
}

/// Parses the head of the first request like a server that ends its first line only at CR and LF, splits it at spaces,
/// and ignores the method and the version.
fn by_a_lenient_server(bytes: &[u8]) {
    // TLS has another parser.
    if bytes.first().is_some_and(|first| (20..=31).contains(first) || *first >= 0x80) {
        return;
    }
    let mut bytes = bytes;
    while let Some(rest) = bytes.strip_prefix(b"\r\n") {
        bytes = rest;
    }
    let Some(end) = bytes.windows(2).position(|pair| pair == b"\r\n") else { return };
    let (line, head) = bytes.split_at(end);
    if line.split(|byte| *byte == b' ').nth(1).is_none() {
        return;
    }
    let lines = head.split_inclusive(|byte| b"\r\n".contains(byte));
    let whole = lines.filter_map(|line| line.strip_suffix(b"\r").or_else(|| line.strip_suffix(b"\n")));
    let host = whole.map(String::from_utf8_lossy).find_map(|line| {
        let (name, value) = line.split_once(':')?;
        name.eq_ignore_ascii_case("host").then(|| value.trim_matches([' ', '\t']).to_owned())
    });
    if let Some(host) = host.filter(|host| host != "/") {
        assert!(is_allowed(&format!("http://{host}/")), "{}", bytes.escape_ascii());
    }
}

fn is_allowed(address: &str) -> bool {
    let Ok(address) = url::Url::parse(address) else { return true };
    if !["http", "https"].contains(&address.scheme()) {
        return true;
    }
    let host = address.host_str().unwrap_or_default();
    host.strip_suffix('.').unwrap_or(host) == ALLOWED && address.port().is_none_or(|port| port == PORT)
}

fn behind_chunks(mut bytes: &[u8]) -> Option<&[u8]> {
    loop {
        let Ok(Status::Complete((begin, size))) = httparse::parse_chunk_size(bytes) else { return None };
        bytes = bytes.get(begin..)?;
        if size == 0 {
            // Trailers are fields.
            let mut fields = [EMPTY_HEADER; FIELDS];
            let Ok(Status::Complete((length, _))) = httparse::parse_headers(bytes, &mut fields) else {
                return None;
            };
            return bytes.get(length..);
        }
        bytes = bytes.get(usize::try_from(size).ok()?..)?.strip_prefix(b"\r\n")?;
    }
}

fn by_rustls(mut bytes: &[u8]) -> Option<String> {
    let mut acceptor = Acceptor::default();
    while acceptor.read_tls(&mut bytes).ok()? > 0 {
        if let Some(accepted) = acceptor.accept().ok()? {
            return accepted.client_hello().server_name().map(str::to_owned);
        }
    }
    None
}

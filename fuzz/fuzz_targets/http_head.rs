//! The head of one HTTP request: other parsers find the same server in it, and the same end of the body.
//! `cargo +nightly fuzz run http_head --no-default-features --features network -- -dict=fuzz/http.dict`

#![no_main]

use std::net::IpAddr;

use httparse::{EMPTY_HEADER, Header, Status};
use libfuzzer_sys::fuzz_target;
use portcullis_decision::request::Endpoint;
use portcullis_network_gate::inspect::head::{Body, Head, Named, end, order, read};

/// Heads with more fields are not compared.
const FIELDS: usize = 64;

fuzz_target!(|bytes: &[u8]| {
    let Ok(Some(end)) = end(bytes) else { return };
    let head = &bytes[..end];
    let Ok(ours) = read(head) else { return };
    compare(&ours, head);
    let Ok(ordered) = order(head) else { return };
    assert!(ours.names.iter().all(|named| named.host == ordered.host), "{}", head.escape_ascii());
    if !ordered.is_tunnel {
        let sent = read(&ordered.head);
        let sent = sent.unwrap_or_else(|why| panic!("{why}: {}", ordered.head.escape_ascii()));
        compare(&sent, &ordered.head);
        assert!(sent.names.iter().all(|named| named.host == ordered.host), "{}", head.escape_ascii());
        assert_eq!(sent.body, ours.body, "{}", head.escape_ascii());
        assert!(sent.shown.header_names.iter().all(|name| !name.starts_with("proxy-")));
    }
});

/// Compares the result with that of a server's parser.
fn compare(ours: &Head, head: &[u8]) {
    let mut fields = [EMPTY_HEADER; FIELDS];
    let mut other = httparse::Request::new(&mut fields);
    // A request that servers refuse is harmless.
    let Ok(Status::Complete(length)) = other.parse(head) else { return };
    let shown = head.escape_ascii();
    assert_eq!(length, head.len(), "{shown}");
    assert_eq!(other.method, Some(ours.shown.method.as_str()), "{shown}");
    let names = ours.shown.header_names.iter();
    assert!(
        names.eq(other
            .headers
            .iter()
            .map(|field| field.name.to_ascii_lowercase())
            .collect::<Vec<_>>()
            .iter())
    );
    let mut named = ours.names.iter();
    for host in values(other.headers, "host") {
        same(named.next(), &format!("http://{host}/"));
    }
    match other.path.unwrap_or_default() {
        target if ours.body == Body::Tunnel => same(named.next(), &format!("http://{target}/")),
        target if target.starts_with('/') || target == "*" => {}
        target => same(named.next(), target),
    }
    assert_eq!(named.next(), None, "{shown}");
    let lengths = values(other.headers, "content-length");
    let encodings = values(other.headers, "transfer-encoding");
    let body = match (lengths.as_slice(), encodings.as_slice()) {
        _ if ours.body == Body::Tunnel => Body::Tunnel,
        ([], []) => Body::Bytes(0),
        ([length], []) => Body::Bytes(length.parse().expect("a length")),
        ([], [encoding]) if encoding.eq_ignore_ascii_case("chunked") => Body::Chunked,
        _ => panic!("two lengths: {shown}"),
    };
    assert_eq!(ours.body, body, "{shown}");
}

fn values(fields: &[Header<'_>], name: &str) -> Vec<String> {
    let of_name = fields.iter().filter(|field| field.name.eq_ignore_ascii_case(name));
    of_name.map(|field| String::from_utf8_lossy(field.value).trim_matches([' ', '\t']).to_owned()).collect()
}

/// Checks that browsers and Node find the same server in an address.
fn same(named: Option<&Named>, address: &str) {
    let Named { host, port } = named.unwrap_or_else(|| panic!("{address:?} is not seen"));
    let Ok(other) = url::Url::parse(address) else { return };
    let there = match other.host() {
        Some(url::Host::Domain(name)) => Endpoint::Domain(name.strip_suffix('.').unwrap_or(name).to_owned()),
        Some(url::Host::Ipv4(address)) => Endpoint::Address(address.into()),
        Some(url::Host::Ipv6(address)) => Endpoint::Address(IpAddr::from(address).to_canonical()),
        None => panic!("{address:?} names nobody"),
    };
    assert_eq!(*host, there, "{address:?}");
    assert_eq!(port.or(other.port_or_known_default()), other.port_or_known_default(), "{address:?}");
    assert!(other.username().is_empty() && other.password().is_none(), "{address:?}");
}

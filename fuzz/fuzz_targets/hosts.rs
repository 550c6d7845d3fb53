//! Host names: one canonical form, and no address that other programs find and this parser misses.
//! `cargo +nightly fuzz run hosts --no-default-features --features network`
//!
//! The parser is compared with two others: the C library, which nearly every program uses in the end (no name server is
//! queried), and the URL parser of browsers and Node.

#![no_main]

use std::net::IpAddr;

use dns_lookup::{AddrInfoHints, getaddrinfo};
use libfuzzer_sys::fuzz_target;
use portcullis_decision::pattern::{HostName, HostPattern, NetworkPattern};
use portcullis_decision::request::Endpoint;

fuzz_target!(|text: &str| {
    if let Ok(pattern) = NetworkPattern::parse(text) {
        assert_eq!(NetworkPattern::parse(&pattern.to_string()).as_ref(), Ok(&pattern), "{text:?}");
    }
    let Ok(host) = HostName::parse(text) else { return };
    assert_eq!(HostName::parse(&host.to_string()).as_ref(), Ok(&host), "{text:?}");
    if let Some(address) = by_the_c_library(text) {
        assert_eq!(host, Endpoint::Address(address), "{text:?}");
    }
    if let Ok(other) = url::Host::parse(text) {
        assert_eq!(host, as_ours(&other), "{text:?}");
    }
    if let Endpoint::Domain(name) = &host {
        assert!(is_canonical(name), "{text:?}");
        assert!(HostPattern::parse(name).is_ok_and(|pattern| pattern.matches(&host)), "{text:?}");
        assert!(HostPattern::parse(&format!("*.{name}")).is_ok_and(|below| !below.matches(&host)), "{text:?}");
    }
});

fn by_the_c_library(text: &str) -> Option<IpAddr> {
    let hints = AddrInfoHints { address: libc::AF_INET, flags: libc::AI_NUMERICHOST, ..AddrInfoHints::default() };
    let first = getaddrinfo(Some(text), None, Some(hints)).ok()?.next()?;
    Some(first.ok()?.sockaddr.ip())
}

fn as_ours(host: &url::Host) -> Endpoint {
    match host {
        url::Host::Domain(name) => Endpoint::Domain(name.strip_suffix('.').unwrap_or(name).to_owned()),
        url::Host::Ipv4(address) => Endpoint::Address((*address).into()),
        url::Host::Ipv6(address) => Endpoint::Address(IpAddr::from(*address).to_canonical()),
    }
}

fn is_canonical(name: &str) -> bool {
    let is_part = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || b"-_.".contains(&byte);
    name.bytes().all(is_part) && !name.ends_with('.') && name.len() <= 253
}

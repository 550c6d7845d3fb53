//! Patterns over hosts and ports.

use std::net::IpAddr;

use thiserror::Error;

use crate::{Endpoint, NetworkPattern, PortSet};

/// Why an entry such as `*.example.com:443` was refused.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("`{entry}` is not a host with an optional port: {detail}")]
pub struct NetworkPatternError {
    entry: String,
    detail: &'static str,
}

impl NetworkPattern {
    /// Returns the pattern of every host and port.
    pub fn everything() -> Self {
        Self { host: "*".into(), ports: PortSet::Every }
    }

    /// Parses an entry in the form of the settings: `example.com`, `*.example.com:443`, an address, a CIDR block; IPv6
    /// with a port in brackets.
    ///
    /// # Errors
    ///
    /// If host or port are malformed.
    pub fn parse(entry: &str) -> Result<Self, NetworkPatternError> {
        let refused = |detail| NetworkPatternError { entry: entry.to_owned(), detail };
        let (host, port) = match entry.rsplit_once(':') {
            Some((host, port)) if !host.contains(':') || host.ends_with(']') => (host, Some(port)),
            _ => (entry, None),
        };
        let ports = match port.map(str::parse::<u16>) {
            None => PortSet::Every,
            Some(Ok(port)) if port > 0 => PortSet::These(vec![port]),
            Some(_) => return Err(refused("the port is not a number from 1 to 65535")),
        };
        let host = host.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')).unwrap_or(host);
        let name = host.strip_prefix("*.").unwrap_or(host);
        let address = block(host).is_some();
        if host != "*" && !address && !is_name(name) {
            return Err(refused(
                "the host is neither a name, nor `*.` and a name, nor an address or CIDR block",
            ));
        }
        Ok(Self { host: host.to_ascii_lowercase(), ports })
    }

    /// Returns true if a connection is covered.
    pub fn matches(&self, target: &Endpoint, port: u16) -> bool {
        let port = match &self.ports {
            PortSet::Every => true,
            PortSet::These(ports) => ports.contains(&port),
        };
        port && (self.host == "*" || self.covers(target))
    }

    fn covers(&self, target: &Endpoint) -> bool {
        match target {
            Endpoint::Domain(domain) => match self.host.strip_prefix("*.") {
                Some(top) => {
                    domain.strip_suffix(top).is_some_and(|head| head.len() > 1 && head.ends_with('.'))
                }
                None => *domain == self.host,
            },
            Endpoint::Address(address) => match (block(&self.host), address.parse::<IpAddr>()) {
                (Some((base, bits)), Ok(address)) => in_block(base, bits, address.to_canonical()),
                _ => false,
            },
        }
    }
}

impl std::fmt::Display for NetworkPattern {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let PortSet::These(ports) = &self.ports else { return formatter.write_str(&self.host) };
        let ports: Vec<String> = ports.iter().map(u16::to_string).collect();
        let (open, close) = if self.host.contains(':') { ("[", "]") } else { ("", "") };
        write!(formatter, "{open}{}{close}:{}", self.host, ports.join(","))
    }
}

/// Parses an address or a CIDR block.
fn block(text: &str) -> Option<(IpAddr, u32)> {
    let (base, bits) = match text.split_once('/') {
        Some((base, bits)) => (base.parse::<IpAddr>().ok()?, Some(bits.parse::<u32>().ok()?)),
        None => (text.parse::<IpAddr>().ok()?.to_canonical(), None),
    };
    let width = width(base);
    let bits = bits.unwrap_or(width);
    (bits <= width).then_some((base, bits))
}

fn width(address: IpAddr) -> u32 {
    if address.is_ipv4() { u32::BITS } else { u128::BITS }
}

fn in_block(base: IpAddr, bits: u32, address: IpAddr) -> bool {
    let value = |address| match address {
        IpAddr::V4(address) => u128::from(address.to_bits()),
        IpAddr::V6(address) => address.to_bits(),
    };
    let host_bits = width(base) - bits;
    base.is_ipv4() == address.is_ipv4()
        && value(base).checked_shr(host_bits).unwrap_or(0)
            == value(address).checked_shr(host_bits).unwrap_or(0)
}

/// Returns true for a host name in A-labels. All-numeric names are spellings of addresses and are refused.
fn is_name(text: &str) -> bool {
    let inside = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_';
    let label = |label: &str| (1..=63).contains(&label.len()) && label.bytes().all(inside);
    let numeric = |label: &str| label.bytes().all(|byte| byte.is_ascii_digit()) || label.starts_with("0x");
    text.len() <= 253 && text.split('.').all(label) && !text.rsplit('.').next().is_some_and(numeric)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn target(text: &str) -> Endpoint {
        match text.parse::<IpAddr>() {
            Ok(_) => Endpoint::Address(text.into()),
            Err(_) => Endpoint::Domain(text.into()),
        }
    }

    #[test]
    fn matching() {
        for (entry, host, port, expected) in [
            ("example.com", "example.com", 443, true),
            ("Example.com", "example.com", 443, true),
            ("example.com", "a.example.com", 443, false),
            ("*.example.com", "a.example.com", 443, true),
            ("*.example.com", "example.com", 443, false),
            ("*.example.com", "notexample.com", 443, false),
            ("example.com:443", "example.com", 22, false),
            ("*:22", "anything.test", 22, true),
            ("*:22", "anything.test", 23, false),
            ("10.0.0.0/8", "10.1.2.3", 80, true),
            ("10.0.0.0/8", "11.1.2.3", 80, false),
            ("0.0.0.0/0", "11.1.2.3", 80, true),
            ("::/0", "::1", 80, true),
            ("::/0", "1.2.3.4", 80, false),
            ("[::1]:80", "::1", 80, true),
            ("::1", "::1", 80, true),
            ("127.0.0.1", "::ffff:127.0.0.1", 80, true),
        ] {
            let pattern = NetworkPattern::parse(entry).unwrap();
            assert_eq!(pattern.matches(&target(host), port), expected, "{entry} on {host}:{port}");
        }
    }

    #[test]
    fn refused() {
        for entry in [
            "",
            "a:0",
            "a:99999",
            "a:x",
            "*.1.2.3.4",
            "a*b.c",
            "http://a",
            "*.*.a",
            "a..b",
            "10.0.0.0/33",
            "127.1",
        ] {
            assert!(NetworkPattern::parse(entry).is_err(), "{entry}");
        }
    }

    #[test]
    fn written_as_read() {
        for entry in ["example.com:443", "*.example.com", "[::1]:80", "10.0.0.0/8"] {
            assert_eq!(NetworkPattern::parse(entry).unwrap().to_string(), entry);
        }
    }
}

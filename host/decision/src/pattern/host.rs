//! Host names and addresses in one canonical form, and patterns over them.

use std::net::{IpAddr, Ipv4Addr};

use ipnet::IpNet;
use serde::{Deserialize, Serialize};

use super::PatternError;
use crate::request::Endpoint;

/// The longest host text that is parsed, in bytes (RFC 1035 allows 253 for a name).
const HOST_MAX: usize = 512;

/// The name of the loopback.
const LOCALHOST: &str = "localhost";

/// Parses host text into its canonical form.
#[derive(Debug, Clone, Copy)]
pub struct HostName;

impl HostName {
    /// Parses a host as programs and users write it: names become lower-case A-labels without a trailing dot, addresses
    /// in any spelling that `inet_aton` accepts become addresses, an IPv4-mapped address becomes its IPv4 address.
    ///
    /// # Errors
    /// For user information, ports, zone ids, NUL, spaces, and empty or over-long names and labels.
    pub fn parse(text: &str) -> Result<Endpoint, PatternError> {
        let refused = |detail| PatternError::Host { host: text.escape_debug().to_string(), detail };
        if text.len() > HOST_MAX {
            return Err(refused("too long"));
        }
        let bare = text.strip_prefix('[').and_then(|rest| rest.strip_suffix(']'));
        if let Ok(address) = bare.unwrap_or(text).parse::<IpAddr>() {
            return Ok(Endpoint::Address(address.to_canonical()));
        }
        if text.bytes().any(|byte| byte <= b' ' || byte == 0x7f || b"@/\\?#%:[]*".contains(&byte)) {
            return Err(refused("a character that no host name has"));
        }
        let ascii = idna::domain_to_ascii(text).map_err(|_| refused("not a domain name (IDNA)"))?;
        let name = ascii.strip_suffix('.').unwrap_or(&ascii);
        if let Some(address) = odd_spelling(name) {
            return Ok(Endpoint::Address(IpAddr::V4(address)));
        }
        if name.len() > 253 {
            return Err(refused("too long"));
        }
        if !name.split('.').all(is_label) {
            return Err(refused("an empty, over-long or malformed label"));
        }
        // Some programs would parse it as an address, each differently.
        if name.rsplit('.').next().is_some_and(is_number) {
            return Err(refused("a number at its end that makes no address"));
        }
        Ok(Endpoint::Domain(name.to_owned()))
    }
}

/// The hosts that a rule covers.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub enum HostPattern {
    /// Every host.
    Any,
    /// This name.
    Name(String),
    /// Every sub-domain of this name, but not the name itself.
    Below(String),
    /// Addresses in this block.
    Block(IpNet),
}

impl HostPattern {
    /// Parses `*`, `example.com`, `*.example.com`, an address or a CIDR block.
    ///
    /// # Errors
    /// If the text is none of these.
    pub fn parse(text: &str) -> Result<Self, PatternError> {
        if text == "*" {
            return Ok(Self::Any);
        }
        if let Some(top) = text.strip_prefix("*.") {
            return match HostName::parse(top)? {
                Endpoint::Domain(name) => Ok(Self::Below(name)),
                Endpoint::Address(_) => {
                    Err(PatternError::Host { host: text.to_owned(), detail: "an address has no sub-domains" })
                }
            };
        }
        if let Ok(block) = text.parse::<IpNet>() {
            return Ok(Self::Block(block.trunc()));
        }
        Ok(match HostName::parse(text)? {
            Endpoint::Domain(name) => Self::Name(name),
            Endpoint::Address(address) => Self::Block(IpNet::from(address)),
        })
    }

    /// Returns true if `host` is covered.
    #[must_use]
    pub fn matches(&self, host: &Endpoint) -> bool {
        match (self, host) {
            (Self::Any, _) => true,
            (Self::Name(name), Endpoint::Domain(domain)) => name == domain,
            // The only name that means an address everywhere (RFC 6761 6.3).
            (Self::Name(name), Endpoint::Address(address)) => name == LOCALHOST && address.is_loopback(),
            (Self::Below(top), Endpoint::Domain(domain)) => {
                domain.strip_suffix(top.as_str()).is_some_and(|head| head.len() > 1 && head.ends_with('.'))
            }
            (Self::Block(block), Endpoint::Address(address)) => block.contains(address),
            (Self::Below(_), Endpoint::Address(_)) | (Self::Block(_), Endpoint::Domain(_)) => false,
        }
    }

    /// Returns true if the pattern is about addresses, and not about names that resolve to some.
    #[must_use]
    pub fn is_of_addresses(&self) -> bool {
        match self {
            Self::Block(_) => true,
            Self::Name(name) => name == LOCALHOST,
            Self::Any | Self::Below(_) => false,
        }
    }
}

impl TryFrom<String> for HostPattern {
    type Error = PatternError;

    fn try_from(text: String) -> Result<Self, PatternError> {
        Self::parse(&text)
    }
}

impl From<HostPattern> for String {
    fn from(pattern: HostPattern) -> Self {
        pattern.to_string()
    }
}

impl std::fmt::Display for HostPattern {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Any => formatter.write_str("*"),
            Self::Name(name) => formatter.write_str(name),
            Self::Below(name) => write!(formatter, "*.{name}"),
            Self::Block(block) if block.prefix_len() == block.max_prefix_len() => {
                write!(formatter, "{}", block.addr())
            }
            Self::Block(block) => write!(formatter, "{block}"),
        }
    }
}

/// Hosts and ports.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct NetworkPattern {
    /// The hosts.
    pub host: HostPattern,
    /// The ports.
    pub ports: PortSet,
}

impl NetworkPattern {
    /// Parses a settings entry: a host pattern with an optional `:port`; IPv6 with a port needs brackets.
    ///
    /// # Errors
    /// If host or port are malformed.
    pub fn parse(text: &str) -> Result<Self, PatternError> {
        let whole = || PatternError::Host { host: text.to_owned(), detail: "the port is not 1 to 65535" };
        let (host, port) = match text.rsplit_once(':') {
            Some((host, port)) if !host.contains(':') || host.ends_with(']') => (host, Some(port)),
            _ => (text, None),
        };
        let ports = match port {
            None => PortSet::Every,
            Some(port) => match port.parse::<u16>() {
                Ok(port) if port != 0 => PortSet::These(vec![port]),
                _ => return Err(whole()),
            },
        };
        let bare = host.strip_prefix('[').and_then(|rest| rest.strip_suffix(']'));
        Ok(Self { host: HostPattern::parse(bare.unwrap_or(host))?, ports })
    }

    /// Returns true if a connection to `host` and `port` is covered.
    #[must_use]
    pub fn matches(&self, host: &Endpoint, port: u16) -> bool {
        self.ports.contains(port) && self.host.matches(host)
    }
}

impl std::fmt::Display for NetworkPattern {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let PortSet::These(ports) = &self.ports else {
            return write!(formatter, "{}", self.host);
        };
        let ports: Vec<String> = ports.iter().map(u16::to_string).collect();
        // Without brackets the port would look like a part of the address.
        if let HostPattern::Block(IpNet::V6(_)) = &self.host {
            write!(formatter, "[{}]:{}", self.host, ports.join(","))
        } else {
            write!(formatter, "{}:{}", self.host, ports.join(","))
        }
    }
}

/// A set of ports.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum PortSet {
    /// All ports.
    Every,
    /// Only these ports.
    These(Vec<u16>),
}

impl PortSet {
    /// Returns true if `port` is in the set.
    #[must_use]
    pub fn contains(&self, port: u16) -> bool {
        match self {
            Self::Every => true,
            Self::These(ports) => ports.contains(&port),
        }
    }
}

fn is_label(label: &str) -> bool {
    let inside =
        |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-' || byte == b'_';
    (1..=63).contains(&label.len()) && label.bytes().all(inside)
}

/// Returns true if the label looks like a decimal or hexadecimal number, or like an octal one even if it is malformed.
fn is_number(label: &str) -> bool {
    let (digits, radix) = label.strip_prefix("0x").map_or((label, 10), |digits| (digits, 16));
    digits.chars().all(|digit| digit.is_digit(radix))
}

/// Parses the spellings of IPv4 addresses that `inet_aton(3)` accepts: one to four parts, each decimal, octal (`0…`) or
/// hexadecimal (`0x…`), where the last one fills the remaining bytes.
fn odd_spelling(text: &str) -> Option<Ipv4Addr> {
    let parts: Vec<u64> = text.split('.').map(number).collect::<Option<_>>()?;
    let (last, heads) = parts.split_last()?;
    if heads.len() > 3 || heads.iter().any(|part| *part > 255) {
        return None;
    }
    let room = 32 - 8 * u32::try_from(heads.len()).ok()?;
    if *last >= 1_u64 << room {
        return None;
    }
    let head = heads.iter().fold(0_u64, |sum, part| sum << 8 | part);
    u32::try_from(head << room | last).ok().map(Ipv4Addr::from_bits)
}

fn number(part: &str) -> Option<u64> {
    let (digits, radix) = match part.strip_prefix("0x").or_else(|| part.strip_prefix("0X")) {
        Some("") => return Some(0),
        Some(digits) => (digits, 16),
        None if part.len() > 1 && part.starts_with('0') => (part, 8),
        None => (part, 10),
    };
    if digits.is_empty() || digits.starts_with('+') {
        return None;
    }
    u64::from_str_radix(digits, radix).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn host(text: &str) -> String {
        HostName::parse(text).map_or_else(|_| "refused".to_owned(), |host| host.to_string())
    }

    #[test]
    fn one_form() {
        for (text, canonical) in [
            ("Example.COM", "example.com"),
            ("example.com.", "example.com"),
            ("bücher.example", "xn--bcher-kva.example"),
            ("127.0.0.1", "127.0.0.1"),
            ("0x7f.1", "127.0.0.1"),
            ("017700000001", "127.0.0.1"),
            ("2130706433", "127.0.0.1"),
            ("012.0143.0.3", "10.99.0.3"),
            ("10.99.3", "10.99.0.3"),
            ("127.0.0.1.", "127.0.0.1"),
            ("[::1]", "::1"),
            ("::ffff:10.99.0.3", "10.99.0.3"),
            ("１２７.0.0.1", "127.0.0.1"),
            ("allowed@evil", "refused"),
            ("evil%23.allowed", "refused"),
            ("a\0b", "refused"),
            ("fe80::1%eth0", "refused"),
            ("174260227", "10.99.0.3"),
            ("0x0a630003", "10.99.0.3"),
            ("EVIL.TEST.", "evil.test"),
            ("аllowed.test", "xn--llowed-2nf.test"),
            ("[::ffff:a63:3]", "10.99.0.3"),
            ("allowed.test:80", "refused"),
            ("allowed.test/", "refused"),
            ("xn--a", "refused"),
            ("a..b", "refused"),
            ("", "refused"),
            ("a b", "refused"),
            ("ev\\il", "refused"),
            ("127.0.0.08", "refused"),
            ("127.0.0.0.1", "refused"),
            ("256.0.0.1", "refused"),
            ("4294967296", "refused"),
            ("a.0x7g", "a.0x7g"),
            ("1.2.3.4.com", "1.2.3.4.com"),
            ("a.0x7f", "refused"),
        ] {
            assert_eq!(host(text), canonical, "{text:?}");
        }
    }

    #[test]
    fn patterns() {
        for (pattern, target, port, expected) in [
            ("example.com", "example.com", 443, true),
            ("example.com", "a.example.com", 443, false),
            ("*.example.com", "a.example.com", 443, true),
            ("*.example.com", "example.com", 443, false),
            ("*.allowed.test", "notallowed.test", 443, false),
            ("*.allowed.test", "allowed.test.evil.test", 443, false),
            ("example.com:443", "example.com", 443, true),
            ("example.com:443", "example.com", 22, false),
            ("*:22", "anything.test", 22, true),
            ("10.0.0.0/8", "10.1.2.3", 80, true),
            ("10.0.0.0/8", "11.1.2.3", 80, false),
            ("[::1]:80", "::1", 80, true),
            ("::1", "::1", 80, true),
            ("localhost:80", "127.0.0.1", 80, true),
            ("localhost:80", "::1", 80, true),
            ("localhost:80", "10.0.0.1", 80, false),
            ("allowed.test", "127.0.0.1", 80, false),
        ] {
            let pattern = NetworkPattern::parse(pattern).unwrap();
            let target = HostName::parse(target).unwrap();
            assert_eq!(pattern.matches(&target, port), expected, "{pattern} on {target}:{port}");
        }
    }

    #[test]
    fn what_is_shown_reads_back() {
        for text in
            ["example.com", "*.example.com:443", "10.0.0.0/8:22", "[::1]:80", "::1", "*:22", "1.2.3.4:5"]
        {
            let pattern = NetworkPattern::parse(text).unwrap();
            assert_eq!(NetworkPattern::parse(&pattern.to_string()).unwrap(), pattern, "{text}");
        }
    }

    #[test]
    fn refused_patterns() {
        for text in ["", "a:0", "a:99999", "a:x", "*.1.2.3.4", "a*b.c", "http://a", "*.*.a"] {
            assert!(NetworkPattern::parse(text).is_err(), "{text}");
        }
    }

    /// Writes an address in a spelling that `inet_aton` accepts: with this many parts, each in decimal, octal or
    /// hexadecimal.
    fn spelled(address: u32, parts: usize, radixes: [u8; 4]) -> String {
        let bytes = address.to_be_bytes();
        let (heads, rest) = bytes.split_at(parts - 1);
        let last = rest.iter().fold(0_u64, |sum, byte| sum << 8 | u64::from(*byte));
        let numbers = heads.iter().map(|head| u64::from(*head)).chain([last]);
        let texts: Vec<String> = numbers
            .zip(radixes)
            .map(|(number, radix)| match radix {
                0 => number.to_string(),
                1 => format!("0{number:o}"),
                2 => format!("0x{number:x}"),
                _ => format!("0X{number:08X}"),
            })
            .collect();
        texts.join(".")
    }

    proptest::proptest! {
        #[test]
        fn addresses_are_found_in_every_spelling(
            address: u32,
            parts in 1..=4_usize,
            radixes in proptest::array::uniform4(0..4_u8),
            dot in proptest::bool::ANY,
            wide in proptest::bool::ANY,
        ) {
            let mut text = spelled(address, parts, radixes) + if dot { "." } else { "" };
            if wide {
                // Full-width digits, which IDNA maps to ordinary ones.
                text = text.chars().map(|digit| match digit.to_digit(10) {
                    Some(number) => char::from_u32(0xff10 + number).unwrap_or(digit),
                    None => digit,
                }).collect();
            }
            proptest::prop_assert_eq!(host(&text), Ipv4Addr::from_bits(address).to_string(), "{}", text);
        }

        #[test]
        fn a_name_is_canonical_and_matches_itself_and_what_is_below_it(
            text in "[a-zA-Z0-9\\-_.äßА-я。xX]{1,40}",
        ) {
            if let Ok(Endpoint::Domain(name)) = HostName::parse(&text) {
                let is_part = |byte: u8| {
                    byte.is_ascii_lowercase() || byte.is_ascii_digit() || b"-_.".contains(&byte)
                };
                proptest::prop_assert!(name.bytes().all(is_part));
                proptest::prop_assert!(!name.ends_with('.') && name.len() <= 253);
                let itself = HostPattern::parse(&name).unwrap();
                let below = HostPattern::parse(&format!("*.{name}")).unwrap();
                let [own, sub, longer, evil] = ["{}", "a.{}", "a{}", "{}.evil.test"]
                    .map(|form| Endpoint::Domain(form.replace("{}", &name)));
                proptest::prop_assert!(itself.matches(&own) && !itself.matches(&evil));
                proptest::prop_assert!(below.matches(&sub));
                proptest::prop_assert!(!below.matches(&own) && !below.matches(&longer));
            }
        }

        #[test]
        fn never_panics_and_is_idempotent(text in ".{0,80}") {
            if let Ok(host) = HostName::parse(&text) {
                proptest::prop_assert_eq!(HostName::parse(&host.to_string()).unwrap(), host);
            }
        }
    }
}

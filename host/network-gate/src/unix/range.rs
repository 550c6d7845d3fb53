//! Address ranges outside the public internet.

use std::io::{self, ErrorKind};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, UdpSocket};

use ipnet::{Ipv4Net, Ipv6Net};

use crate::special::Special::{self, Link, Loopback, Metadata, Nowhere, Private};

/// The kind of an address.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Range {
    /// A public internet address.
    Public,
    /// Any other address, with its kind.
    Special(Special),
}

/// From the IANA special-purpose address registries, RFC 6890. The narrower entry comes first.
///
/// Networks for documentation (RFC 5737, RFC 3849, RFC 9637) are left out: nothing answers there, and tests use them as
/// the public internet.
const V4: &[(Ipv4Addr, u8, Special)] = &[
    (Ipv4Addr::new(169, 254, 169, 254), 32, Metadata),
    (Ipv4Addr::new(169, 254, 170, 2), 32, Metadata),
    (Ipv4Addr::new(100, 100, 100, 200), 32, Metadata),
    (Ipv4Addr::new(168, 63, 129, 16), 32, Metadata),
    (Ipv4Addr::new(192, 0, 0, 192), 32, Metadata),
    (Ipv4Addr::new(0, 0, 0, 0), 8, Loopback),
    (Ipv4Addr::new(127, 0, 0, 0), 8, Loopback),
    (Ipv4Addr::new(10, 0, 0, 0), 8, Private),
    (Ipv4Addr::new(172, 16, 0, 0), 12, Private),
    (Ipv4Addr::new(192, 168, 0, 0), 16, Private),
    (Ipv4Addr::new(100, 64, 0, 0), 10, Private),
    (Ipv4Addr::new(169, 254, 0, 0), 16, Link),
    (Ipv4Addr::new(192, 0, 0, 0), 24, Nowhere),
    (Ipv4Addr::new(192, 88, 99, 0), 24, Nowhere),
    (Ipv4Addr::new(198, 18, 0, 0), 15, Nowhere),
    (Ipv4Addr::new(224, 0, 0, 0), 3, Nowhere),
];

const V6: &[(Ipv6Addr, u8, Special)] = &[
    (Ipv6Addr::new(0xfd00, 0xec2, 0, 0, 0, 0, 0, 0x254), 128, Metadata),
    (Ipv6Addr::LOCALHOST, 128, Loopback),
    (Ipv6Addr::UNSPECIFIED, 128, Loopback),
    (Ipv6Addr::new(0xfc00, 0, 0, 0, 0, 0, 0, 0), 7, Private),
    (Ipv6Addr::new(0xfe80, 0, 0, 0, 0, 0, 0, 0), 10, Link),
    (Ipv6Addr::new(0xfec0, 0, 0, 0, 0, 0, 0, 0), 10, Private),
    (Ipv6Addr::new(0xff00, 0, 0, 0, 0, 0, 0, 0), 8, Nowhere),
    // Teredo contains obfuscated IPv4 addresses.
    (Ipv6Addr::new(0x2001, 0, 0, 0, 0, 0, 0, 0), 32, Nowhere),
    (Ipv6Addr::new(0x2001, 2, 0, 0, 0, 0, 0, 0), 48, Nowhere),
    (Ipv6Addr::new(0x2001, 0x10, 0, 0, 0, 0, 0, 0), 28, Nowhere),
    (Ipv6Addr::new(0x2001, 0x20, 0, 0, 0, 0, 0, 0), 28, Nowhere),
    (Ipv6Addr::new(0x100, 0, 0, 0, 0, 0, 0, 0), 64, Nowhere),
    // Translation inside one network, see RFC 8215; that network defines the position of the IPv4 address.
    (Ipv6Addr::new(0x64, 0xff9b, 1, 0, 0, 0, 0, 0), 48, Private),
    (Ipv6Addr::new(0x5f00, 0, 0, 0, 0, 0, 0, 0), 16, Nowhere),
];

/// IPv6 ranges that contain IPv4 addresses, with the byte offset: translation (NAT64), 6to4, and the oldest forms.
const EMBEDDING: &[(Ipv6Addr, u8, usize)] = &[
    (Ipv6Addr::new(0x64, 0xff9b, 0, 0, 0, 0, 0, 0), 96, 12),
    (Ipv6Addr::new(0x2002, 0, 0, 0, 0, 0, 0, 0), 16, 2),
    (Ipv6Addr::new(0, 0, 0, 0, 0, 0, 0, 0), 96, 12),
    (Ipv6Addr::new(0, 0, 0, 0, 0xffff, 0, 0, 0), 96, 12),
];

/// Returns the kind of an address that is outside the public internet or belongs to this machine.
///
/// Returns `None` for other addresses. If the owner cannot be determined, the address counts as this machine's.
#[must_use]
pub fn special(address: IpAddr) -> Option<Special> {
    match Range::classify(address) {
        Range::Special(what) => Some(what),
        Range::Public => is_own_or_leads_there(address).unwrap_or(true).then_some(Special::Own),
    }
}

/// Returns true if an address, or the IPv4 address embedded in it, belongs to this machine.
///
/// # Errors
/// See [`is_own`].
pub(crate) fn is_own_or_leads_there(address: IpAddr) -> io::Result<bool> {
    Ok(is_own(address)? || end(address).map_or(Ok(false), is_own)?)
}

/// Returns the address embedded in `address`, to which its packets go in the end.
pub(crate) fn end(address: IpAddr) -> Option<IpAddr> {
    match address {
        IpAddr::V6(address) => embedded(address).map(IpAddr::V4),
        IpAddr::V4(_) => None,
    }
}

impl Range {
    /// Returns the kind of an address.
    pub(crate) fn classify(address: IpAddr) -> Self {
        match address.to_canonical() {
            IpAddr::V4(address) => Self::of_v4(address),
            IpAddr::V6(address) => Self::of_v6(address),
        }
    }

    fn of_v4(address: Ipv4Addr) -> Self {
        let holds = |(base, bits, _): &&(Ipv4Addr, u8, Special)| {
            Ipv4Net::new(*base, *bits).is_ok_and(|net| net.contains(&address))
        };
        V4.iter().find(holds).map_or(Self::Public, |(_, _, what)| Self::Special(*what))
    }

    fn of_v6(address: Ipv6Addr) -> Self {
        let within = |base: Ipv6Addr, bits| Ipv6Net::new(base, bits).is_ok_and(|net| net.contains(&address));
        if let Some((_, _, what)) = V6.iter().find(|(base, bits, _)| within(*base, *bits)) {
            return Self::Special(*what);
        }
        embedded(address).map_or(Self::Public, Self::of_v4)
    }
}

/// Returns the IPv4 address embedded in an IPv6 address.
fn embedded(address: Ipv6Addr) -> Option<Ipv4Addr> {
    let holds = |base: Ipv6Addr, bits| Ipv6Net::new(base, bits).is_ok_and(|net| net.contains(&address));
    let (_, _, at) = EMBEDDING.iter().find(|(base, bits, _)| holds(*base, *bits))?;
    let bytes: [u8; 4] = address.octets().get(*at..at + 4)?.try_into().ok()?;
    Some(Ipv4Addr::from(bytes))
}

/// Returns true if the address belongs to this machine. Services behind its firewall listen on such an address.
///
/// Connecting a datagram socket selects its source address without sending a packet. For an address of this machine,
/// the source equals the destination.
///
/// # Errors
/// If it cannot be determined, for example for lack of file descriptors.
fn is_own(address: IpAddr) -> io::Result<bool> {
    let address = address.to_canonical();
    // The kernel sends these from another address: 127.0.0.2 and 0.0.0.0 from 127.0.0.1.
    if address.is_loopback() || address.is_unspecified() {
        return Ok(true);
    }
    let any: IpAddr =
        if address.is_ipv4() { Ipv4Addr::UNSPECIFIED.into() } else { Ipv6Addr::UNSPECIFIED.into() };
    let source = || {
        let socket = UdpSocket::bind((any, 0))?;
        socket.connect((address, 9))?;
        Ok(socket.local_addr()?.ip())
    };
    is_source(source(), address)
}

/// Compares the source with the destination. An unreachable address is not this machine's.
fn is_source(source: io::Result<IpAddr>, address: IpAddr) -> io::Result<bool> {
    match source {
        Ok(source) => Ok(source == address),
        Err(error) if matches!(error.kind(), ErrorKind::NetworkUnreachable | ErrorKind::HostUnreachable) => {
            Ok(false)
        }
        Err(error) => Err(error),
    }
}

#[cfg(test)]
mod tests {
    use rustix::io::Errno;

    use super::*;

    fn is_public(address: &str) -> bool {
        Range::classify(address.parse().unwrap()) == Range::Public
    }

    #[test]
    fn places_on_the_internet() {
        for address in ["1.1.1.1", "203.0.113.7", "172.32.0.1", "100.128.0.1", "2606:4700::1", "2001:4860::8"]
        {
            assert!(is_public(address), "{address}");
        }
    }

    #[test]
    fn others_however_they_are_written() {
        for address in [
            "127.0.0.1",
            "127.255.0.9",
            "0.0.0.0",
            "10.1.2.3",
            "172.16.0.1",
            "172.31.255.255",
            "192.168.1.1",
            "100.64.0.1",
            "169.254.169.254",
            "169.254.1.1",
            "168.63.129.16",
            "224.0.0.1",
            "255.255.255.255",
            "240.0.0.1",
            "198.18.0.5",
            "::1",
            "::",
            "fe80::1",
            "fd12::1",
            "fd00:ec2::254",
            "ff02::1",
            "::ffff:127.0.0.1",
            "::ffff:169.254.169.254",
            "64:ff9b::7f00:1",
            "64:ff9b::a9fe:a9fe",
            "2002:7f00:1::",
            "2002:a00:1::",
            "::127.0.0.1",
            "::ffff:0:10.0.0.1",
            "2001:0:1::1",
            "fec0::1",
            "64:ff9b:1::1",
            "64:ff9b:1:7f00:0:100::",
            "64:ff9b:1:ffff:ffff:ffff:101:101",
            "5f00::1",
            "192.88.99.1",
            "2001:2::1",
            "2001:1f::1",
            "2001:2f::1",
        ] {
            assert!(!is_public(address), "{address}");
        }
        assert_eq!(Range::classify("169.254.169.254".parse().unwrap()), Range::Special(Metadata));
        assert_eq!(Range::classify("64:ff9b::a9fe:a9fe".parse().unwrap()), Range::Special(Metadata));
    }

    #[test]
    fn what_they_are_is_told() {
        for (address, what) in [
            ("127.0.0.1", Some(Loopback)),
            ("::ffff:127.0.0.1", Some(Loopback)),
            ("10.1.2.3", Some(Private)),
            ("fd12::1", Some(Private)),
            ("fe80::1", Some(Link)),
            ("169.254.169.254", Some(Metadata)),
            ("224.0.0.1", Some(Nowhere)),
            ("192.0.2.200", None),
        ] {
            assert_eq!(special(address.parse().unwrap()), what, "{address}");
        }
    }

    #[test]
    fn own_addresses_are_known() {
        for own in [
            "127.0.0.1",
            "127.0.0.2",
            "127.9.9.9",
            "0.0.0.0",
            "::",
            "::1",
            "::ffff:127.0.0.3",
            "::ffff:0.0.0.0",
        ] {
            assert!(is_own(own.parse().unwrap()).unwrap(), "{own}");
        }
        assert!(!is_own(Ipv4Addr::new(192, 0, 2, 200).into()).unwrap());
    }

    #[test]
    fn what_cannot_be_found_out_is_an_error() {
        let address = Ipv4Addr::new(192, 0, 2, 200).into();
        let check = |error: Errno| is_source(Err(error.into()), address).ok();
        assert_eq!(check(Errno::MFILE), None, "no descriptor is left");
        assert_eq!(check(Errno::NOMEM), None);
        assert_eq!(check(Errno::NETUNREACH), Some(false));
        assert_eq!(is_source(Ok(address), address).ok(), Some(true));
    }

    #[test]
    fn addresses_in_addresses_are_found() {
        let embedded = |address: &str| embedded(address.parse().unwrap()).map(|found| found.to_string());
        for address in ["64:ff9b::203.0.113.9", "2002:cb00:7109::1", "::203.0.113.9", "::ffff:0:203.0.113.9"]
        {
            assert_eq!(embedded(address).as_deref(), Some("203.0.113.9"), "{address}");
        }
        assert_eq!(embedded("2606:4700::1"), None);
    }
}

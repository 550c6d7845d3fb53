//! Pure functions that policies may call, with exactly the enforcer's semantics.

use std::net::IpAddr;
use std::path::Path;

use ipnet::IpNet;
use portcullis_decision::path_text;
use portcullis_decision::pattern::{FilePattern, HostName, HostPattern};
use portcullis_decision::request::Endpoint;

/// The class of an address, by the registries of special addresses (RFC 6890).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum AddressClass {
    Loopback,
    Private,
    LinkLocal,
    Metadata,
    Multicast,
    Global,
}

pub(crate) fn glob_match(glob: &str, path: &str) -> Result<bool, String> {
    let pattern = FilePattern::glob(glob).map_err(|error| error.to_string())?;
    let decoded = path_text::decode(path);
    let path = decoded.ok_or_else(|| format!("`{path}` is not a path as the contract writes it"))?;
    Ok(pattern.matcher().matches(&path))
}

/// Returns a text that is not a path unchanged, so that it equals no path.
pub(crate) fn normalize(path: String, base: &str) -> String {
    let (Some(decoded), Some(base)) = (path_text::decode(&path), path_text::decode(base)) else {
        return path;
    };
    path_text::encode(&path_text::normalize(&base.join(decoded)))
}

pub(crate) fn is_within(path: &str, directory: &str) -> bool {
    match (path_text::decode(path), path_text::decode(directory)) {
        (Some(path), Some(directory)) => Path::starts_with(&path, directory),
        _ => false,
    }
}

pub(crate) fn host_match(pattern: &str, host: &str) -> Result<bool, String> {
    let pattern = HostPattern::parse(pattern).map_err(|error| error.to_string())?;
    Ok(pattern.matches(&HostName::parse(host).map_err(|error| error.to_string())?))
}

pub(crate) fn cidr_contains(cidr: &str, address: &str) -> Result<bool, String> {
    let block: IpNet = cidr.parse().map_err(|_| format!("`{cidr}` is not an address block"))?;
    Ok(block.contains(&parse_address(address)?))
}

pub(crate) fn address_class(address: &str) -> Result<AddressClass, String> {
    Ok(class(parse_address(address)?))
}

fn parse_address(text: &str) -> Result<IpAddr, String> {
    match HostName::parse(text) {
        Ok(Endpoint::Address(address)) => Ok(address),
        Ok(Endpoint::Domain(_)) | Err(_) => Err(format!("`{text}` is not an address")),
    }
}

fn class(address: IpAddr) -> AddressClass {
    if is_metadata(address) {
        return AddressClass::Metadata;
    }
    if address.is_multicast() {
        return AddressClass::Multicast;
    }
    // 0.0.0.0 and :: reach this machine.
    if address.is_loopback() || address.is_unspecified() {
        return AddressClass::Loopback;
    }
    match address {
        IpAddr::V4(address) => {
            let [one, two, ..] = address.octets();
            // 100.64.0.0/10 is the shared space behind carrier-grade NAT and overlay networks.
            let is_shared = one == 100 && (64..128).contains(&two);
            if address.is_link_local() {
                AddressClass::LinkLocal
            } else if address.is_private() || is_shared || one == 0 || address.is_broadcast() {
                AddressClass::Private
            } else {
                AddressClass::Global
            }
        }
        IpAddr::V6(address) if address.is_unicast_link_local() => AddressClass::LinkLocal,
        IpAddr::V6(address) if address.is_unique_local() => AddressClass::Private,
        IpAddr::V6(_) => AddressClass::Global,
    }
}

/// Returns true for the addresses of cloud metadata services, which give out credentials.
fn is_metadata(address: IpAddr) -> bool {
    const V4: [[u8; 4]; 3] = [[169, 254, 169, 254], [169, 254, 170, 2], [100, 100, 100, 200]];
    const V6: &str = "fd00:ec2::254";
    match address {
        IpAddr::V4(address) => V4.contains(&address.octets()),
        IpAddr::V6(address) => V6.parse() == Ok(address),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn address_classes() {
        use AddressClass::{Global, LinkLocal, Loopback, Metadata, Multicast, Private};
        for (address, class) in [
            ("127.0.0.1", Loopback),
            ("::1", Loopback),
            ("0.0.0.0", Loopback),
            ("0x7f.1", Loopback),
            ("10.1.2.3", Private),
            ("100.100.1.1", Private),
            ("fd12::1", Private),
            ("169.254.1.1", LinkLocal),
            ("fe80::1", LinkLocal),
            ("169.254.169.254", Metadata),
            ("::ffff:169.254.169.254", Metadata),
            ("fd00:ec2::254", Metadata),
            ("224.0.0.1", Multicast),
            ("ff02::1", Multicast),
            ("1.1.1.1", Global),
            ("2606:4700::1111", Global),
        ] {
            assert_eq!(address_class(address), Ok(class), "{address}");
        }
        assert!(address_class("example.com").is_err());
    }

    #[test]
    fn tools_are_the_enforcers_own() {
        assert_eq!(host_match("*.a.test", "X.A.test."), Ok(true));
        assert!(host_match("http://a", "a").is_err());
        assert_eq!(cidr_contains("10.0.0.0/8", "10.9.9.9"), Ok(true));
        assert_eq!(glob_match("*.pem", "/a/b.pem"), Ok(true));
        assert!(glob_match("[", "/a").is_err());
        assert_eq!(normalize("../c/./d".into(), "/a/b"), "/a/c/d");
        assert!(is_within("/a/b", "/a/b"));
        assert!(!is_within("/a/bc", "/a/b"));
    }
}

//! The host functions that every policy may call: its log, and pure functions with exactly the enforcer's
//! semantics.

use std::net::IpAddr;
use std::path::Path;

use ipnet::IpNet;
use portcullis_decision::path_text;
use portcullis_decision::pattern::{FilePattern, HostName, HostPattern};
use portcullis_decision::request::Endpoint;
use wasmtime::component::{HasSelf, Linker};

use super::bindings::portcullis::policy::{logging, net_tools, path_tools, types};
use crate::state::{HostState, LogLevel};

/// Adds the functions to a linker.
pub(crate) fn link(linker: &mut Linker<HostState>) -> wasmtime::Result<()> {
    types::add_to_linker::<_, HasSelf<_>>(linker, |state| state)?;
    logging::add_to_linker::<_, HasSelf<_>>(linker, |state| state)?;
    path_tools::add_to_linker::<_, HasSelf<_>>(linker, |state| state)?;
    net_tools::add_to_linker::<_, HasSelf<_>>(linker, |state| state)
}

impl types::Host for HostState {}

impl logging::Host for HostState {
    fn log(&mut self, level: logging::Level, message: String) {
        let level = match level {
            logging::Level::Trace => LogLevel::Trace,
            logging::Level::Debug => LogLevel::Debug,
            logging::Level::Info => LogLevel::Info,
            logging::Level::Warn => LogLevel::Warn,
            logging::Level::Error => LogLevel::Error,
        };
        self.log.add(level, &message);
    }
}

impl path_tools::Host for HostState {
    fn glob_match(&mut self, glob: String, path: String) -> Result<bool, String> {
        let pattern = FilePattern::glob(&glob).map_err(|error| error.to_string())?;
        let path = path_text::decode(&path).ok_or_else(|| not_a_path(&path))?;
        Ok(pattern.matcher().matches(&path))
    }

    fn normalize(&mut self, path: String, base: String) -> String {
        // A text that is not a path is returned unchanged, so it equals no path.
        let (Some(decoded), Some(base)) = (path_text::decode(&path), path_text::decode(&base)) else {
            return path;
        };
        path_text::encode(&path_text::normalize(&base.join(decoded)))
    }

    fn is_within(&mut self, path: String, directory: String) -> bool {
        match (path_text::decode(&path), path_text::decode(&directory)) {
            (Some(path), Some(directory)) => Path::starts_with(&path, directory),
            _ => false,
        }
    }
}

fn not_a_path(text: &str) -> String {
    format!("`{text}` is not a path as the contract writes it")
}

impl net_tools::Host for HostState {
    fn host_match(&mut self, pattern: String, host: String) -> Result<bool, String> {
        let pattern = HostPattern::parse(&pattern).map_err(|error| error.to_string())?;
        Ok(pattern.matches(&HostName::parse(&host).map_err(|error| error.to_string())?))
    }

    fn cidr_contains(&mut self, cidr: String, address: String) -> Result<bool, String> {
        let block: IpNet = cidr.parse().map_err(|_| format!("`{cidr}` is not an address block"))?;
        Ok(block.contains(&parse_address(&address)?))
    }

    fn address_class(&mut self, address: String) -> Result<String, String> {
        Ok(class(parse_address(&address)?).to_owned())
    }
}

fn parse_address(text: &str) -> Result<IpAddr, String> {
    match HostName::parse(text) {
        Ok(Endpoint::Address(address)) => Ok(address),
        Ok(Endpoint::Domain(_)) | Err(_) => Err(format!("`{text}` is not an address")),
    }
}

/// Returns the class of an address according to the registries of special addresses (RFC 6890).
fn class(address: IpAddr) -> &'static str {
    if is_metadata(address) {
        return "metadata";
    }
    if address.is_multicast() {
        return "multicast";
    }
    // 0.0.0.0 and :: reach this machine.
    if address.is_loopback() || address.is_unspecified() {
        return "loopback";
    }
    match address {
        IpAddr::V4(address) => {
            let [one, two, ..] = address.octets();
            // 100.64.0.0/10 is the shared space behind carrier-grade NAT and overlay networks.
            let is_shared = one == 100 && (64..128).contains(&two);
            if address.is_link_local() {
                "link-local"
            } else if address.is_private() || is_shared || one == 0 || address.is_broadcast() {
                "private"
            } else {
                "global"
            }
        }
        IpAddr::V6(address) if address.is_unicast_link_local() => "link-local",
        IpAddr::V6(address) if address.is_unique_local() => "private",
        IpAddr::V6(_) => "global",
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
    use std::time::Duration;

    use super::net_tools::Host as _;
    use super::path_tools::Host as _;
    use super::*;

    fn state() -> HostState {
        HostState::new(0, Duration::ZERO)
    }

    #[test]
    fn address_classes() {
        for (address, class) in [
            ("127.0.0.1", "loopback"),
            ("::1", "loopback"),
            ("0.0.0.0", "loopback"),
            ("0x7f.1", "loopback"),
            ("10.1.2.3", "private"),
            ("100.100.1.1", "private"),
            ("fd12::1", "private"),
            ("169.254.1.1", "link-local"),
            ("fe80::1", "link-local"),
            ("169.254.169.254", "metadata"),
            ("::ffff:169.254.169.254", "metadata"),
            ("fd00:ec2::254", "metadata"),
            ("224.0.0.1", "multicast"),
            ("ff02::1", "multicast"),
            ("1.1.1.1", "global"),
            ("2606:4700::1111", "global"),
        ] {
            assert_eq!(state().address_class(address.into()).as_deref(), Ok(class), "{address}");
        }
        assert!(state().address_class("example.com".into()).is_err());
    }

    #[test]
    fn tools_are_the_enforcers_own() {
        let mut state = state();
        assert_eq!(state.host_match("*.a.test".into(), "X.A.test.".into()), Ok(true));
        assert!(state.host_match("http://a".into(), "a".into()).is_err());
        assert_eq!(state.cidr_contains("10.0.0.0/8".into(), "10.9.9.9".into()), Ok(true));
        assert_eq!(state.glob_match("*.pem".into(), "/a/b.pem".into()), Ok(true));
        assert!(state.glob_match("[".into(), "/a".into()).is_err());
        assert_eq!(state.normalize("../c/./d".into(), "/a/b".into()), "/a/c/d");
        assert!(state.is_within("/a/b".into(), "/a/b".into()));
        assert!(!state.is_within("/a/bc".into(), "/a/b".into()));
    }
}

//! Addresses that stand for names. The DNS server hands them out, and the relay maps them back.

use std::collections::HashMap;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::sync::{Mutex, MutexGuard, PoisonError};

use portcullis_decision::request::Endpoint;

/// The first address that stands for a name. The two before it are the range's own and the sandbox's.
///
/// The range is reserved for network benchmarks (RFC 2544): no real machine has such an address.
const FIRST: u32 = Ipv4Addr::new(198, 18, 0, 2).to_bits();
/// The last address that stands for a name.
const LAST: u32 = Ipv4Addr::new(198, 19, 255, 252).to_bits();
/// The addresses that stand for the loopback of this machine. Inside, its own addresses are the sandbox's loopback.
const LOOPBACKS: [(Ipv4Addr, IpAddr); 2] = [
    (Ipv4Addr::new(198, 19, 255, 253), IpAddr::V4(Ipv4Addr::LOCALHOST)),
    (Ipv4Addr::new(198, 19, 255, 254), IpAddr::V6(Ipv6Addr::LOCALHOST)),
];

/// Returns true for `localhost` and the names below it, which mean the loopback everywhere (RFC 6761 6.3).
pub(crate) fn is_localhost(name: &str) -> bool {
    name == "localhost" || name.ends_with(".localhost")
}

/// Returns the address that stands for an address of this machine's loopback.
#[cfg(any(target_os = "linux", test))]
pub(crate) fn stand_in(loopback: IpAddr) -> Option<Ipv4Addr> {
    LOOPBACKS.iter().find(|(_, address)| *address == loopback).map(|(stand_in, _)| *stand_in)
}

/// The names that the programs of a session have looked up.
///
/// An address stands for its name until the session ends. If it were reused for another name, a connection under way
/// could reach the wrong server.
#[derive(Debug, Default)]
pub struct Names(Mutex<Table>);

#[derive(Debug, Default)]
struct Table {
    numbers: HashMap<String, u32>,
    names: Vec<String>,
}

impl Names {
    /// Returns the address of a canonical name; `None` if all addresses are in use.
    pub fn address(&self, name: &str) -> Option<Ipv4Addr> {
        let mut table = self.table();
        if let Some(&number) = table.numbers.get(name) {
            return Some(Ipv4Addr::from_bits(number));
        }
        let number = FIRST.checked_add(u32::try_from(table.names.len()).ok()?)?;
        if number > LAST {
            return None;
        }
        table.names.push(name.to_owned());
        table.numbers.insert(name.to_owned(), number);
        Some(Ipv4Addr::from_bits(number))
    }

    /// Returns the name that an address stands for.
    pub fn name(&self, address: IpAddr) -> Option<String> {
        let IpAddr::V4(address) = address.to_canonical() else { return None };
        let index = address.to_bits().checked_sub(FIRST)?;
        self.table().names.get(usize::try_from(index).ok()?).cloned()
    }

    /// Returns the target of a connection to `address`; `None` for an address in the range that stands for no name yet.
    pub fn endpoint(&self, address: IpAddr) -> Option<Endpoint> {
        if let Some(name) = self.name(address) {
            return Some(Endpoint::Domain(name));
        }
        let address = address.to_canonical();
        if let Some((_, loopback)) = LOOPBACKS.iter().find(|(stand_in, _)| IpAddr::V4(*stand_in) == address) {
            return Some(Endpoint::Address(*loopback));
        }
        let stands_for_names = matches!(address, IpAddr::V4(v4) if (FIRST..=LAST).contains(&v4.to_bits()));
        (!stands_for_names).then_some(Endpoint::Address(address))
    }

    fn table(&self) -> MutexGuard<'_, Table> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_has_one_address_and_an_address_one_name() {
        let names = Names::default();
        let first = names.address("a.test").unwrap();
        assert_eq!(first, Ipv4Addr::new(198, 18, 0, 2));
        assert_eq!(names.address("a.test"), Some(first));
        assert_ne!(names.address("b.test"), Some(first));
        assert_eq!(names.name(first.into()), Some("a.test".to_owned()));
        assert_eq!(names.name(first.to_ipv6_mapped().into()), Some("a.test".to_owned()));
    }

    #[test]
    fn other_addresses_are_themselves_and_unknown_ones_of_the_range_nothing() {
        let names = Names::default();
        let address = |text: &str| names.endpoint(text.parse().unwrap());
        assert_eq!(address("192.0.2.1"), Some(Endpoint::Address("192.0.2.1".parse().unwrap())));
        assert_eq!(address("::ffff:192.0.2.1"), Some(Endpoint::Address("192.0.2.1".parse().unwrap())));
        assert_eq!(address("198.18.0.2"), None);
        assert_eq!(address("198.19.255.252"), None);
        for loopback in ["127.0.0.1", "::1"].map(|text| text.parse().unwrap()) {
            let stand_in = stand_in(loopback).unwrap();
            assert_eq!(address(&stand_in.to_string()), Some(Endpoint::Address(loopback)));
        }
        assert_eq!(stand_in("127.0.0.2".parse().unwrap()), None);
    }

    #[test]
    fn there_is_an_end_of_names() {
        let names = Names::default();
        let all = LAST - FIRST + 1;
        assert!((0..all).all(|number| names.address(&format!("n{number}.test")).is_some()));
        assert_eq!(names.address("one.more.test"), None);
        assert!(names.address("n0.test").is_some());
    }
}

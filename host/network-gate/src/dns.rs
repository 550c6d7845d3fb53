//! The DNS server inside the sandbox. Every name has an address, and no query leaves the machine.
//!
//! The host resolves a name only after the connection is allowed. So a query reveals no fact about the outside, and
//! cannot carry data there.
//!
//! Written by hand: a query has one question, and a reply at most one record. A DNS library would parse far more of what
//! a hostile program sends.

use std::net::Ipv4Addr;

use portcullis_decision::pattern::HostName;
use portcullis_decision::request::Endpoint;

use crate::names::{Names, is_localhost};

/// The longest accepted query, in bytes; a name of 255 bytes and its type fit easily.
pub const QUERY_MAX: usize = 4096;

const HEADER: usize = 12;
/// DNS record types.
const A: u16 = 1;
const PTR: u16 = 12;
const AAAA: u16 = 28;
const SVCB: u16 = 64;
const HTTPS: u16 = 65;
const ANY: u16 = 255;
const INTERNET: u16 = 1;
/// The TTL of an answer in seconds; repeated queries are cheap.
const LIFETIME: u32 = 1;
/// Bits of the flags word in the header.
const RESPONSE: u16 = 0x8000;
const OPERATION: u16 = 0x7800;
const RECURSION_DESIRED: u16 = 0x0100;
const RECURSION_AVAILABLE: u16 = 0x0080;

/// Response codes, see RFC 1035 4.1.1.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Code {
    Fine = 0,
    Malformed = 1,
    Failure = 2,
    NoSuchName = 3,
    NotImplemented = 4,
    Refused = 5,
}

struct Question<'a> {
    /// The question section, as the answer repeats it.
    bytes: &'a [u8],
    /// The labels joined by dots; `None` if a label cannot be part of a host name.
    name: Option<String>,
    kind: u16,
    class: u16,
}

enum Data {
    Address(Ipv4Addr),
    Name(String),
}

/// Returns the answer to a query, or `None` if the bytes are not a query.
pub fn answer(query: &[u8], names: &Names) -> Option<Vec<u8>> {
    let word = |at: usize| Some(u16::from_be_bytes(query.get(at..at + 2)?.try_into().ok()?));
    let (id, flags, count) = (word(0)?, word(2)?, word(4)?);
    if query.len() < HEADER || flags & RESPONSE != 0 {
        return None;
    }
    if flags & OPERATION != 0 {
        return Some(reply(id, flags, &[], Code::NotImplemented, None));
    }
    let Some(question) = question(query).filter(|_| count == 1) else {
        return Some(reply(id, flags, &[], Code::Malformed, None));
    };
    let (code, data) = found(&question, names);
    Some(reply(id, flags, question.bytes, code, data.map(|data| (question.kind_of(&data), data))))
}

impl Question<'_> {
    fn kind_of(&self, data: &Data) -> u16 {
        match data {
            Data::Address(_) => A,
            Data::Name(_) => PTR,
        }
    }
}

fn question(query: &[u8]) -> Option<Question<'_>> {
    let mut rest = query.get(HEADER..)?;
    let mut labels = Vec::new();
    let mut is_name = true;
    loop {
        let (&length, after) = rest.split_first()?;
        if length == 0 {
            rest = after;
            break;
        }
        // The two upper bits would mark a compression pointer, which a query does not need.
        let label = after.get(..usize::from(length)).filter(|_| length < 64)?;
        is_name &= label.iter().all(|byte| byte.is_ascii_alphanumeric() || b"-_".contains(byte));
        labels.push(String::from_utf8_lossy(label).into_owned());
        rest = after.get(usize::from(length)..)?;
    }
    let kind = u16::from_be_bytes(rest.get(..2)?.try_into().ok()?);
    let class = u16::from_be_bytes(rest.get(2..4)?.try_into().ok()?);
    let length = query.len() - rest.len() + 4 - HEADER;
    let name = labels.join(".");
    Some(Question {
        bytes: query.get(HEADER..HEADER + length)?,
        name: (is_name && name.len() <= 253).then_some(name),
        kind,
        class,
    })
}

fn found(question: &Question<'_>, names: &Names) -> (Code, Option<Data>) {
    let Some(name) = &question.name else { return (Code::NoSuchName, None) };
    if question.class != INTERNET {
        return (Code::Refused, None);
    }
    match question.kind {
        A | ANY => address(name, names),
        // There is no IPv6 address, and no record that would hide the server's name (ECH) or lead to HTTP/3.
        AAAA | SVCB | HTTPS => (address(name, names).0, None),
        PTR => match reverse(name, names) {
            Some(name) => (Code::Fine, Some(Data::Name(name))),
            None => (Code::NoSuchName, None),
        },
        _ => (Code::Refused, None),
    }
}

fn address(name: &str, names: &Names) -> (Code, Option<Data>) {
    // A name that is not a host name, or an odd spelling of an address, has no address.
    let Ok(Endpoint::Domain(name)) = HostName::parse(name) else { return (Code::NoSuchName, None) };
    if is_localhost(&name) {
        return (Code::Fine, Some(Data::Address(Ipv4Addr::LOCALHOST)));
    }
    // A name of one label belongs to the local network at best; programs query such names to explore it.
    if !name.contains('.') {
        return (Code::NoSuchName, None);
    }
    match names.address(&name) {
        Some(address) => (Code::Fine, Some(Data::Address(address))),
        None => (Code::Failure, None),
    }
}

/// Returns the name of an address that is written backwards below `in-addr.arpa`.
fn reverse(name: &str, names: &Names) -> Option<String> {
    let lower = name.to_ascii_lowercase();
    let numbers: Vec<u8> = lower
        .strip_suffix(".in-addr.arpa")?
        .split('.')
        .rev()
        .map(|number| number.parse().ok())
        .collect::<Option<_>>()?;
    names.name(Ipv4Addr::from(<[u8; 4]>::try_from(numbers).ok()?).into())
}

fn reply(id: u16, asked: u16, question: &[u8], code: Code, data: Option<(u16, Data)>) -> Vec<u8> {
    let flags = RESPONSE | asked & (OPERATION | RECURSION_DESIRED) | RECURSION_AVAILABLE | code as u16;
    let counts = [u16::from(!question.is_empty()), u16::from(data.is_some()), 0, 0];
    let words = [id, flags].into_iter().chain(counts);
    let mut bytes: Vec<u8> = words.flat_map(u16::to_be_bytes).collect();
    bytes.extend_from_slice(question);
    if let Some((kind, data)) = data {
        let data = match data {
            Data::Address(address) => address.octets().to_vec(),
            Data::Name(name) => encoded(&name),
        };
        // A compression pointer to the name in the question.
        bytes.extend_from_slice(&[0xc0, 12]);
        bytes.extend_from_slice(&kind.to_be_bytes());
        bytes.extend_from_slice(&INTERNET.to_be_bytes());
        bytes.extend_from_slice(&LIFETIME.to_be_bytes());
        bytes.extend_from_slice(&u16::try_from(data.len()).unwrap_or_default().to_be_bytes());
        bytes.extend_from_slice(&data);
    }
    bytes
}

fn encoded(name: &str) -> Vec<u8> {
    let label = |label: &str| {
        let length = u8::try_from(label.len()).unwrap_or_default();
        std::iter::once(length).chain(label.bytes()).collect::<Vec<u8>>()
    };
    name.split('.').flat_map(label).chain([0]).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn query(labels: &[&[u8]], kind: u16) -> Vec<u8> {
        let mut bytes = vec![0xab, 0xcd, 1, 0, 0, 1, 0, 0, 0, 0, 0, 0];
        for label in labels {
            bytes.push(u8::try_from(label.len()).unwrap());
            bytes.extend_from_slice(label);
        }
        bytes.push(0);
        bytes.extend_from_slice(&kind.to_be_bytes());
        bytes.extend_from_slice(&INTERNET.to_be_bytes());
        bytes
    }

    /// Returns the response code, the number of answers, and the last four bytes of the reply.
    fn ask(names: &Names, labels: &[&[u8]], kind: u16) -> (u8, u8, Vec<u8>) {
        let reply = answer(&query(labels, kind), names).unwrap();
        assert_eq!(reply[..2], [0xab, 0xcd]);
        (reply[3] & 15, reply[7], reply[reply.len().saturating_sub(4)..].to_vec())
    }

    #[test]
    fn every_name_has_an_address_of_its_own() {
        let names = Names::default();
        assert_eq!(ask(&names, &[b"Web", b"TEST"], A), (0, 1, vec![198, 18, 0, 2]));
        assert_eq!(ask(&names, &[b"web", b"test"], A), (0, 1, vec![198, 18, 0, 2]));
        assert_eq!(ask(&names, &[b"other", b"test"], A), (0, 1, vec![198, 18, 0, 3]));
        assert_eq!(names.name(Ipv4Addr::new(198, 18, 0, 2).into()).as_deref(), Some("web.test"));
        let (code, count, _) = ask(&names, &[b"2", b"0", b"18", b"198", b"in-addr", b"arpa"], PTR);
        assert_eq!((code, count), (0, 1));
    }

    #[test]
    fn other_questions_have_no_answer() {
        let names = Names::default();
        for (labels, kind, code) in [
            (&[b"web".as_slice(), b"test"] as &[&[u8]], AAAA, 0),
            (&[b"web", b"test"], HTTPS, 0),
            (&[b"web", b"test"], SVCB, 0),
            // TXT, MX, SRV and NULL can carry more data than a name.
            (&[b"web", b"test"], 16, 5),
            (&[b"web", b"test"], 15, 5),
            (&[b"web", b"test"], 33, 5),
            (&[b"web", b"test"], 10, 5),
            (&[b"wpad"], A, 3),
            (&[b"evil.test", b"allowed"], A, 3),
            (&[b"a\0b", b"test"], A, 3),
            (&[b"127", b"1"], A, 3),
            (&[b"9", b"9", b"9", b"9", b"in-addr", b"arpa"], PTR, 3),
            (&[], A, 3),
        ] {
            let (said, count, _) = ask(&names, labels, kind);
            assert_eq!((said, count), (code, 0), "{labels:?} {kind}");
        }
        assert_eq!(ask(&names, &[b"localhost"], A), (0, 1, vec![127, 0, 0, 1]));
    }

    #[test]
    fn what_is_no_question_is_not_answered_and_what_is_odd_is_refused() {
        let names = Names::default();
        assert_eq!(answer(b"", &names), None);
        let mut response = query(&[b"a", b"test"], A);
        response[2] |= 0x80;
        assert_eq!(answer(&response, &names), None);
        let mut update = query(&[b"a", b"test"], A);
        update[2] |= 5 << 3;
        assert_eq!(answer(&update, &names).unwrap()[3] & 15, 4);
        let mut two = query(&[b"a", b"test"], A);
        two[5] = 2;
        assert_eq!(answer(&two, &names).unwrap()[3] & 15, 1);
        let mut pointer = query(&[], A);
        pointer[12] = 0xc0;
        assert_eq!(answer(&pointer, &names).unwrap()[3] & 15, 1);
    }

    proptest::proptest! {
        #[test]
        fn nothing_makes_it_panic(bytes in proptest::collection::vec(proptest::num::u8::ANY, 0..300)) {
            let _reply = answer(&bytes, &Names::default());
            let mut bytes = bytes;
            bytes.splice(..12.min(bytes.len()), [0, 1, 1, 0, 0, 1, 0, 0, 0, 0, 0, 0]);
            let _reply = answer(&bytes, &Names::default());
        }
    }
}

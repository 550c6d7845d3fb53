//! DNS queries: every reply is valid to another parser, and an address is given for the name that it finds in the
//! question. `cargo +nightly fuzz run dns --no-default-features --features network`

#![no_main]

use std::net::{IpAddr, Ipv4Addr};

use libfuzzer_sys::fuzz_target;
use portcullis_network_gate::{Names, dns};
use simple_dns::rdata::RData;
use simple_dns::{CLASS, Packet, PacketFlag, QCLASS};

fuzz_target!(|bytes: &[u8]| {
    check(bytes);
    // The same bytes as the only question of an ordinary message.
    check(&[&[0xab, 0xcd, 1, 0, 0, 1, 0, 0, 0, 0, 0, 0], bytes].concat());
});

fn check(query: &[u8]) {
    let names = Names::default();
    let Some(reply) = dns::answer(query, &names) else { return };
    let parsed = Packet::parse(&reply);
    let Ok(reply) = parsed else {
        // The parser does not know all query types; these are repeated in replies without an answer.
        return assert_eq!(reply[6..8], [0, 0], "{parsed:?} to {query:?}");
    };
    assert_eq!(reply.id().to_be_bytes(), query[..2], "{query:?}");
    assert!(reply.has_flags(PacketFlag::RESPONSE) && !reply.has_flags(PacketFlag::TRUNCATION), "{query:?}");
    assert!(reply.name_servers.is_empty() && reply.additional_records.is_empty(), "{query:?}");
    let [answer] = reply.answers.as_slice() else {
        return assert!(reply.answers.is_empty(), "{query:?}");
    };
    let asked = Packet::parse(query);
    let [asked] = asked.as_ref().map(|asked| asked.questions.as_slice()).unwrap_or_default() else {
        // The rest of the message need not be readable; it is ignored, and the question is repeated.
        return assert_eq!(reply.questions.len(), 1, "{query:?}");
    };
    assert_eq!(asked.qclass, QCLASS::CLASS(CLASS::IN), "{query:?}");
    assert_eq!(reply.questions.first().map(|question| &question.qname), Some(&asked.qname), "{query:?}");
    assert_eq!(answer.name, asked.qname, "{query:?}");
    if let RData::A(address) = &answer.rdata {
        let address = Ipv4Addr::from(address.address);
        let name = asked.qname.to_string().to_ascii_lowercase();
        let is_local = name == "localhost" || name.ends_with(".localhost");
        let stands_for = names.name(IpAddr::from(address));
        assert_eq!(stands_for, (!is_local).then_some(name), "{query:?}");
        assert_eq!(address.is_loopback(), is_local, "{query:?}");
    }
}

//! Rules of the kernel's packet filter (nf_tables) that redirect every connection to the host's listeners.
//!
//! They are set by netlink messages, in one transaction; the `nft` program is not needed.

use std::net::Ipv6Addr;

use portcullis_sandbox::network::{OWN, OWN_6};
use rustix::io;
use rustix::net::netlink::NETFILTER;

use super::netlink::{ANSWERED, APPEND, CREATE, Message, REQUEST, attribute, nest, talk};

/// `NFNL_SUBSYS_NFTABLES` in the upper byte.
const NF_TABLES: u16 = 10 << 8;
/// `NFNL_MSG_BATCH_BEGIN` and `NFNL_MSG_BATCH_END`.
const BEGIN: u16 = 0x10;
const END: u16 = 0x11;
/// `NFT_MSG_NEWTABLE`, `NFT_MSG_NEWCHAIN` and `NFT_MSG_NEWRULE`.
const NEW_TABLE: u16 = NF_TABLES;
const NEW_CHAIN: u16 = NF_TABLES | 3;
const NEW_RULE: u16 = NF_TABLES | 6;
/// `NFPROTO_INET`: IPv4 and IPv6 in one table, with address translation since Linux 5.2.
const INET: u8 = 1;
const TABLE: &[u8] = b"portcullis\0";
/// The name of the chain, and its type.
const TRANSLATION: &[u8] = b"nat\0";
/// `NF_INET_LOCAL_OUT`.
const OUTGOING: u32 = 3;
/// The usual priority of destination address translation.
const TRANSLATION_PRIORITY: i32 = -100;

const TCP: u8 = 6;
const UDP: u8 = 17;
const DNS_PORT: u16 = 53;

/// The target ports of one address family.
#[derive(Debug, Clone, Copy)]
pub(super) struct Ports {
    pub(super) relay: u16,
    /// One port for datagrams and streams.
    pub(super) dns: u16,
}

/// Applies the rules; connections to `host_ports` of the loopback are redirected to the relay as well.
pub(super) fn enforce(v4: Ports, v6: Option<Ports>, host_ports: &[u16]) -> io::Result<()> {
    let mut batch = Batch::default();
    batch.add(NEW_TABLE, 0, |message| message.attribute(1, TABLE));
    batch.chain();
    let rules = translations(&V4, v4, host_ports);
    for rule in rules.into_iter().chain(v6.map(|v6| translations(&V6, v6, host_ports)).unwrap_or_default()) {
        batch.rule(&rule);
    }
    let (messages, answers) = batch.finish();
    talk(Some(NETFILTER), &messages, answers)
}

type Rule = Vec<Vec<u8>>;

/// The properties of an address family that the rules match.
struct Family {
    number: u8,
    /// The offset of the destination address in the header.
    destination: u32,
    /// The prefix of all loopback addresses.
    loopback: &'static [u8],
    /// The machine's own address inside.
    own: &'static [u8],
}

const V4: Family = Family { number: 2, destination: 16, loopback: &[127], own: &OWN.octets() };
const V6: Family =
    Family { number: 10, destination: 24, loopback: &Ipv6Addr::LOCALHOST.octets(), own: &OWN_6.octets() };

impl Family {
    /// Returns the beginning of a rule that matches this family and a destination with, or without, this prefix.
    fn to(&self, how: u32, start: &[u8]) -> Rule {
        let length = u32::try_from(start.len()).unwrap_or(u32::MAX);
        let mut rule = version(self.number);
        rule.extend([payload(NETWORK_HEADER, self.destination, length), compare(how, start)]);
        rule
    }
}

/// Returns the rules in order; the first match counts.
fn translations(family: &Family, ports: Ports, host_ports: &[u16]) -> Vec<Rule> {
    let mut rules: Vec<Rule> = Vec::new();
    for protocol in [UDP, TCP] {
        rules.push(
            [version(family.number), transport(protocol), port_is(DNS_PORT), redirect(ports.dns)].concat(),
        );
    }
    for &port in host_ports {
        let to = family.to(EQUAL, family.loopback);
        rules.push([to, transport(TCP), port_is(port), redirect(ports.relay)].concat());
    }
    // Programs that look up the machine's own address and connect to it mean a server inside.
    rules.push([family.to(EQUAL, family.own), vec![accept()]].concat());
    rules.push([family.to(UNEQUAL, family.loopback), transport(TCP), redirect(ports.relay)].concat());
    rules
}

/// `NFT_REG_VERDICT` and `NFT_REG_1`.
const VERDICT_REGISTER: [u8; 4] = 0_u32.to_be_bytes();
const REGISTER: [u8; 4] = 1_u32.to_be_bytes();
/// `NFT_CMP_EQ` and `NFT_CMP_NEQ`.
const EQUAL: u32 = 0;
const UNEQUAL: u32 = 1;
/// `NFT_PAYLOAD_NETWORK_HEADER` and `NFT_PAYLOAD_TRANSPORT_HEADER`.
const NETWORK_HEADER: u32 = 1;
const TRANSPORT_HEADER: u32 = 2;
/// `NFT_META_NFPROTO` and `NFT_META_L4PROTO`.
const VERSION_KEY: u32 = 15;
const TRANSPORT_KEY: u32 = 16;

fn version(number: u8) -> Rule {
    vec![meta(VERSION_KEY), compare(EQUAL, &[number])]
}

fn transport(number: u8) -> Rule {
    vec![meta(TRANSPORT_KEY), compare(EQUAL, &[number])]
}

fn port_is(port: u16) -> Rule {
    vec![payload(TRANSPORT_HEADER, 2, 2), compare(EQUAL, &port.to_be_bytes())]
}

fn redirect(port: u16) -> Rule {
    let value = nest(2, &[attribute(1, &port.to_be_bytes())]);
    vec![
        expression("immediate", &[attribute(1, &REGISTER), value]),
        expression("redir", &[attribute(1, &REGISTER)]),
    ]
}

/// `NF_ACCEPT` in a NAT chain: the address is not translated.
fn accept() -> Vec<u8> {
    let verdict = nest(2, &[attribute(1, &1_u32.to_be_bytes())]);
    expression("immediate", &[attribute(1, &VERDICT_REGISTER), nest(2, &[verdict])])
}

fn meta(key: u32) -> Vec<u8> {
    expression("meta", &[attribute(1, &REGISTER), attribute(2, &key.to_be_bytes())])
}

fn compare(how: u32, value: &[u8]) -> Vec<u8> {
    let value = nest(3, &[attribute(1, value)]);
    expression("cmp", &[attribute(1, &REGISTER), attribute(2, &how.to_be_bytes()), value])
}

fn payload(header: u32, offset: u32, length: u32) -> Vec<u8> {
    let place =
        [(2, header), (3, offset), (4, length)].map(|(kind, value)| attribute(kind, &value.to_be_bytes()));
    expression("payload", &[&[attribute(1, &REGISTER)], place.as_slice()].concat())
}

fn expression(name: &str, parts: &[Vec<u8>]) -> Vec<u8> {
    let name = [name.as_bytes(), b"\0"].concat();
    nest(1, &[attribute(1, &name), nest(2, parts)])
}

/// Messages that take effect as one transaction.
#[derive(Debug, Default)]
struct Batch {
    messages: Vec<u8>,
    count: u32,
}

impl Batch {
    fn add(&mut self, kind: u16, flags: u16, fill: impl FnOnce(Message) -> Message) {
        self.count += 1;
        let message = Message::new(kind, REQUEST | ANSWERED | CREATE | flags, self.count);
        self.messages.extend(fill(message.raw(&[INET, 0, 0, 0])).finish());
    }

    /// Adds the only chain: destination translation of outgoing packets.
    fn chain(&mut self) {
        let hook = [attribute(1, &OUTGOING.to_be_bytes()), attribute(2, &TRANSLATION_PRIORITY.to_be_bytes())];
        // `NF_ACCEPT` if no rule matches.
        let policy = 1_u32.to_be_bytes();
        self.add(NEW_CHAIN, 0, |message| {
            let named = message.attribute(1, TABLE).attribute(3, TRANSLATION).nest(4, &hook);
            named.attribute(5, &policy).attribute(7, TRANSLATION)
        });
    }

    fn rule(&mut self, expressions: &[Vec<u8>]) {
        self.add(NEW_RULE, APPEND, |message| {
            message.attribute(1, TABLE).attribute(2, TRANSLATION).nest(4, expressions)
        });
    }

    /// Returns the messages, and how many of them are answered.
    fn finish(self) -> (Vec<u8>, usize) {
        // The subsystem's number, in network byte order.
        let [_, subsystem] = (NF_TABLES >> 8).to_be_bytes();
        let edge = |kind: u16| Message::new(kind, REQUEST, 0).raw(&[0, 0, 0, subsystem]).finish();
        let answers = usize::try_from(self.count).unwrap_or(usize::MAX);
        ([edge(BEGIN), self.messages, edge(END)].concat(), answers)
    }
}

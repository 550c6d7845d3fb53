//! The loopback device, its addresses, and routes that make every address local, see rtnetlink(7).

use std::net::IpAddr;

use rustix::io;

use super::netlink::{ANSWERED, CREATE, EXCLUSIVE, Message, REQUEST, talk};

/// `RTM_NEWLINK`.
const CHANGE_LINK: u16 = 16;
/// `RTM_NEWADDR`.
const NEW_ADDRESS: u16 = 20;
/// `RTM_NEWROUTE`.
const NEW_ROUTE: u16 = 24;
/// The loopback device is the first of every network namespace.
const LOOPBACK: u32 = 1;
/// `IFF_UP`.
const UP: u32 = 1;
/// `IFA_ADDRESS` and `IFA_LOCAL`.
const ADDRESSES: [u16; 2] = [1, 2];
/// `IFA_F_NODAD`: no other machine can have the address, so duplicate detection is not needed.
const WITHOUT_DETECTION: u8 = 2;
/// `RTA_OIF`.
const DEVICE: u16 = 4;
/// `RT_TABLE_LOCAL`.
const LOCAL_TABLE: u8 = 255;
/// `RTPROT_STATIC`.
const STATIC: u8 = 4;
/// `RT_SCOPE_HOST`.
const THIS_HOST: u8 = 254;
/// `RTN_LOCAL`.
const LOCAL: u8 = 2;

/// `AF_INET` or `AF_INET6`.
#[derive(Debug, Clone, Copy)]
pub(super) enum Family {
    V4,
    V6,
}

impl Family {
    fn number(self) -> u8 {
        match self {
            Self::V4 => 2,
            Self::V6 => 10,
        }
    }
}

/// Brings the loopback device up.
pub(super) fn switch_loopback_on() -> io::Result<()> {
    let mut body = vec![0; 4];
    body.extend_from_slice(&LOOPBACK.to_ne_bytes());
    body.extend_from_slice(&UP.to_ne_bytes());
    // The mask of changed flags.
    body.extend_from_slice(&UP.to_ne_bytes());
    ask(CHANGE_LINK, 0, |message| message.raw(&body))
}

/// Adds an address to the loopback device.
pub(super) fn add_address(address: IpAddr) -> io::Result<()> {
    let (family, flags, bytes) = match address {
        IpAddr::V4(address) => (Family::V4, 0, address.octets().to_vec()),
        IpAddr::V6(address) => (Family::V6, WITHOUT_DETECTION, address.octets().to_vec()),
    };
    let bits = if address.is_ipv4() { 32 } else { 128 };
    let mut body = vec![family.number(), bits, flags, 0];
    body.extend_from_slice(&LOOPBACK.to_ne_bytes());
    ask(NEW_ADDRESS, CREATE | EXCLUSIVE, |message| {
        ADDRESSES.into_iter().fold(message.raw(&body), |message, kind| message.attribute(kind, &bytes))
    })
}

/// Makes every address of a family local to this machine ("AnyIP").
pub(super) fn add_local_default(family: Family) -> io::Result<()> {
    let body = [family.number(), 0, 0, 0, LOCAL_TABLE, STATIC, THIS_HOST, LOCAL, 0, 0, 0, 0];
    ask(NEW_ROUTE, CREATE | EXCLUSIVE, |message| {
        message.raw(&body).attribute(DEVICE, &LOOPBACK.to_ne_bytes())
    })
}

fn ask(kind: u16, flags: u16, fill: impl FnOnce(Message) -> Message) -> io::Result<()> {
    let message = fill(Message::new(kind, REQUEST | ANSWERED | flags, 1));
    talk(None, &message.finish(), 1)
}

//! Netlink messages, see netlink(7): the subset needed to configure a network.

use std::os::fd::OwnedFd;

use rustix::io::{self, Errno};
use rustix::net::netlink::SocketAddrNetlink;
use rustix::net::{
    AddressFamily, Protocol, RecvFlags, SendFlags, SocketFlags, SocketType, recv, sendto, socket_with,
};

/// `NLM_F_REQUEST`.
pub(super) const REQUEST: u16 = 1;
/// `NLM_F_ACK`.
pub(super) const ANSWERED: u16 = 4;
/// `NLM_F_CREATE`.
pub(super) const CREATE: u16 = 0x400;
/// `NLM_F_EXCL`.
pub(super) const EXCLUSIVE: u16 = 0x200;
/// `NLM_F_APPEND`.
pub(super) const APPEND: u16 = 0x800;
/// `NLMSG_ERROR`: an answer, with 0 for success.
const ANSWER: u16 = 2;
/// The size of `struct nlmsghdr`.
const HEADER: usize = 16;
/// `NLA_F_NESTED`.
const NESTED: u16 = 0x8000;
/// Answers have some 36 bytes each, plus a copy of the request if it failed.
const ANSWER_BYTES: usize = 16 * 1024;

/// A message under construction.
#[derive(Debug)]
pub(super) struct Message(Vec<u8>);

impl Message {
    pub(super) fn new(kind: u16, flags: u16, sequence: u32) -> Self {
        let mut bytes = vec![0; 4];
        bytes.extend_from_slice(&kind.to_ne_bytes());
        bytes.extend_from_slice(&flags.to_ne_bytes());
        bytes.extend_from_slice(&sequence.to_ne_bytes());
        // The port id; the kernel fills in the sender.
        bytes.extend_from_slice(&[0; 4]);
        Self(bytes)
    }

    /// Appends bytes, padded to the next word.
    pub(super) fn raw(mut self, bytes: &[u8]) -> Self {
        self.0.extend_from_slice(bytes);
        fill(&mut self.0);
        self
    }

    pub(super) fn attribute(self, kind: u16, value: &[u8]) -> Self {
        self.raw(&attribute(kind, value))
    }

    pub(super) fn nest(self, kind: u16, parts: &[Vec<u8>]) -> Self {
        self.raw(&nest(kind, parts))
    }

    pub(super) fn finish(mut self) -> Vec<u8> {
        let length = u32::try_from(self.0.len()).unwrap_or(u32::MAX).to_ne_bytes();
        self.0.splice(..4, length);
        self.0
    }
}

/// Returns one attribute, padded to the next word.
pub(super) fn attribute(kind: u16, value: &[u8]) -> Vec<u8> {
    let length = u16::try_from(value.len() + 4).unwrap_or(u16::MAX);
    let mut bytes = Vec::with_capacity(value.len() + 8);
    bytes.extend_from_slice(&length.to_ne_bytes());
    bytes.extend_from_slice(&kind.to_ne_bytes());
    bytes.extend_from_slice(value);
    fill(&mut bytes);
    bytes
}

/// Returns an attribute that contains others.
pub(super) fn nest(kind: u16, parts: &[Vec<u8>]) -> Vec<u8> {
    attribute(kind | NESTED, &parts.concat())
}

fn fill(bytes: &mut Vec<u8>) {
    bytes.resize(bytes.len().next_multiple_of(4), 0);
}

/// Opens a netlink socket for a protocol.
pub(super) fn socket(protocol: Option<Protocol>) -> io::Result<OwnedFd> {
    socket_with(AddressFamily::NETLINK, SocketType::RAW, SocketFlags::CLOEXEC, protocol)
}

/// Sends messages and waits for `answers` replies; the first refusal is returned as the error.
///
/// `protocol` is `None` for the routing family, which has the number 0.
pub(super) fn talk(protocol: Option<Protocol>, messages: &[u8], answers: usize) -> io::Result<()> {
    let socket = socket(protocol)?;
    sendto(&socket, messages, SendFlags::empty(), &SocketAddrNetlink::new(0, 0))?;
    let mut seen = 0;
    while seen < answers {
        let mut buffer = [0_u8; ANSWER_BYTES];
        let (_, length) = recv(&socket, &mut buffer, RecvFlags::empty())?;
        let results = results(buffer.get(..length).unwrap_or_default()).ok_or(Errno::BADMSG)?;
        if results.is_empty() {
            return Err(Errno::BADMSG);
        }
        for result in results {
            seen += 1;
            result?;
        }
    }
    Ok(())
}

/// Parses the answers; `None` if they are incomplete.
fn results(mut bytes: &[u8]) -> Option<Vec<io::Result<()>>> {
    let mut results = Vec::new();
    while !bytes.is_empty() {
        let length = usize::try_from(u32::from_ne_bytes(bytes.get(..4)?.try_into().ok()?)).ok()?;
        let kind = u16::from_ne_bytes(bytes.get(4..6)?.try_into().ok()?);
        let message = bytes.get(..length).filter(|_| length >= HEADER)?;
        if kind == ANSWER {
            let number = i32::from_ne_bytes(message.get(HEADER..HEADER + 4)?.try_into().ok()?);
            results.push(match number {
                0 => Ok(()),
                number => Err(Errno::from_raw_os_error(number.saturating_neg())),
            });
        }
        bytes = bytes.get(length.next_multiple_of(4)..).unwrap_or_default();
    }
    Some(results)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_is_as_long_as_it_says_and_its_attributes_lie_on_words() {
        let message =
            Message::new(20, REQUEST, 7).raw(&[1; 8]).attribute(1, &[9]).nest(2, &[attribute(3, b"abc")]);
        let bytes = message.finish();
        assert_eq!(bytes.len(), HEADER + 8 + 8 + 12);
        assert_eq!(bytes[..4], 44_u32.to_ne_bytes());
        assert_eq!(bytes[24..28], [5_u16.to_ne_bytes(), 1_u16.to_ne_bytes()].concat());
        assert_eq!(bytes[32..36], [12_u16.to_ne_bytes(), 0x8002_u16.to_ne_bytes()].concat());
    }

    #[test]
    fn answers_are_read_and_others_are_not() {
        let answer = |kind: u16, number: i32| {
            Message::new(kind, 0, 1).raw(&number.to_ne_bytes()).raw(&[0; 16]).finish()
        };
        let both = [answer(ANSWER, 0), answer(ANSWER, -1)].concat();
        assert_eq!(results(&both), Some(vec![Ok(()), Err(Errno::PERM)]));
        assert_eq!(results(&answer(3, 0)), Some(vec![]));
        assert_eq!(results(&both[..both.len() - 1]), None);
        assert_eq!(results(&[0; 16]), None, "a message without a length would be read for ever");
    }
}

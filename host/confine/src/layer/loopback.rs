//! The session's own network: a loopback device and nothing else.

use rustix::io;
use rustix::net::netlink::SocketAddrNetlink;
use rustix::net::{AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType, recv, sendto, socket_with};

use super::{During, Failure};
use crate::Stage;

/// `RTM_NEWLINK` of rtnetlink(7).
const CHANGE_LINK: u16 = 16;
/// `NLM_F_REQUEST | NLM_F_ACK`.
const REQUEST_WITH_ANSWER: u16 = 1 | 4;
/// `NLMSG_ERROR`: the answer, with 0 for success.
const ANSWER: u16 = 2;
/// The loopback device is the first of every network namespace.
const LOOPBACK: u32 = 1;
/// `IFF_UP`.
const UP: u32 = 1;
/// A `struct nlmsghdr` of 16 bytes and a `struct ifinfomsg` of 16 bytes.
const REQUEST_BYTES: u32 = 32;

/// Switches the loopback device on.
pub(crate) fn enforce() -> Result<(), Failure> {
    switch_on().during(Stage::Loopback)
}

fn switch_on() -> io::Result<()> {
    // Netlink without a protocol number is the routing part.
    let socket = socket_with(AddressFamily::NETLINK, SocketType::RAW, SocketFlags::CLOEXEC, None)?;
    sendto(&socket, &request(), SendFlags::empty(), &SocketAddrNetlink::new(0, 0))?;
    let mut answer = [0_u8; 1024];
    let (_, length) = recv(&socket, &mut answer, RecvFlags::empty())?;
    match error_number(answer.get(..length).unwrap_or_default()) {
        Some(0) => Ok(()),
        Some(number) => Err(io::Errno::from_raw_os_error(number.saturating_neg())),
        None => Err(io::Errno::BADMSG),
    }
}

fn request() -> Vec<u8> {
    let mut request = Vec::new();
    request.extend_from_slice(&REQUEST_BYTES.to_ne_bytes());
    request.extend_from_slice(&CHANGE_LINK.to_ne_bytes());
    request.extend_from_slice(&REQUEST_WITH_ANSWER.to_ne_bytes());
    // Sequence and port: there is one request and one answer on this socket.
    request.extend_from_slice(&[0; 8]);
    // Family, padding and device type, none of which is to change.
    request.extend_from_slice(&[0; 4]);
    request.extend_from_slice(&LOOPBACK.to_ne_bytes());
    request.extend_from_slice(&UP.to_ne_bytes());
    // Which of the flags are meant.
    request.extend_from_slice(&UP.to_ne_bytes());
    request
}

/// Takes the error number from a `struct nlmsgerr`.
fn error_number(answer: &[u8]) -> Option<i32> {
    let kind = u16::from_ne_bytes(answer.get(4..6)?.try_into().ok()?);
    let number = i32::from_ne_bytes(answer.get(16..20)?.try_into().ok()?);
    (kind == ANSWER).then_some(number)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_request_is_as_long_as_it_says() {
        assert_eq!(u32::try_from(request().len()), Ok(REQUEST_BYTES));
    }

    #[test]
    fn answers_are_read_and_others_are_not() {
        let mut answer = vec![0; 36];
        assert_eq!(error_number(&answer), None);
        answer[4] = 2;
        assert_eq!(error_number(&answer), Some(0));
        answer[16..20].copy_from_slice(&(-1_i32).to_ne_bytes());
        assert_eq!(error_number(&answer), Some(-1));
        assert_eq!(error_number(&answer[..19]), None);
    }
}

//! Replies of SOCKS 5, see RFC 1928.

use crate::unix::refuse::News;

pub(super) const VERSION: u8 = 5;
/// The address type of IPv4.
pub(super) const V4: u8 = 1;
/// Reply codes.
const DONE: u8 = 0;
const NOT_ALLOWED: u8 = 2;
const UNREACHABLE: u8 = 4;
pub(super) const NO_SUCH_COMMAND: u8 = 7;
pub(super) const NO_SUCH_ADDRESS: u8 = 8;

/// The reply to a successful request.
pub(super) const CONFIRMED: [u8; 10] = reply(DONE);

/// Returns a reply. Clients do not use the address in it.
pub(super) const fn reply(code: u8) -> [u8; 10] {
    [VERSION, code, 0, V4, 0, 0, 0, 0, 0, 0]
}

pub(super) fn refusal_reply(news: News) -> [u8; 10] {
    reply(match news {
        News::Denied | News::Malformed => NOT_ALLOWED,
        News::Unreachable => UNREACHABLE,
    })
}

//! Ids of the rules, as they appear in verdicts.

pub(crate) const ALLOW_READ: &str = "bosun.allow-read";
pub(crate) const DENY_READ: &str = "bosun.deny-read";
pub(crate) const ALLOW_WRITE: &str = "bosun.allow-write";
pub(crate) const DENY_WRITE: &str = "bosun.deny-write";
pub(crate) const ELSEWHERE: &str = "bosun.elsewhere";
pub(crate) const READ_ONLY: &str = "bosun.read-only-bash";
pub(crate) const COMMAND: &str = "bosun.command";
pub(crate) const CLAIM: &str = "bosun.reserve";
pub(crate) const RESERVED: &str = "bosun.reserved";
pub(crate) const UNCLAIMED: &str = "bosun.unreserved";
pub(crate) const FREE: &str = "bosun.free";
pub(crate) const OWN: &str = "bosun.first-writer";
pub(crate) const UNKNOWN: &str = "bosun.reservations-unknown";

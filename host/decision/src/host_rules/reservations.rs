//! The ruling on an action whose paths could not be claimed.

use super::by_host::by_host;
use crate::{Effect, Ruling};

/// Why paths could not be claimed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ClaimFailure {
    /// Another session has claimed one of them.
    Taken,
    /// Claims cannot be read or written.
    Failed,
}

/// Returns the ruling that denies an action whose paths could not be claimed.
#[must_use]
pub fn unclaimed(why: ClaimFailure, reason: String) -> Ruling {
    let rule = match why {
        ClaimFailure::Taken => "host.reserved",
        ClaimFailure::Failed => "host.reservation-failed",
    };
    by_host(Effect::Deny, rule, reason)
}

//! Rulings with the host as their policy.

use crate::{Effect, Ruling};

/// Name of the policy that the host's own rules belong to.
pub const HOST: &str = "host";

/// Returns a ruling of the host's rule with this id.
pub(super) fn by_host(effect: Effect, rule: &str, reason: String) -> Ruling {
    Ruling {
        effect,
        policy: HOST.to_owned(),
        rule: rule.to_owned(),
        reason,
        setting: String::new(),
        conceal: false,
    }
}

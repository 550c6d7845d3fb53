//! The rules on connections.

use portcullis_sdk::{NetworkPattern, NetworkRule};

use crate::config::Settings;
use crate::rule;

/// Returns the rules; a later one takes precedence.
pub(crate) fn rules(settings: &Settings) -> Vec<NetworkRule> {
    let everything = NetworkPattern::everything();
    let rest = if settings.strict_allowlist {
        NetworkRule::deny(rule::NETWORK_STRICT, everything)
            .reason("`allowedDomains` does not name this host, and `strictAllowlist` is set")
            .setting("/strictAllowlist")
    } else {
        NetworkRule::ask(rule::NETWORK_UNLISTED, everything)
            .reason("`allowedDomains` does not name this host")
    };
    let allowed = settings.allowed_domains.iter().map(|entry| {
        NetworkRule::allow(rule::NETWORK_ALLOWED, entry.value.clone())
            .reason("`allowedDomains` in the settings names it")
            .setting(entry.setting.as_str())
    });
    std::iter::once(rest).chain(allowed).collect()
}

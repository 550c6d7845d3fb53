//! The settings and policies that a session decides by.

use portcullis_decision::Chain;
use portcullis_settings::Resolved;

/// Settings and policies, which are read and replaced together.
#[derive(Debug)]
pub struct Basis {
    /// The settings, resolved.
    pub resolved: Resolved,
    /// The policies, loaded and configured.
    pub chain: Chain,
}

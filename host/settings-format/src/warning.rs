//! Warnings about settings.

use crate::entry::Origin;

/// A warning for the user.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Warning {
    /// The text: the problem and the remedy.
    pub text: String,
    /// Where it was written.
    pub origin: Origin,
}

//! Attributes, as in `wit/types.wit`.

use serde::{Deserialize, Serialize};

/// An extra fact for which the contract has no field; the name is `vendor:name`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct Attribute {
    /// `vendor:name`; the host's own start with `host:`.
    pub name: String,
    /// A JSON document.
    pub value: String,
}

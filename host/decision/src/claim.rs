//! Claims on paths, as policies see them.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use crate::path_text;

/// The attribute that lists the claims, and by which a profile requests it.
pub const RESERVATIONS: &str = "host:reservations";

/// A claim, as policies see it. It covers the path and everything below it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct Claim {
    /// Absolute and canonical.
    #[serde(with = "path_text::as_text")]
    pub path: PathBuf,
    /// Name of the agent that holds it.
    pub agent: String,
    /// Whether this session holds it.
    pub own: bool,
}

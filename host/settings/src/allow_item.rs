//! What a person names to allow or deny it: a preset, a host, a path.

use std::path::PathBuf;

use portcullis_decision::pattern::NetworkPattern;

/// What a person names to allow or deny it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AllowItem {
    /// The preset of this name.
    Preset(String),
    /// A host, or hosts, with or without a port.
    Host(NetworkPattern),
    /// The canonical path of something that exists.
    Path(PathBuf),
}

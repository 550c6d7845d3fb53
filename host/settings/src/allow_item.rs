//! An item of `portcullis allow` and `deny`: a preset, a host or a path.

use std::path::PathBuf;

use portcullis_decision::pattern::NetworkPattern;

/// An item of `portcullis allow` and `deny`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AllowItem {
    /// The preset of this name.
    Preset(String),
    /// A host, or hosts, with or without a port.
    Host(NetworkPattern),
    /// The canonical path of something that exists.
    Path(PathBuf),
}

//! Patterns over paths and hosts: plain data that rules and grants carry.

pub mod host;
mod path;

pub use host::{HostName, HostPattern, NetworkPattern, PortSet};
pub use path::{FilePattern, GlobText, PathMatcher, PatternError};

//! Patterns over paths and hosts: plain data in rules and grants.

mod expression;
mod git_ref;
pub mod host;
mod http;
mod name;
mod operation;
mod path;
pub(crate) mod steps;

pub use expression::PathExpression;
pub use git_ref::{RefName, RefPattern};
pub use host::{HostName, HostPattern, NetworkPattern, PortSet};
pub use http::{Coverage, RequestPath, RequestPattern};
pub use name::name_matches;
pub use operation::{OperationKind, OperationPattern};
pub use path::{FilePattern, GlobText, PathMatcher, PatternError, check_glob_size};

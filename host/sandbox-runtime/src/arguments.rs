//! The arguments with which the host starts its own program as another process.

/// The argument with which a program must call [`crate::keeper_main`] and nothing else.
pub const KEEPER_ARGUMENT: &str = "__keeper";

/// The argument with which a program must call [`crate::probe_main`] and nothing else.
pub const PROBE_ARGUMENT: &str = "__probe";

#[cfg(target_os = "linux")]
/// The argument, after [`KEEPER_ARGUMENT`], of a keeper without namespaces.
pub(crate) const WITHOUT_NAMESPACES: &str = "without-namespaces";

#[cfg(target_os = "linux")]
/// The argument, after the usual ones, of a keeper whose standard output is the directory of its group.
pub(crate) const IN_GROUP: &str = "in-group";

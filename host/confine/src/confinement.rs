//! The running sandbox of one session, as the host holds it.

#[cfg_attr(not(target_os = "linux"), path = "confinement/elsewhere.rs")]
mod here;
#[cfg(target_os = "linux")]
mod layers;
#[cfg(target_os = "linux")]
mod meeting;

pub use here::{Confinement, keeper_main};
#[cfg(not(target_os = "linux"))]
pub use here::{examine_repository, raise_file_limit};
#[cfg(target_os = "linux")]
pub(crate) use meeting::process_of;

/// The argument with which a program must call [`keeper_main`] and nothing else.
pub const KEEPER_ARGUMENT: &str = "__keeper";

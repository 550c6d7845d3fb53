//! The running sandbox of one session, as the host holds it.

#[cfg(target_os = "linux")]
mod handshake;
#[cfg(target_os = "linux")]
mod layers;
#[cfg_attr(not(target_os = "linux"), path = "confinement/unsupported.rs")]
mod linux;

#[cfg(target_os = "linux")]
pub(crate) use handshake::process_of;
pub use linux::{Confinement, keeper_main};
#[cfg(not(target_os = "linux"))]
pub use linux::{examine_repository, raise_file_limit};

/// The argument with which a program must call [`keeper_main`] and nothing else.
pub const KEEPER_ARGUMENT: &str = "__keeper";

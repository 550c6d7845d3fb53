//! The system calls of this crate, each with the reason why it is safe to use.
//!
//! On Linux, paths are opened by openat2 and descriptors are named by `/proc`. The portable module does both with calls
//! that every Unix has: it walks a path name by name.

mod calls;
mod failure;
mod hand_over;
mod interfaces;
mod last;
mod status;
#[cfg_attr(all(target_os = "linux", not(feature = "portable")), path = "linux.rs")]
#[cfg_attr(not(all(target_os = "linux", not(feature = "portable"))), path = "portable/mod.rs")]
mod system;

pub(crate) use calls::{is_on_read_only_mount, link_target, mode};
pub(crate) use failure::failure;
pub(crate) use hand_over::hand_over;
pub(crate) use interfaces::is_kernel_interface;
pub(crate) use last::Last;
pub(crate) use status::{Status, kind};
pub(crate) use system::{
    Descriptors, Directory, Handle, UNNAMED, ignores_case, is_disk, looks_removed, open_in_root, open_name,
    open_on_host, open_without_links, random,
};

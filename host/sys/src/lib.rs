//! The few Linux calls that no safe library offers.
//!
//! Everything here is a small safe function over one system call, but for [`launch`], where two processes run
//! in the memory of their maker.
//! There is no policy, no profile and no error but [`std::io::Error`] in this crate, and it is the only
//! crate of the workspace in which `unsafe` may stand.
//! On systems other than Linux the crate is empty.
#![cfg(target_os = "linux")]

pub mod descriptor;
pub mod handle;
pub mod landlock;
pub mod launch;
pub mod memory;
pub mod mount;
pub mod notify;
pub mod process;
pub mod seccomp;
pub mod signal;
pub mod terminal;
pub mod trace;

//! The few Linux system calls that no safe library offers.
//!
//! Every item is a small safe function over one system call, except for [`launch`], where two processes run
//! in the memory of their parent. The crate has no policies, no profiles, and no error type but
//! [`std::io::Error`]. Apart from one module of `policy-runtime`, it is the only crate of the workspace with
//! `unsafe` code. On systems other than Linux it is empty.
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

/// The number of fchmodat2(2), the same for every processor. libc has it for some targets only.
#[cfg(target_os = "linux")]
pub const SYS_FCHMODAT2: libc::c_long = 452;

/// The number of `kexec_file_load(2)`, which libc does not have for ARM64 with musl.
#[cfg(all(target_os = "linux", target_arch = "aarch64"))]
pub const SYS_KEXEC_FILE_LOAD: libc::c_long = 294;

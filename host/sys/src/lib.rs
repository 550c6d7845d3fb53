//! The few Linux system calls that no safe library offers.
//!
//! Every item is a small safe function over one system call, except for [`launch`], where two processes run
//! in the memory of their parent. The crate has no policies, no profiles, and no error type but
//! [`std::io::Error`]. Apart from one module of `policy-runtime`, it is the only crate of the workspace with
//! `unsafe` code. On other systems only [`terminal_free`] and [`inherited`] exist.
#![cfg(unix)]

#[cfg(target_os = "linux")]
pub mod descriptor;
#[cfg(target_os = "linux")]
pub mod handle;
#[cfg(not(target_os = "linux"))]
pub mod inherited;
#[cfg(target_os = "linux")]
pub mod landlock;
#[cfg(target_os = "linux")]
pub mod launch;
#[cfg(target_os = "linux")]
pub mod memory;
#[cfg(target_os = "linux")]
pub mod mount;
#[cfg(target_os = "linux")]
pub mod notify;
#[cfg(target_os = "linux")]
pub mod process;
#[cfg(target_os = "linux")]
pub mod seccomp;
#[cfg(target_os = "linux")]
pub mod signal;
#[cfg(target_os = "linux")]
pub mod terminal;
pub mod terminal_free;
#[cfg(target_os = "linux")]
pub mod trace;

/// The number of fchmodat2(2), the same for every processor. libc has it for some targets only.
#[cfg(target_os = "linux")]
pub const SYS_FCHMODAT2: libc::c_long = 452;

/// The number of setxattrat(2), the same for every processor. libc does not have it.
#[cfg(target_os = "linux")]
pub const SYS_SETXATTRAT: libc::c_long = 463;

/// The number of removexattrat(2), the same for every processor. libc does not have it.
#[cfg(target_os = "linux")]
pub const SYS_REMOVEXATTRAT: libc::c_long = 466;

/// The number of `kexec_file_load(2)`, which libc does not have for ARM64 with musl.
#[cfg(all(target_os = "linux", target_arch = "aarch64"))]
pub const SYS_KEXEC_FILE_LOAD: libc::c_long = 294;

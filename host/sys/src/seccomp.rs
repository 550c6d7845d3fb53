//! Seccomp filters for system calls, see seccomp(2).

use std::io;
use std::os::fd::{FromRawFd, OwnedFd, RawFd};
use std::ptr;

/// One instruction of a filter.
pub use libc::sock_filter as Instruction;

/// Whether a filter can pass system calls to a listener.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Handing {
    /// The filter decides by itself.
    None,
    /// The listener receives the calls for which the filter returns `SECCOMP_RET_USER_NOTIF`.
    ///
    /// While it handles a call, only a fatal signal can interrupt the caller, so that a half-finished call is
    /// not restarted. Since Linux 5.19.
    ToListener,
}

/// Installs a permanent filter for the calling thread and its future children.
///
/// Returns the listener if one was requested.
///
/// # Errors
/// `EACCES` without `no_new_privs`, `EBUSY` when there is a listener already, `EINVAL` for an invalid
/// program.
pub fn load(program: &[Instruction], handing: Handing) -> io::Result<Option<OwnedFd>> {
    let length = u16::try_from(program.len()).map_err(|_too_long| io::ErrorKind::InvalidInput)?;
    let flags = match handing {
        Handing::None => 0,
        Handing::ToListener => {
            libc::SECCOMP_FILTER_FLAG_NEW_LISTENER | libc::SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV
        }
    };
    let program = libc::sock_fprog { len: length, filter: program.as_ptr().cast_mut() };
    // SAFETY: the program has the given length, is only read, and outlives the call.
    let answer = unsafe {
        libc::syscall(libc::SYS_seccomp, libc::SECCOMP_SET_MODE_FILTER, flags, ptr::from_ref(&program))
    };
    if answer < 0 {
        return Err(io::Error::last_os_error());
    }
    if handing == Handing::None {
        return Ok(None);
    }
    let listener = RawFd::try_from(answer).map_err(|_too_large| io::ErrorKind::InvalidData)?;
    // SAFETY: the kernel has just created this close-on-exec descriptor, so it has no other owner.
    Ok(Some(unsafe { OwnedFd::from_raw_fd(listener) }))
}

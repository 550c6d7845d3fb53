//! Filters of system calls, see seccomp(2).

use std::io;
use std::os::fd::{FromRawFd, OwnedFd, RawFd};
use std::ptr;

/// One instruction of a filter.
pub use libc::sock_filter as Instruction;

/// Whether calls can be handed to somebody else.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Handing {
    /// The filter answers by itself.
    None,
    /// What it answers with `SECCOMP_RET_USER_NOTIF` is heard by who has the listener. While it is at work the
    /// caller can only be killed, so that a call that is half done is not begun anew. Since Linux 5.19.
    ToListener,
}

/// Puts the calling thread, and everything it starts from now on, under a filter that cannot be taken off;
/// returns the listener, where one is wanted.
///
/// # Errors
/// `EACCES` without "no new privileges", `EBUSY` when there is a listener already, `EINVAL` for a program that
/// makes no sense.
pub fn load(program: &[Instruction], handing: Handing) -> io::Result<Option<OwnedFd>> {
    let length = u16::try_from(program.len()).map_err(|_too_long| io::ErrorKind::InvalidInput)?;
    let flags = match handing {
        Handing::None => 0,
        Handing::ToListener => {
            libc::SECCOMP_FILTER_FLAG_NEW_LISTENER | libc::SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV
        }
    };
    let program = libc::sock_fprog { len: length, filter: program.as_ptr().cast_mut() };
    // SAFETY: the program is as long as is said, is only read, and outlives the call.
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
    // SAFETY: the kernel has just made this descriptor, closed on exec, and nobody else knows its number.
    Ok(Some(unsafe { OwnedFd::from_raw_fd(listener) }))
}

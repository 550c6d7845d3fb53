//! Inheritance of file descriptors, on systems without close_range(2).

use std::io;
use std::os::fd::{FromRawFd as _, OwnedFd};

/// Returns a close-on-exec copy of an inherited descriptor, and sets the same flag on every descriptor from it on.
///
/// The original stays open, because other code may know its number.
///
/// # Errors
/// `EBADF` when no descriptor with this number was inherited; that of listing the descriptors.
pub fn take(number: i32) -> io::Result<OwnedFd> {
    // SAFETY: the call touches no memory; it duplicates a descriptor.
    let copy = unsafe { libc::fcntl(number, libc::F_DUPFD_CLOEXEC, number) };
    if copy < 0 {
        return Err(io::Error::last_os_error());
    }
    for entry in std::fs::read_dir("/dev/fd")? {
        let name = entry?.file_name();
        let Some(other) = name.to_str().and_then(|name| name.parse::<i32>().ok()) else { continue };
        if other >= number {
            // One that is closed meanwhile, as the directory's own, needs no flag.
            // SAFETY: the call touches no memory, and closes nothing.
            unsafe { libc::fcntl(other, libc::F_SETFD, libc::FD_CLOEXEC) };
        }
    }
    // SAFETY: the kernel has just created this descriptor, so it has no other owner.
    Ok(unsafe { OwnedFd::from_raw_fd(copy) })
}

//! Descriptors that a new program must not inherit.

use std::io;
use std::os::fd::{AsFd, AsRawFd, FromRawFd, OwnedFd};

use crate::process::SingleThread;

/// Closes every descriptor from `first` on.
///
/// This is for the very beginning of a process, to let go of what its parent left open by mistake.
/// It is only allowed while nothing in the process owns such a descriptor: an owner would be left with a
/// number that may soon mean another file.
///
/// Since Linux 5.9, see close_range(2).
///
/// # Errors
/// `ENOSYS` on older kernels.
pub fn close_inherited(_proof: &SingleThread, first: u32) -> io::Result<()> {
    // SAFETY: no memory is touched; nothing owns these descriptors, as the caller has promised.
    let result = unsafe { libc::syscall(libc::SYS_close_range, first, u32::MAX, 0) };
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

/// Marks every descriptor from `first` on to be closed when the process replaces itself.
///
/// Since Linux 5.11, see close_range(2).
///
/// # Errors
/// `ENOSYS` or `EINVAL` on older kernels.
pub fn close_on_exec_from(first: u32) -> io::Result<()> {
    // SAFETY: with CLOSE_RANGE_CLOEXEC nothing is closed now, so no owner loses its descriptor.
    let result = unsafe { libc::syscall(libc::SYS_close_range, first, u32::MAX, libc::CLOSE_RANGE_CLOEXEC) };
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

/// Returns a copy of a descriptor that the process was started with, closed on exec.
///
/// The original stays as it is: whoever passed it may have told others of it.
///
/// # Errors
/// `EBADF` when nothing was passed under this number.
pub fn copy_inherited(number: i32) -> io::Result<OwnedFd> {
    // SAFETY: no memory is touched; a new descriptor is made of an open one.
    let copy = unsafe { libc::fcntl(number, libc::F_DUPFD_CLOEXEC, 3) };
    if copy < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the kernel has just made this descriptor, and nobody else knows its number.
    Ok(unsafe { OwnedFd::from_raw_fd(copy) })
}

/// Whether anybody has the file open for writing, or mapped to be written; `file` is opened for reading, by its
/// owner. Where the file system cannot tell, nobody has.
pub fn has_writers(file: impl AsFd) -> bool {
    let number = file.as_fd().as_raw_fd();
    // A lease for reading is refused while there are writers, see fcntl(2).
    // SAFETY: the call takes a descriptor, which is open, and two numbers.
    let leased = unsafe { libc::fcntl(number, libc::F_SETLEASE, libc::F_RDLCK) };
    if leased < 0 {
        return io::Error::last_os_error().raw_os_error() == Some(libc::EAGAIN);
    }
    // SAFETY: as above.
    unsafe { libc::fcntl(number, libc::F_SETLEASE, libc::F_UNLCK) };
    false
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::File;
    use std::process::Command;

    #[test]
    fn a_marked_descriptor_is_not_inherited() {
        let file = File::open("/dev/null").expect("/dev/null is there");
        let number = file.as_raw_fd();
        // SAFETY: F_SETFD takes an integer and the descriptor is open.
        assert_eq!(unsafe { libc::fcntl(number, libc::F_SETFD, 0) }, 0);
        let inherited = || {
            let test = format!("test -e /proc/self/fd/{number}");
            Command::new("/bin/sh").args(["-c", &test]).status().expect("sh runs").success()
        };
        assert!(inherited(), "control: without the mark it is inherited");
        close_on_exec_from(u32::try_from(number).expect("descriptors are positive")).expect("marked");
        assert!(!inherited());
    }
}

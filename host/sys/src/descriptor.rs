//! Inheritance of file descriptors, and leases on files.

use std::io;
use std::os::fd::{AsFd, AsRawFd, FromRawFd, OwnedFd};

use crate::process::SingleThread;

/// Closes every descriptor from `first` on.
///
/// Call this at the very start of a process, to close descriptors that its parent leaked. No value in the
/// process may own such a descriptor: the owner would keep a number that may soon refer to another file.
///
/// Since Linux 5.9, see close_range(2).
///
/// # Errors
/// `ENOSYS` on older kernels.
pub fn close_inherited(_proof: &SingleThread, first: u32) -> io::Result<()> {
    // SAFETY: the call touches no memory, and no value owns these descriptors, as the caller promises.
    let result = unsafe { libc::syscall(libc::SYS_close_range, first, u32::MAX, 0) };
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

/// Sets the close-on-exec flag on every descriptor from `first` on.
///
/// Since Linux 5.11, see close_range(2).
///
/// # Errors
/// `ENOSYS` or `EINVAL` on older kernels.
pub fn close_on_exec_from(first: u32) -> io::Result<()> {
    // SAFETY: with CLOSE_RANGE_CLOEXEC the call closes nothing, so every owner keeps its descriptor.
    let result = unsafe { libc::syscall(libc::SYS_close_range, first, u32::MAX, libc::CLOSE_RANGE_CLOEXEC) };
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

/// Returns a close-on-exec copy of an inherited descriptor.
///
/// The original stays open, because other code may know its number.
///
/// # Errors
/// `EBADF` when no descriptor with this number was inherited.
pub fn copy_inherited(number: i32) -> io::Result<OwnedFd> {
    // SAFETY: the call touches no memory; it duplicates a descriptor.
    let copy = unsafe { libc::fcntl(number, libc::F_DUPFD_CLOEXEC, 3) };
    if copy < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the kernel has just created this descriptor, so it has no other owner.
    Ok(unsafe { OwnedFd::from_raw_fd(copy) })
}

/// The signal that the holder of a lease gets when it is broken: one that is ignored unless a process handles it.
const BREAK_SIGNAL: libc::c_int = libc::SIGURG;
/// See fcntl(2).
const F_SETSIG: libc::c_int = 10;

/// A read lease on a file: until it is dropped, nobody else can open the file for writing. The kernel makes them wait,
/// or refuses them with `EWOULDBLOCK` if they do not wait.
#[derive(Debug)]
pub struct ReadLease(OwnedFd);

/// The reason why there is no lease.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NoLease {
    /// A process has the file open for writing, or mapped writable.
    Written,
    /// The file system has no leases, or the caller does not own the file.
    Unsupported,
}

impl ReadLease {
    /// Takes a lease on a file that is open for reading only.
    ///
    /// # Errors
    /// The reason why there is none.
    pub fn take(file: OwnedFd) -> Result<Self, NoLease> {
        let number = file.as_raw_fd();
        // Without it a process that breaks the lease would end this one: the usual signal is SIGIO.
        // SAFETY: the call takes an open descriptor and two numbers.
        unsafe { libc::fcntl(number, F_SETSIG, BREAK_SIGNAL) };
        // The kernel refuses a read lease while there are writers, see fcntl(2).
        // SAFETY: as above.
        let leased = unsafe { libc::fcntl(number, libc::F_SETLEASE, libc::F_RDLCK) };
        if leased == 0 {
            return Ok(Self(file));
        }
        let is_written = io::Error::last_os_error().raw_os_error() == Some(libc::EAGAIN);
        Err(if is_written { NoLease::Written } else { NoLease::Unsupported })
    }

    /// Returns true if nobody has tried to open the file for writing since the lease was taken.
    #[must_use]
    pub fn is_whole(&self) -> bool {
        // SAFETY: the call takes an open descriptor and a number.
        let lease = unsafe { libc::fcntl(self.0.as_raw_fd(), libc::F_GETLEASE) };
        lease == libc::F_RDLCK
    }

    /// Returns the file.
    #[must_use]
    pub fn file(&self) -> &OwnedFd {
        &self.0
    }
}

impl Drop for ReadLease {
    fn drop(&mut self) {
        // Also if a copy of the descriptor stays open.
        // SAFETY: the call takes an open descriptor and two numbers.
        unsafe { libc::fcntl(self.0.as_raw_fd(), libc::F_SETLEASE, libc::F_UNLCK) };
    }
}

/// Returns true if a process has the file open for writing, or mapped writable.
///
/// `file` must be open for reading only, and the caller must own it. Returns false if the file system has no
/// leases, or the descriptor cannot be copied.
pub fn has_writers(file: impl AsFd) -> bool {
    let Ok(copy) = file.as_fd().try_clone_to_owned() else { return false };
    matches!(ReadLease::take(copy), Err(NoLease::Written))
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

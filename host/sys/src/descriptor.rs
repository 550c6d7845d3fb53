//! Descriptors that a new program must not inherit.

use std::io;

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

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::File;
    use std::os::fd::AsRawFd;
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

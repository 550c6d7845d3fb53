//! The two ends of a pseudo-terminal, see ioctl_tty(2) and pts(4).

use std::io;
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd};

/// Returns the number of the other end in `/dev/pts`.
///
/// # Errors
/// `ENOTTY` when the descriptor is not the master of a pseudo-terminal, opened as `/dev/ptmx`.
pub fn number(terminal: BorrowedFd<'_>) -> io::Result<u32> {
    let mut number: libc::c_uint = 0;
    // SAFETY: the request writes one unsigned int behind the pointer, which outlives the call.
    let result = unsafe { libc::ioctl(terminal.as_raw_fd(), libc::TIOCGPTN, &raw mut number) };
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(number) }
}

/// Opens the other end, even if its name in `/dev/pts` now refers to another file.
///
/// `flags` are those of open(2).
///
/// # Errors
/// `ENOTTY` as for [`number`]; `EIO` while the other end is locked.
pub fn other_end(terminal: BorrowedFd<'_>, flags: i32) -> io::Result<OwnedFd> {
    // SAFETY: the argument of this request is a number.
    let result = unsafe { libc::ioctl(terminal.as_raw_fd(), libc::TIOCGPTPEER, flags) };
    if result < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the request returns a new descriptor, which has no other owner.
    Ok(unsafe { OwnedFd::from_raw_fd(result) })
}

#[cfg(test)]
mod tests {
    use std::fs::OpenOptions;
    use std::os::fd::AsFd;
    use std::os::unix::fs::MetadataExt;

    use super::*;

    #[test]
    fn the_other_end_is_the_one_of_that_number() {
        let ours = OpenOptions::new().read(true).write(true).open("/dev/ptmx").expect("a terminal");
        let number = number(ours.as_fd()).expect("a number");
        let flags = libc::O_RDWR | libc::O_NOCTTY | libc::O_CLOEXEC;
        assert_eq!(other_end(ours.as_fd(), flags).expect_err("locked").raw_os_error(), Some(libc::EIO));
        let unlocked: libc::c_int = 0;
        // SAFETY: the request reads one int behind the pointer, which outlives the call.
        let result = unsafe { libc::ioctl(ours.as_raw_fd(), libc::TIOCSPTLCK, &raw const unlocked) };
        assert_eq!(result, 0);
        let theirs = std::fs::File::from(other_end(ours.as_fd(), flags).expect("the other end"));
        let named = std::fs::metadata(format!("/dev/pts/{number}")).expect("a name");
        assert_eq!(theirs.metadata().expect("there").rdev(), named.rdev());
    }

    #[test]
    fn what_is_no_terminal_has_no_other_end() {
        let null = std::fs::File::open("/dev/null").expect("a device");
        assert_eq!(number(null.as_fd()).expect_err("no terminal").raw_os_error(), Some(libc::ENOTTY));
        assert_eq!(other_end(null.as_fd(), 0).expect_err("no terminal").raw_os_error(), Some(libc::ENOTTY));
    }
}

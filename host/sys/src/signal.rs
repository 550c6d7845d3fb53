//! Signals of the calling process.

use std::io;
use std::mem::MaybeUninit;

/// A signal's number.
pub type Number = i32;

/// "A child ended."
pub const CHILD: Number = libc::SIGCHLD;
/// "Nobody reads what you write."
pub const PIPE: Number = libc::SIGPIPE;
/// "This address is not yours."
pub const SEGMENT: Number = libc::SIGSEGV;
/// "There is no memory at this address."
pub const BUS: Number = libc::SIGBUS;
/// The signal that cannot be caught.
pub const KILL: Number = libc::SIGKILL;

/// Keeps every signal pending, in the calling thread and in whatever it starts.
///
/// # Errors
/// The kernel's errno.
pub fn block_all() -> io::Result<()> {
    let mut set = MaybeUninit::<libc::sigset_t>::uninit();
    // SAFETY: sigfillset writes a whole set to the place it is given.
    unsafe { libc::sigfillset(set.as_mut_ptr()) };
    // SAFETY: the set is filled; the old mask is not asked for.
    let result = unsafe { libc::sigprocmask(libc::SIG_SETMASK, set.as_ptr(), std::ptr::null_mut()) };
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

/// Gives a signal its default meaning.
///
/// # Errors
/// `EINVAL` when there is no such signal.
pub fn restore_default(number: Number) -> io::Result<()> {
    // SAFETY: SIG_DFL is a valid disposition and runs no code of ours.
    let old = unsafe { libc::signal(number, libc::SIG_DFL) };
    if old == libc::SIG_ERR { Err(io::Error::last_os_error()) } else { Ok(()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_signal_that_does_not_exist_is_refused() {
        assert_eq!(restore_default(4096).expect_err("no such signal").raw_os_error(), Some(libc::EINVAL));
    }

    #[test]
    fn a_blocked_signal_waits() {
        let pending = std::thread::spawn(|| {
            block_all()?;
            // SAFETY: raise takes an integer; the signal is blocked in this thread, and ends the process if not.
            assert_eq!(unsafe { libc::raise(libc::SIGUSR1) }, 0);
            io::Result::Ok(())
        });
        assert!(pending.join().expect("the thread ends").is_ok());
    }
}

//! Signals of the calling thread, waited for rather than handled.

use std::io;
use std::mem::MaybeUninit;

/// A signal's number.
pub type Number = i32;

/// "A child ended."
pub const CHILD: Number = libc::SIGCHLD;
/// "Nobody reads what you write."
pub const PIPE: Number = libc::SIGPIPE;
/// The signal that cannot be caught.
pub const KILL: Number = libc::SIGKILL;

/// Keeps every signal pending until [`wait_any`] takes it.
///
/// # Errors
/// The kernel's errno.
pub fn block_all() -> io::Result<()> {
    let mut set = MaybeUninit::<libc::sigset_t>::uninit();
    // SAFETY: sigfillset writes a whole set to the place it is given.
    unsafe { libc::sigfillset(set.as_mut_ptr()) };
    replace_mask(&set)
}

/// Lets every signal through again.
///
/// # Errors
/// The kernel's errno.
pub fn unblock_all() -> io::Result<()> {
    let mut set = MaybeUninit::<libc::sigset_t>::uninit();
    // SAFETY: sigemptyset writes a whole set to the place it is given.
    unsafe { libc::sigemptyset(set.as_mut_ptr()) };
    replace_mask(&set)
}

fn replace_mask(set: &MaybeUninit<libc::sigset_t>) -> io::Result<()> {
    // SAFETY: both callers have filled the set; the old mask is not asked for.
    check(unsafe { libc::sigprocmask(libc::SIG_SETMASK, set.as_ptr(), std::ptr::null_mut()) })
}

/// Waits for any blocked signal and takes it.
///
/// # Errors
/// `EINTR`, when the process was stopped and continued.
pub fn wait_any() -> io::Result<Number> {
    let mut set = MaybeUninit::<libc::sigset_t>::uninit();
    // SAFETY: sigfillset writes a whole set to the place it is given.
    unsafe { libc::sigfillset(set.as_mut_ptr()) };
    // SAFETY: the set is filled; no details are asked for.
    let number = unsafe { libc::sigwaitinfo(set.as_ptr(), std::ptr::null_mut()) };
    check(number)?;
    Ok(number)
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

/// Sends a signal to a process, or with a negative number to a process group.
///
/// # Errors
/// `ESRCH` when there is none, `EPERM` when it is not ours, `EINVAL` when there is no such signal.
pub fn send(pid: i32, number: Number) -> io::Result<()> {
    // SAFETY: kill takes two integers and touches no memory.
    check(unsafe { libc::kill(pid, number) })
}

fn check(result: libc::c_int) -> io::Result<()> {
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_signal_that_does_not_exist_is_refused() {
        assert_eq!(restore_default(4096).expect_err("no such signal").raw_os_error(), Some(libc::EINVAL));
        assert_eq!(send(0, 4096).expect_err("no such signal").raw_os_error(), Some(libc::EINVAL));
    }

    #[test]
    fn a_blocked_signal_is_taken_by_waiting() {
        let taken = std::thread::spawn(|| {
            block_all()?;
            // SAFETY: raise takes an integer; the signal is blocked in this thread.
            assert_eq!(unsafe { libc::raise(libc::SIGUSR1) }, 0);
            wait_any()
        });
        assert_eq!(taken.join().expect("the thread ends").expect("a signal"), libc::SIGUSR1);
    }
}

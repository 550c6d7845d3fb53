//! Signals of the calling process.

use std::io;
use std::marker::PhantomData;
use std::mem::MaybeUninit;

use crate::process::SingleThread;

/// The signal that cannot be caught.
pub const KILL: i32 = libc::SIGKILL;

/// The highest number of a signal on the processors we know.
const LAST: i32 = 64;

/// Proof that no signal runs any code in this process, nor in what it starts: all are blocked, and all have
/// their default meaning.
///
/// Whoever holds it changes nothing about that.
#[derive(Debug)]
pub struct Settled(PhantomData<*const ()>);

impl Settled {
    /// Blocks all signals and gives them their default meaning.
    ///
    /// # Errors
    /// The kernel's errno.
    pub fn settle(_proof: &SingleThread) -> io::Result<Self> {
        block_all()?;
        for number in 1..=LAST {
            restore_default(number)?;
        }
        Ok(Self(PhantomData))
    }
}

fn block_all() -> io::Result<()> {
    let mut set = MaybeUninit::<libc::sigset_t>::uninit();
    // SAFETY: sigfillset writes a whole set to the place it is given.
    unsafe { libc::sigfillset(set.as_mut_ptr()) };
    // SAFETY: the set is filled; the old mask is not asked for.
    let result = unsafe { libc::sigprocmask(libc::SIG_SETMASK, set.as_ptr(), std::ptr::null_mut()) };
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

fn restore_default(number: i32) -> io::Result<()> {
    // SAFETY: SIG_DFL is a valid disposition and runs no code of ours.
    if unsafe { libc::signal(number, libc::SIG_DFL) } != libc::SIG_ERR {
        return Ok(());
    }
    let error = io::Error::last_os_error();
    // Two signals always have their default meaning, and the C library keeps two to itself, for threads only.
    if error.raw_os_error() == Some(libc::EINVAL) { Ok(()) } else { Err(error) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_cannot_be_changed_is_passed_over() {
        for number in [libc::SIGKILL, libc::SIGSTOP, libc::SIGWINCH, 32, LAST] {
            restore_default(number).expect("default");
        }
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

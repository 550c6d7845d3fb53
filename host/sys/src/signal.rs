//! Signals of the calling process.

use std::io;
use std::marker::PhantomData;
use std::mem::MaybeUninit;

use crate::process::SingleThread;

/// The signal that cannot be caught.
pub const KILL: i32 = libc::SIGKILL;

/// The highest signal number on the supported architectures.
const LAST: i32 = 64;

/// Proof that no signal handler runs in this process or its children.
///
/// All signals are blocked and have their default disposition.
///
/// The holder must not change that.
#[derive(Debug)]
pub struct Settled(PhantomData<*const ()>);

impl Settled {
    /// Blocks all signals and restores their default dispositions.
    ///
    /// # Errors
    /// The errno of the kernel.
    pub fn block_all(_proof: &SingleThread) -> io::Result<Self> {
        block_all()?;
        for number in 1..=LAST {
            restore_default(number)?;
        }
        Ok(Self(PhantomData))
    }
}

fn block_all() -> io::Result<()> {
    let mut set = MaybeUninit::<libc::sigset_t>::uninit();
    // SAFETY: sigfillset initializes the whole set behind the pointer.
    unsafe { libc::sigfillset(set.as_mut_ptr()) };
    // SAFETY: the set is initialized; the old mask is not requested.
    let result = unsafe { libc::sigprocmask(libc::SIG_SETMASK, set.as_ptr(), std::ptr::null_mut()) };
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

fn restore_default(number: i32) -> io::Result<()> {
    // SAFETY: SIG_DFL is a valid disposition and runs no code of ours.
    if unsafe { libc::signal(number, libc::SIG_DFL) } != libc::SIG_ERR {
        return Ok(());
    }
    let error = io::Error::last_os_error();
    // Two signals always have the default disposition, and libc reserves two for its threads.
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
            // SAFETY: raise takes an integer. The signal is blocked in this thread; otherwise it would end
            // the process.
            assert_eq!(unsafe { libc::raise(libc::SIGUSR1) }, 0);
            io::Result::Ok(())
        });
        assert!(pending.join().expect("the thread ends").is_ok());
    }
}

//! System calls that a seccomp filter passes to a supervisor, see seccomp_unotify(2).

use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::ptr;

/// `SECCOMP_USER_NOTIF_FD_SYNC_WAKE_UP`: both threads take turns on one processor. Since Linux 6.6.
const SYNC_WAKE_UP: u64 = 1;

/// A seccomp listener, which receives and answers system calls. Several threads can use it.
#[derive(Debug)]
pub struct Listener(OwnedFd);

/// A system call that waits for an answer.
#[derive(Debug, Clone, Copy)]
pub struct Call {
    /// The id of the notification, unique for the lifetime of the listener.
    pub id: u64,
    /// The thread id of the caller, in this process's pid namespace.
    pub thread: i32,
    /// The number of the system call.
    pub number: libc::c_long,
    /// The arguments of the system call.
    pub arguments: [u64; 6],
}

/// The answer to a system call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SyscallAnswer {
    /// The kernel executes the call. Data read from the caller's memory may have changed since.
    Continue,
    /// The call returns this value.
    Value(i64),
    /// The call fails with this errno.
    Error(i32),
}

impl Listener {
    /// Wraps a listener descriptor.
    pub fn new(listener: OwnedFd) -> Self {
        Self(listener)
    }

    /// Enables synchronous wake-ups, which make a handover cheap if both sides wait for each other anyway.
    ///
    /// # Errors
    /// `EINVAL` or `ENOTTY` on kernels before 6.6.
    pub fn wake_synchronously(&self) -> io::Result<()> {
        // SAFETY: the argument of this request is a number.
        let result =
            unsafe { libc::ioctl(self.0.as_raw_fd(), libc::SECCOMP_IOCTL_NOTIF_SET_FLAGS, SYNC_WAKE_UP) };
        if result < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
    }

    /// Waits for a call.
    ///
    /// # Errors
    /// `ENOENT` when the caller has ended meanwhile, or `EINTR`. Try again after both.
    pub fn receive(&self) -> io::Result<Call> {
        let mut call = libc::seccomp_notif {
            id: 0,
            pid: 0,
            flags: 0,
            data: libc::seccomp_data { nr: 0, arch: 0, instruction_pointer: 0, args: [0; 6] },
        };
        self.request(libc::SECCOMP_IOCTL_NOTIF_RECV, &mut call)?;
        let thread = i32::try_from(call.pid).map_err(|_too_large| io::ErrorKind::InvalidData)?;
        let number = libc::c_long::from(call.data.nr);
        Ok(Call { id: call.id, thread, number, arguments: call.data.args })
    }

    /// Returns true if the call still waits.
    ///
    /// Data that was read from the caller before then really comes from it.
    pub fn is_waiting(&self, id: u64) -> bool {
        let mut id = id;
        self.request(libc::SECCOMP_IOCTL_NOTIF_ID_VALID, &mut id).is_ok()
    }

    /// Answers a call.
    ///
    /// # Errors
    /// `ENOENT` when the caller has ended.
    pub fn answer(&self, id: u64, answer: SyscallAnswer) -> io::Result<()> {
        let mut response = libc::seccomp_notif_resp { id, val: 0, error: 0, flags: 0 };
        match answer {
            SyscallAnswer::Continue => response.flags = CONTINUE,
            SyscallAnswer::Value(value) => response.val = value,
            SyscallAnswer::Error(errno) => response.error = errno.saturating_neg(),
        }
        self.request(libc::SECCOMP_IOCTL_NOTIF_SEND, &mut response).map(drop)
    }

    /// Answers a call with a copy of a descriptor.
    ///
    /// # Errors
    /// `ENOENT` when the caller has ended, `EMFILE` when it has too many descriptors.
    pub fn give(&self, id: u64, descriptor: BorrowedFd<'_>, close_on_exec: bool) -> io::Result<()> {
        let mut given = addition(id, SEND, descriptor, close_on_exec);
        self.request(libc::SECCOMP_IOCTL_NOTIF_ADDFD, &mut given).map(drop)
    }

    /// Like [`Self::give`], but closes the descriptor here before the caller continues.
    ///
    /// It takes half as long again, because the caller wakes twice. The call must not be interrupted by a
    /// signal that its process survives, or the copy stays in the caller unused.
    ///
    /// # Errors
    /// Those of [`Self::give`].
    pub fn give_away(&self, id: u64, descriptor: OwnedFd, close_on_exec: bool) -> io::Result<()> {
        let mut given = addition(id, 0, descriptor.as_fd(), close_on_exec);
        let number = self.request(libc::SECCOMP_IOCTL_NOTIF_ADDFD, &mut given)?;
        drop(descriptor);
        self.answer(id, SyscallAnswer::Value(number.into()))
    }

    fn request<T>(&self, request: libc::Ioctl, argument: &mut T) -> io::Result<i32> {
        // SAFETY: the callers above pass the structure for the request, and it outlives the call.
        let result = unsafe { libc::ioctl(self.0.as_raw_fd(), request, ptr::from_mut(argument)) };
        if result < 0 { Err(io::Error::last_os_error()) } else { Ok(result) }
    }
}

/// Returns the request that copies a descriptor to the caller.
fn addition(
    id: u64,
    flags: u32,
    descriptor: BorrowedFd<'_>,
    close_on_exec: bool,
) -> libc::seccomp_notif_addfd {
    libc::seccomp_notif_addfd {
        id,
        flags,
        srcfd: descriptor.as_raw_fd().cast_unsigned(),
        newfd: 0,
        newfd_flags: if close_on_exec { libc::O_CLOEXEC.cast_unsigned() } else { 0 },
    }
}

impl AsFd for Listener {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

/// `SECCOMP_USER_NOTIF_FLAG_CONTINUE`.
const CONTINUE: u32 = 1;
/// `SECCOMP_ADDFD_FLAG_SEND`: copy the descriptor and answer in one step. Since Linux 5.14.
const SEND: u32 = 2;

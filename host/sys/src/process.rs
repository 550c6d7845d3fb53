//! Making processes.

use std::ffi::CString;
use std::fs;
use std::io;
use std::marker::PhantomData;
use std::mem;
use std::ops::BitOr;
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd, RawFd};
use std::ptr;
use std::time::Duration;

/// Proof that this process had exactly one thread when it was asked.
///
/// A process that forks while another thread holds a lock (the allocator's, for one) leaves that lock
/// closed for ever in the child, so [`clone`] wants this proof.
/// Whoever holds it starts no threads afterwards; it cannot be sent to one.
#[derive(Debug)]
pub struct SingleThread(PhantomData<*const ()>);

impl SingleThread {
    /// Returns the proof, or nothing when the process has other threads.
    ///
    /// # Errors
    /// Fails when `/proc` cannot be read.
    pub fn prove() -> io::Result<Option<Self>> {
        let threads = fs::read_dir("/proc/self/task")?.count();
        Ok((threads == 1).then_some(Self(PhantomData)))
    }
}

/// What a [`clone`]d child does not share with its parent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CloneFlags(libc::c_int);

impl CloneFlags {
    /// Nothing of its own but its memory.
    pub const NONE: Self = Self(0);
    /// The child is a sibling of the caller: its parent is the caller's parent.
    pub const PARENT: Self = Self(libc::CLONE_PARENT);
    /// A user namespace of its own.
    pub const USER: Self = Self(libc::CLONE_NEWUSER);
    /// A mount namespace of its own.
    pub const MOUNT: Self = Self(libc::CLONE_NEWNS);
    /// A pid namespace of its own, in which it is process 1.
    pub const PID: Self = Self(libc::CLONE_NEWPID);
    /// System V objects and message queues of its own.
    pub const IPC: Self = Self(libc::CLONE_NEWIPC);
    /// A host name of its own.
    pub const UTS: Self = Self(libc::CLONE_NEWUTS);
    /// A network of its own.
    pub const NETWORK: Self = Self(libc::CLONE_NEWNET);
}

impl CloneFlags {
    pub(crate) fn bits(self) -> libc::c_int {
        self.0
    }
}

impl BitOr for CloneFlags {
    type Output = Self;

    fn bitor(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }
}

/// Which of the two processes returned from [`clone`].
#[derive(Debug)]
pub enum Cloned {
    /// The new process.
    Child,
    /// The calling one.
    Parent {
        /// The child's number in the caller's pid namespace.
        pid: i32,
        /// The child's pidfd, closed on exec.
        pidfd: OwnedFd,
    },
}

/// Makes a copy of this process, with namespaces of its own as `flags` say.
///
/// # Errors
/// The kernel's errno: `EPERM` and `ENOSPC` when namespaces are refused, `EAGAIN` when there are too many
/// processes.
pub fn clone(_proof: &SingleThread, flags: CloneFlags) -> io::Result<Cloned> {
    let mut pidfd: RawFd = -1;
    let bits = i64::from(flags.0 | libc::CLONE_PIDFD | libc::SIGCHLD);
    // SAFETY: no stack is given and memory is not shared, so the child goes on with a copy of everything, as
    // after fork(2); the process has one thread (`_proof`), so no lock is left held in the child; `pidfd` is
    // where CLONE_PIDFD writes and outlives the call. The raw call is used because glibc's wrapper wants a
    // function and a stack.
    let pid = unsafe {
        libc::syscall(
            libc::SYS_clone,
            bits,
            ptr::null_mut::<libc::c_void>(),
            ptr::from_mut(&mut pidfd),
            ptr::null_mut::<libc::c_void>(),
            0_i64,
        )
    };
    cloned(pid, pidfd)
}

/// Makes a copy of this process as [`clone`] does, which starts in a control group: `group` is its directory.
///
/// # Errors
/// As for [`clone`]; `EACCES` when this process may not put another into the group, `ENODEV` when the group has been
/// removed, `ENOSYS` before Linux 5.3 or under a filter of system calls, `E2BIG` before 5.7.
pub fn clone_into(_proof: &SingleThread, flags: CloneFlags, group: BorrowedFd<'_>) -> io::Result<Cloned> {
    let mut pidfd: RawFd = -1;
    // A sibling ends with the signal with which its maker ends, and may not be given another.
    let is_sibling = flags.0 & libc::CLONE_PARENT != 0;
    let number = |value: i32| u64::from(value.cast_unsigned());
    // SAFETY: the structure consists of numbers, for which 0 is fine.
    let mut arguments: libc::clone_args = unsafe { mem::zeroed() };
    arguments.flags = number(flags.0 | libc::CLONE_PIDFD) | CLONE_INTO_CGROUP;
    arguments.pidfd = u64::try_from(ptr::from_mut(&mut pidfd).expose_provenance()).unwrap_or_default();
    arguments.exit_signal = if is_sibling { 0 } else { number(libc::SIGCHLD) };
    arguments.cgroup = number(group.as_raw_fd());
    // SAFETY: as in `clone`; the structure is as long as is said, and it and `pidfd` outlive the call.
    let pid = unsafe {
        libc::syscall(libc::SYS_clone3, ptr::from_mut(&mut arguments), size_of::<libc::clone_args>())
    };
    cloned(pid, pidfd)
}

/// See clone(2); the C library's constant of that name is cut off to 32 bits.
const CLONE_INTO_CGROUP: u64 = 0x2_0000_0000;

/// Tells by the kernel's answer which of the two processes this is.
fn cloned(pid: libc::c_long, pidfd: RawFd) -> io::Result<Cloned> {
    match i32::try_from(pid) {
        Ok(0) => Ok(Cloned::Child),
        Ok(pid) if pid > 0 => {
            // SAFETY: the kernel has just made this descriptor for us and nobody else owns it.
            let pidfd = unsafe { OwnedFd::from_raw_fd(pidfd) };
            Ok(Cloned::Parent { pid, pidfd })
        }
        Ok(_) | Err(_) => Err(io::Error::last_os_error()),
    }
}

/// Argument and environment vectors in the form that `execve` wants.
#[derive(Debug)]
pub struct ExecVector {
    #[expect(dead_code, reason = "they are what the pointers lead to")]
    strings: Vec<CString>,
    pointers: Vec<*const libc::c_char>,
}

impl ExecVector {
    /// Builds the vector.
    pub fn new(strings: Vec<CString>) -> Self {
        let end = std::iter::once(ptr::null());
        let pointers = strings.iter().map(|string| string.as_ptr()).chain(end).collect();
        Self { strings, pointers }
    }

    /// Returns where the vector lies, for as long as this value lives.
    pub(crate) fn address(&self) -> usize {
        self.pointers.as_ptr().expose_provenance()
    }
}

/// Gives the calling thread a working directory and a mask for new files of its own.
///
/// # Errors
/// The kernel's errno.
pub fn own_file_attributes() -> io::Result<()> {
    // SAFETY: the thread stays in the process's descriptor table; what it no longer shares is asked for by path
    // or mask, for which there is no owner.
    let result = unsafe { libc::unshare(libc::CLONE_FS) };
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

/// Returns how many bytes a page of memory has.
#[must_use]
pub fn page_size() -> u64 {
    // SAFETY: sysconf reads a number and has no preconditions.
    let size = unsafe { libc::sysconf(libc::_SC_PAGESIZE) };
    u64::try_from(size).unwrap_or(4096)
}

/// Proof that no signal of this process leaves the Landlock rules that it is under, which it cannot lose.
#[derive(Debug)]
pub struct Fenced(PhantomData<*const ()>);

impl Fenced {
    /// Returns the proof. `outside` is a living process of the same user that is not under these rules: whoever may
    /// signal it may signal all processes of the user.
    ///
    /// # Errors
    /// `EPERM` when a signal reaches it, or when that cannot be told.
    pub fn check(_proof: &SingleThread, outside: i32) -> io::Result<Self> {
        // SAFETY: the call takes no address, and 0 is no signal.
        let reached = unsafe { libc::kill(outside, 0) };
        if reached != 0 && io::Error::last_os_error().raw_os_error() == Some(libc::EPERM) {
            return Ok(Self(PhantomData));
        }
        Err(io::Error::from_raw_os_error(libc::EPERM))
    }

    /// Kills every other process under the same rules, and waits a moment for the ends of its children and of orphans
    /// that it has adopted. Nobody who is told to die makes another process; one whose end somebody else has to hear
    /// of first is not waited for any longer.
    pub fn end_all(&self) {
        // SAFETY: the call takes no address, and reaches nobody outside of the rules.
        unsafe { libc::kill(-1, libc::SIGKILL) };
        for _ in 0..LAST_MILLISECONDS {
            // SAFETY: no status is asked for, so nothing is written.
            while unsafe { libc::waitpid(-1, ptr::null_mut(), libc::WNOHANG | libc::__WALL) } > 0 {}
            if io::Error::last_os_error().raw_os_error() == Some(libc::ECHILD) {
                return;
            }
            std::thread::sleep(Duration::from_millis(1));
        }
    }
}

/// How long is waited for ends that are sure to come.
const LAST_MILLISECONDS: u32 = 1000;

/// The numbers of a thread and of its process, as this process sees them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Numbers {
    /// Of the thread.
    pub thread: u32,
    /// Of the process that it belongs to.
    pub process: u32,
}

/// Returns the numbers of what a pidfd refers to; 0 for what is outside of this process's pid namespace.
///
/// # Errors
/// `ENOTTY` or `EINVAL` on kernels before 6.13, `ESRCH` when it has ended.
pub fn numbers_of(pidfd: BorrowedFd<'_>) -> io::Result<Numbers> {
    // SAFETY: the structure consists of numbers, for which 0 is fine.
    let mut info: libc::pidfd_info = unsafe { mem::zeroed() };
    info.mask = libc::PIDFD_INFO_PID.into();
    // SAFETY: this request writes the structure that goes with it, which outlives the call.
    let result = unsafe { libc::ioctl(pidfd.as_raw_fd(), libc::PIDFD_GET_INFO, ptr::from_mut(&mut info)) };
    if result < 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(Numbers { thread: info.pid, process: info.tgid })
}

/// Ends this process at once, running no destructors and no exit handlers.
pub fn exit_now(code: i32) -> ! {
    // SAFETY: _exit has no preconditions.
    unsafe { libc::_exit(code) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_with_threads_gets_no_proof() {
        let (stop, wait) = std::sync::mpsc::channel::<()>();
        let other = std::thread::spawn(move || wait.recv());
        assert!(SingleThread::prove().expect("/proc can be read").is_none());
        drop(stop);
        assert!(other.join().expect("the thread ends").is_err());
    }
}

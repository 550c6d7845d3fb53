//! Creating and ending processes.

use std::ffi::CString;
use std::fs;
use std::io;
use std::marker::PhantomData;
use std::mem;
use std::ops::BitOr;
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd, RawFd};
use std::ptr;
use std::time::Duration;

/// Proof that this process had exactly one thread at the time of the check.
///
/// If a process forks while another thread holds a lock (such as the allocator's), that lock stays locked
/// forever in the child. So [`clone`] requires this proof. Its holder must not start threads afterwards; the
/// proof cannot be sent to another thread.
#[derive(Debug)]
pub struct SingleThread(PhantomData<*const ()>);

impl SingleThread {
    /// Returns the proof, or `None` if the process has other threads.
    ///
    /// # Errors
    /// Fails when `/proc` cannot be read.
    pub fn prove() -> io::Result<Option<Self>> {
        let threads = fs::read_dir("/proc/self/task")?.count();
        Ok((threads == 1).then_some(Self(PhantomData)))
    }
}

/// The resources that a [`clone`]d child does not share with its parent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CloneFlags(libc::c_int);

impl CloneFlags {
    /// Only its own memory.
    pub const NONE: Self = Self(0);
    /// The child becomes a sibling: its parent is the caller's parent.
    pub const PARENT: Self = Self(libc::CLONE_PARENT);
    /// Its own user namespace.
    pub const USER: Self = Self(libc::CLONE_NEWUSER);
    /// Its own mount namespace.
    pub const MOUNT: Self = Self(libc::CLONE_NEWNS);
    /// Its own pid namespace, in which it is process 1.
    pub const PID: Self = Self(libc::CLONE_NEWPID);
    /// Its own System V IPC objects and POSIX message queues.
    pub const IPC: Self = Self(libc::CLONE_NEWIPC);
    /// Its own host name.
    pub const UTS: Self = Self(libc::CLONE_NEWUTS);
    /// Its own network.
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

/// The process in which [`clone`] returned.
#[derive(Debug)]
pub enum Cloned {
    /// The new process.
    Child,
    /// The calling process.
    Parent {
        /// The child's pid in the caller's pid namespace.
        pid: i32,
        /// The child's pidfd, with the close-on-exec flag.
        pidfd: OwnedFd,
    },
}

/// Forks this process, with new namespaces according to `flags`.
///
/// # Errors
/// The errno of the kernel: `EPERM` and `ENOSPC` when namespaces are refused, `EAGAIN` when there are too
/// many processes.
pub fn clone(_proof: &SingleThread, flags: CloneFlags) -> io::Result<Cloned> {
    let mut pidfd: RawFd = -1;
    let bits = i64::from(flags.0 | libc::CLONE_PIDFD | libc::SIGCHLD);
    // SAFETY: there is no new stack and memory is not shared, so the child continues with a copy of
    // everything, as after fork(2). The process has one thread (`_proof`), so no lock stays locked in the
    // child. CLONE_PIDFD writes to `pidfd`, which outlives the call. The raw call is used because glibc's
    // wrapper requires a function and a stack.
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

/// Forks this process like [`clone`], with the child starting in a control group.
///
/// `group` is the group's directory.
///
/// # Errors
/// Those of [`clone`]; `EACCES` when this process may not add processes to the group, `ENODEV` when the group
/// was removed, `ENOSYS` before Linux 5.3 or under a seccomp filter, `E2BIG` before 5.7.
pub fn clone_into(_proof: &SingleThread, flags: CloneFlags, group: BorrowedFd<'_>) -> io::Result<Cloned> {
    let mut pidfd: RawFd = -1;
    // A sibling inherits the exit signal of the caller; the kernel rejects another one.
    let is_sibling = flags.0 & libc::CLONE_PARENT != 0;
    let number = |value: i32| u64::from(value.cast_unsigned());
    // SAFETY: the structure consists of numbers, for which 0 is valid.
    let mut arguments: libc::clone_args = unsafe { mem::zeroed() };
    arguments.flags = number(flags.0 | libc::CLONE_PIDFD) | CLONE_INTO_CGROUP;
    arguments.pidfd = u64::try_from(ptr::from_mut(&mut pidfd).expose_provenance()).unwrap_or_default();
    arguments.exit_signal = if is_sibling { 0 } else { number(libc::SIGCHLD) };
    arguments.cgroup = number(group.as_raw_fd());
    // SAFETY: as in `clone`; the structure has the given size, and it and `pidfd` outlive the call.
    let pid = unsafe {
        libc::syscall(libc::SYS_clone3, ptr::from_mut(&mut arguments), size_of::<libc::clone_args>())
    };
    cloned(pid, pidfd)
}

/// See clone(2). The constant in libc is truncated to 32 bits.
const CLONE_INTO_CGROUP: u64 = 0x2_0000_0000;

/// Returns the process in which this code runs, from the kernel's answer.
fn cloned(pid: libc::c_long, pidfd: RawFd) -> io::Result<Cloned> {
    match i32::try_from(pid) {
        Ok(0) => Ok(Cloned::Child),
        Ok(pid) if pid > 0 => {
            // SAFETY: the kernel has just created this descriptor, so it has no other owner.
            let pidfd = unsafe { OwnedFd::from_raw_fd(pidfd) };
            Ok(Cloned::Parent { pid, pidfd })
        }
        Ok(_) | Err(_) => Err(io::Error::last_os_error()),
    }
}

/// An argument or environment vector in the form that `execve` expects.
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

    /// Returns the address of the vector, valid while this value lives.
    pub(crate) fn address(&self) -> usize {
        self.pointers.as_ptr().expose_provenance()
    }
}

/// Gives the calling thread its own working directory and umask.
///
/// # Errors
/// The errno of the kernel.
pub fn own_file_attributes() -> io::Result<()> {
    // SAFETY: the thread keeps the process's descriptor table. Only the working directory, the root and the
    // umask become its own, and no value owns those.
    let result = unsafe { libc::unshare(libc::CLONE_FS) };
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

/// Returns the size of a memory page in bytes.
#[must_use]
pub fn page_size() -> u64 {
    // SAFETY: sysconf reads a number and has no preconditions.
    let size = unsafe { libc::sysconf(libc::_SC_PAGESIZE) };
    u64::try_from(size).unwrap_or(4096)
}

/// Proof that signals of this process cannot leave its Landlock domain. The domain is permanent.
#[derive(Debug)]
pub struct Fenced(PhantomData<*const ()>);

impl Fenced {
    /// Returns the proof.
    ///
    /// `outside` must be a living process of the same user outside of the domain: a process that may signal
    /// it may signal all processes of the user.
    ///
    /// # Errors
    /// `EPERM` when a signal reaches `outside`, or when the check is inconclusive.
    pub fn check(_proof: &SingleThread, outside: i32) -> io::Result<Self> {
        // SAFETY: the call takes no address, and signal 0 sends nothing.
        let reached = unsafe { libc::kill(outside, 0) };
        if reached != 0 && io::Error::last_os_error().raw_os_error() == Some(libc::EPERM) {
            return Ok(Self(PhantomData));
        }
        Err(io::Error::from_raw_os_error(libc::EPERM))
    }

    /// Kills every other process in the domain.
    ///
    /// Then waits up to a second for this process's children and adopted orphans to end.
    ///
    /// A process that is being killed cannot fork. A process whose own parent or tracer has to reap it first
    /// may outlive the wait.
    pub fn end_all(&self) {
        // SAFETY: the call takes no address, and reaches no process outside of the domain.
        unsafe { libc::kill(-1, libc::SIGKILL) };
        for _ in 0..LAST_MILLISECONDS {
            // SAFETY: no status is requested, so the kernel writes nothing.
            while unsafe { libc::waitpid(-1, ptr::null_mut(), libc::WNOHANG | libc::__WALL) } > 0 {}
            if io::Error::last_os_error().raw_os_error() == Some(libc::ECHILD) {
                return;
            }
            std::thread::sleep(Duration::from_millis(1));
        }
    }
}

/// Maximum time that [`Fenced::end_all`] waits for the killed processes.
const LAST_MILLISECONDS: u32 = 1000;

/// The ids of a thread and of its process, in this process's pid namespace.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Numbers {
    /// The thread id.
    pub thread: u32,
    /// The process id.
    pub process: u32,
}

/// Returns the ids behind a pidfd; 0 for ids outside of this process's pid namespace.
///
/// # Errors
/// `ENOTTY` or `EINVAL` on kernels before 6.13, `ESRCH` when the process has ended.
pub fn numbers_of(pidfd: BorrowedFd<'_>) -> io::Result<Numbers> {
    // SAFETY: the structure consists of numbers, for which 0 is valid.
    let mut info: libc::pidfd_info = unsafe { mem::zeroed() };
    info.mask = libc::PIDFD_INFO_PID.into();
    // SAFETY: this request writes the structure that belongs to it, which outlives the call.
    let result = unsafe { libc::ioctl(pidfd.as_raw_fd(), libc::PIDFD_GET_INFO, ptr::from_mut(&mut info)) };
    if result < 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(Numbers { thread: info.pid, process: info.tgid })
}

/// Ends this process at once, without destructors and exit handlers.
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

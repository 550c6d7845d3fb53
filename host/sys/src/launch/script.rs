//! System calls that one process prepares and another one makes.

use std::ffi::CString;
use std::marker::PhantomData;
use std::os::fd::{AsRawFd, BorrowedFd};

use super::raw::{self, number, word};

/// `_LINUX_CAPABILITY_VERSION_3` and the calling process, see capset(2).
static CAPABILITIES_OF_SELF: [u32; 2] = [0x2008_0522, 0];
static NO_CAPABILITIES: [u32; 6] = [0; 6];
/// The empty signal set.
static NO_SIGNALS: u64 = 0;
/// Size of the kernel's signal set in bytes.
pub(super) const SIGNALS_BYTES: usize = size_of::<u64>();

const FSCONFIG_CMD_CREATE: usize = 6;
const FSOPEN_CLOEXEC: usize = 1;
const FSMOUNT_CLOEXEC: usize = 1;
const OPEN_TREE_CLONE: usize = 1;
const MOVE_MOUNT_F_EMPTY_PATH: usize = 4;
const TIOCSCTTY: usize = 0x540e;

/// A standard descriptor.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Standard {
    /// Standard input.
    Input,
    /// Standard output.
    Output,
    /// Standard error.
    Error,
}

/// A sequence of system calls that sets up a process.
///
/// Each call has a `label`, which is reported if it fails; the script then stops. The script prepares and
/// owns all memory that the calls need. It borrows descriptors until it is started.
#[derive(Debug, Default)]
pub struct Script<'descriptors> {
    calls: Vec<Call>,
    // The memory that the addresses in `calls` refer to.
    strings: Vec<CString>,
    #[expect(clippy::vec_box, reason = "their addresses must stay when the list grows")]
    limits: Vec<Box<libc::rlimit64>>,
    descriptors: PhantomData<BorrowedFd<'descriptors>>,
}

/// One system call.
#[derive(Debug, Clone, Copy)]
struct Call {
    label: u32,
    number: usize,
    arguments: [Argument; 6],
    answer: SyscallAnswer,
}

#[derive(Debug, Clone, Copy)]
enum Argument {
    Value(usize),
    /// The descriptor that the preceding call returned.
    LastDescriptor,
}

#[derive(Debug, Clone, Copy)]
enum SyscallAnswer {
    Descriptor,
    Unused,
}

/// A failed call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Refused {
    /// The label of the call.
    pub label: u32,
    /// The error number.
    pub errno: i32,
}

use Argument::{LastDescriptor, Value};

impl<'descriptors> Script<'descriptors> {
    /// Mounts a new file system, with attributes as in fsmount(2).
    pub fn mount_new(&mut self, label: u32, filesystem: CString, attributes: u32, target: CString) {
        let (filesystem, target) = (self.keep(filesystem), self.keep(target));
        let attributes = usize::try_from(attributes).unwrap_or(usize::MAX);
        self.opening(label, libc::SYS_fsopen, [filesystem, FSOPEN_CLOEXEC, 0]);
        self.push(
            label,
            libc::SYS_fsconfig,
            [LastDescriptor, Value(FSCONFIG_CMD_CREATE)],
            SyscallAnswer::Unused,
        );
        let mount = [LastDescriptor, Value(FSMOUNT_CLOEXEC), Value(attributes)];
        self.push(label, libc::SYS_fsmount, mount, SyscallAnswer::Descriptor);
        self.attach(label, target);
    }

    /// Mounts a copy of the tree at `source` over `target`.
    pub fn mount_copy(&mut self, label: u32, source: CString, target: CString) {
        let (source, target) = (self.keep(source), self.keep(target));
        let flags = OPEN_TREE_CLONE | word(libc::O_CLOEXEC);
        self.opening(label, libc::SYS_open_tree, [word(libc::AT_FDCWD), source, flags]);
        self.attach(label, target);
    }

    /// Starts a new session and process group.
    pub fn new_session(&mut self, label: u32) {
        self.push(label, libc::SYS_setsid, [], SyscallAnswer::Unused);
    }

    /// Makes standard input the controlling terminal of the new session, see ioctl_tty(2).
    pub fn take_terminal(&mut self, label: u32) {
        // 0: do not take the terminal from another session.
        self.simple(label, libc::SYS_ioctl, [word(libc::STDIN_FILENO), TIOCSCTTY, 0]);
    }

    /// Duplicates a descriptor onto a standard one.
    pub fn connect(&mut self, label: u32, from: BorrowedFd<'descriptors>, to: Standard) {
        let to = match to {
            Standard::Input => libc::STDIN_FILENO,
            Standard::Output => libc::STDOUT_FILENO,
            Standard::Error => libc::STDERR_FILENO,
        };
        self.simple(label, libc::SYS_dup3, [word(from.as_raw_fd()), word(to), 0]);
    }

    /// Sets the close-on-exec flag on all descriptors except the standard ones.
    pub fn close_on_exec(&mut self, label: u32) {
        let flags = number(i64::from(libc::CLOSE_RANGE_CLOEXEC));
        self.simple(label, libc::SYS_close_range, [3, number(i64::from(u32::MAX)), flags]);
    }

    /// Sets a resource limit, see setrlimit(2).
    pub fn limit(&mut self, label: u32, resource: u32, current: u64, maximum: u64) {
        let limit = Box::new(libc::rlimit64 { rlim_cur: current, rlim_max: maximum });
        let address = std::ptr::from_ref(&*limit).expose_provenance();
        self.limits.push(limit);
        self.simple(label, libc::SYS_prlimit64, [0, number(i64::from(resource)), address]);
    }

    /// Drops all capabilities.
    pub fn drop_capabilities(&mut self, label: u32) {
        let of_self = CAPABILITIES_OF_SELF.as_ptr().expose_provenance();
        self.simple(label, libc::SYS_capset, [of_self, NO_CAPABILITIES.as_ptr().expose_provenance(), 0]);
    }

    /// Changes the working directory.
    pub fn enter(&mut self, label: u32, directory: CString) {
        let directory = self.keep(directory);
        self.simple(label, libc::SYS_chdir, [directory, 0, 0]);
    }

    /// Makes the process a subreaper, which adopts the orphans below it.
    pub fn adopt_orphans(&mut self, label: u32) {
        self.simple(label, libc::SYS_prctl, [word(libc::PR_SET_CHILD_SUBREAPER), 1, 0]);
    }

    /// Sets the parent-death signal of the process.
    pub fn hear_of_parents_end(&mut self, label: u32, signal: i32) {
        self.simple(label, libc::SYS_prctl, [word(libc::PR_SET_PDEATHSIG), word(signal), 0]);
    }

    /// Enforces a Landlock ruleset on the process.
    pub fn restrict(&mut self, label: u32, rules: BorrowedFd<'descriptors>) {
        self.simple(label, libc::SYS_landlock_restrict_self, [word(rules.as_raw_fd()), 0, 0]);
    }

    /// Unblocks all signals.
    pub fn unblock_signals(&mut self, label: u32) {
        let none = std::ptr::from_ref(&NO_SIGNALS).expose_provenance();
        let arguments = [word(libc::SIG_SETMASK), none, 0, SIGNALS_BYTES].map(Value);
        self.push(label, libc::SYS_rt_sigprocmask, arguments, SyscallAnswer::Unused);
    }

    fn keep(&mut self, string: CString) -> usize {
        // The buffer of a `CString` does not move with it.
        let address = string.as_ptr().expose_provenance();
        self.strings.push(string);
        address
    }

    fn attach(&mut self, label: u32, target: usize) {
        let empty = Value(c"".as_ptr().expose_provenance());
        let to = [Value(word(libc::AT_FDCWD)), Value(target), Value(MOVE_MOUNT_F_EMPTY_PATH)];
        let [directory, path, flags] = to;
        let all = [LastDescriptor, empty, directory, path, flags];
        self.push(label, libc::SYS_move_mount, all, SyscallAnswer::Unused);
    }

    fn opening(&mut self, label: u32, number: libc::c_long, arguments: [usize; 3]) {
        self.push(label, number, arguments.map(Value), SyscallAnswer::Descriptor);
    }

    fn simple(&mut self, label: u32, number: libc::c_long, arguments: [usize; 3]) {
        self.push(label, number, arguments.map(Value), SyscallAnswer::Unused);
    }

    fn push<const N: usize>(
        &mut self,
        label: u32,
        call: libc::c_long,
        given: [Argument; N],
        answer: SyscallAnswer,
    ) {
        let mut arguments = [Value(0); 6];
        arguments.iter_mut().zip(given).for_each(|(place, argument)| *place = argument);
        self.calls.push(Call { label, number: number(call), arguments, answer });
    }

    /// Ends the borrow of the descriptors.
    ///
    /// The calls keep the numbers. The process that makes the calls must have its own descriptors with these
    /// numbers.
    pub(super) fn into_prepared(self) -> Script<'static> {
        let Self { calls, strings, limits, descriptors: _ } = self;
        Script { calls, strings, limits, descriptors: PhantomData }
    }

    /// Makes the calls in the calling process.
    ///
    /// Does not allocate or lock, because the process may share its memory.
    pub(super) fn perform(&self) -> Result<(), Refused> {
        let mut last = 0;
        for call in &self.calls {
            let value = |argument| match argument {
                Value(value) => value,
                LastDescriptor => last,
            };
            let [a, b, c, d, e, f] = call.arguments;
            let arguments = [value(a), value(b), value(c), value(d), value(e), value(f)];
            // SAFETY: every address comes from a method above, in the form that the call expects, and refers
            // to memory that this script owns or that is static. The kernel only reads it.
            let answer = unsafe { raw::call(call.number, arguments) };
            if let Some(errno) = raw::errno(answer) {
                return Err(Refused { label: call.label, errno });
            }
            if matches!(call.answer, SyscallAnswer::Descriptor) {
                last = answer.cast_unsigned();
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_call_that_fails_ends_the_script() {
        let mut script = Script::default();
        script.enter(1, c"/".into());
        script.enter(2, c"/nonexistent".into());
        script.enter(3, c"/nonexistent/too".into());
        assert_eq!(script.perform(), Err(Refused { label: 2, errno: libc::ENOENT }));
        assert_eq!(Script::default().perform(), Ok(()));
    }
}

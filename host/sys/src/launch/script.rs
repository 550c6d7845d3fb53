//! System calls prepared in one process to be made in another.

use std::ffi::CString;
use std::marker::PhantomData;
use std::os::fd::{AsRawFd, BorrowedFd};

use super::raw::{self, number, word};

/// `_LINUX_CAPABILITY_VERSION_3` and the calling process, see capset(2).
static CAPABILITIES_OF_SELF: [u32; 2] = [0x2008_0522, 0];
static NO_CAPABILITIES: [u32; 6] = [0; 6];
/// No signal is blocked.
static NO_SIGNALS: u64 = 0;
/// How long the kernel's set of signals is.
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

/// What a process does before it is what it is to be, one system call after the other.
///
/// Everything in it is named by a `label`, which is what is told of a call that fails; the rest is not made then.
/// All that the calls need is prepared and owned here; descriptors are borrowed for as long as the script is
/// not started.
#[derive(Debug, Default)]
pub struct Script<'descriptors> {
    calls: Vec<Call>,
    // Where the addresses in `calls` lead.
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
    answer: Answer,
}

#[derive(Debug, Clone, Copy)]
enum Argument {
    Value(usize),
    /// The descriptor that a call before this one made.
    LastDescriptor,
}

#[derive(Debug, Clone, Copy)]
enum Answer {
    Descriptor,
    Unused,
}

/// A call that failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Refused {
    /// What was being done.
    pub label: u32,
    /// The kernel's answer.
    pub errno: i32,
}

use Argument::{LastDescriptor, Value};

impl<'descriptors> Script<'descriptors> {
    /// Mounts a new file system, with attributes as for fsmount(2).
    pub fn mount_new(&mut self, label: u32, filesystem: CString, attributes: u32, target: CString) {
        let (filesystem, target) = (self.keep(filesystem), self.keep(target));
        let attributes = usize::try_from(attributes).unwrap_or(usize::MAX);
        self.opening(label, libc::SYS_fsopen, [filesystem, FSOPEN_CLOEXEC, 0]);
        self.push(label, libc::SYS_fsconfig, [LastDescriptor, Value(FSCONFIG_CMD_CREATE)], Answer::Unused);
        let mount = [LastDescriptor, Value(FSMOUNT_CLOEXEC), Value(attributes)];
        self.push(label, libc::SYS_fsmount, mount, Answer::Descriptor);
        self.attach(label, target);
    }

    /// Mounts a copy of what is at `source` over `target`.
    pub fn mount_copy(&mut self, label: u32, source: CString, target: CString) {
        let (source, target) = (self.keep(source), self.keep(target));
        let flags = OPEN_TREE_CLONE | word(libc::O_CLOEXEC);
        self.opening(label, libc::SYS_open_tree, [word(libc::AT_FDCWD), source, flags]);
        self.attach(label, target);
    }

    /// Begins a session and a process group.
    pub fn new_session(&mut self, label: u32) {
        self.push(label, libc::SYS_setsid, [], Answer::Unused);
    }

    /// Makes standard input the controlling terminal of the session that was begun, see ioctl_tty(2).
    pub fn take_terminal(&mut self, label: u32) {
        // 0: not one that another session has.
        self.simple(label, libc::SYS_ioctl, [word(libc::STDIN_FILENO), TIOCSCTTY, 0]);
    }

    /// Puts a descriptor in the place of a standard one.
    pub fn connect(&mut self, label: u32, from: BorrowedFd<'descriptors>, to: Standard) {
        let to = match to {
            Standard::Input => libc::STDIN_FILENO,
            Standard::Output => libc::STDOUT_FILENO,
            Standard::Error => libc::STDERR_FILENO,
        };
        self.simple(label, libc::SYS_dup3, [word(from.as_raw_fd()), word(to), 0]);
    }

    /// Marks all but the standard descriptors to be closed when the process replaces itself.
    pub fn close_on_exec(&mut self, label: u32) {
        let flags = number(i64::from(libc::CLOSE_RANGE_CLOEXEC));
        self.simple(label, libc::SYS_close_range, [3, number(i64::from(u32::MAX)), flags]);
    }

    /// Bounds a resource, see setrlimit(2).
    pub fn limit(&mut self, label: u32, resource: u32, current: u64, maximum: u64) {
        let limit = Box::new(libc::rlimit64 { rlim_cur: current, rlim_max: maximum });
        let address = std::ptr::from_ref(&*limit).expose_provenance();
        self.limits.push(limit);
        self.simple(label, libc::SYS_prlimit64, [0, number(i64::from(resource)), address]);
    }

    /// Gives up all capabilities.
    pub fn drop_capabilities(&mut self, label: u32) {
        let of_self = CAPABILITIES_OF_SELF.as_ptr().expose_provenance();
        self.simple(label, libc::SYS_capset, [of_self, NO_CAPABILITIES.as_ptr().expose_provenance(), 0]);
    }

    /// Enters a directory.
    pub fn enter(&mut self, label: u32, directory: CString) {
        let directory = self.keep(directory);
        self.simple(label, libc::SYS_chdir, [directory, 0, 0]);
    }

    /// Has the process become the parent of all below it that lose theirs.
    pub fn adopt_orphans(&mut self, label: u32) {
        self.simple(label, libc::SYS_prctl, [word(libc::PR_SET_CHILD_SUBREAPER), 1, 0]);
    }

    /// Has the process get a signal when its parent ends.
    pub fn hear_of_parents_end(&mut self, label: u32, signal: i32) {
        self.simple(label, libc::SYS_prctl, [word(libc::PR_SET_PDEATHSIG), word(signal), 0]);
    }

    /// Puts the process under Landlock rules.
    pub fn restrict(&mut self, label: u32, rules: BorrowedFd<'descriptors>) {
        self.simple(label, libc::SYS_landlock_restrict_self, [word(rules.as_raw_fd()), 0, 0]);
    }

    /// Lets every signal through.
    pub fn unblock_signals(&mut self, label: u32) {
        let none = std::ptr::from_ref(&NO_SIGNALS).expose_provenance();
        let arguments = [word(libc::SIG_SETMASK), none, 0, SIGNALS_BYTES].map(Value);
        self.push(label, libc::SYS_rt_sigprocmask, arguments, Answer::Unused);
    }

    fn keep(&mut self, string: CString) -> usize {
        // What a `CString` owns does not move with it.
        let address = string.as_ptr().expose_provenance();
        self.strings.push(string);
        address
    }

    fn attach(&mut self, label: u32, target: usize) {
        let empty = Value(c"".as_ptr().expose_provenance());
        let to = [Value(word(libc::AT_FDCWD)), Value(target), Value(MOVE_MOUNT_F_EMPTY_PATH)];
        let [directory, path, flags] = to;
        let all = [LastDescriptor, empty, directory, path, flags];
        self.push(label, libc::SYS_move_mount, all, Answer::Unused);
    }

    fn opening(&mut self, label: u32, number: libc::c_long, arguments: [usize; 3]) {
        self.push(label, number, arguments.map(Value), Answer::Descriptor);
    }

    fn simple(&mut self, label: u32, number: libc::c_long, arguments: [usize; 3]) {
        self.push(label, number, arguments.map(Value), Answer::Unused);
    }

    fn push<const N: usize>(&mut self, label: u32, call: libc::c_long, given: [Argument; N], answer: Answer) {
        let mut arguments = [Value(0); 6];
        arguments.iter_mut().zip(given).for_each(|(place, argument)| *place = argument);
        self.calls.push(Call { label, number: number(call), arguments, answer });
    }

    /// Ends the loan of the descriptors.
    ///
    /// The numbers stay in the calls; whoever makes them must have descriptors of its own by these numbers.
    pub(super) fn into_prepared(self) -> Script<'static> {
        let Self { calls, strings, limits, descriptors: _ } = self;
        Script { calls, strings, limits, descriptors: PhantomData }
    }

    /// Makes the calls in the calling process, which may share its memory: nothing is allocated or locked here.
    pub(super) fn perform(&self) -> Result<(), Refused> {
        let mut last = 0;
        for call in &self.calls {
            let value = |argument| match argument {
                Value(value) => value,
                LastDescriptor => last,
            };
            let [a, b, c, d, e, f] = call.arguments;
            let arguments = [value(a), value(b), value(c), value(d), value(e), value(f)];
            // SAFETY: every address comes from a method above, which took it from what this script owns or from
            // what lives for ever, in the form that the call wants; the kernel only reads there.
            let answer = unsafe { raw::call(call.number, arguments) };
            if let Some(errno) = raw::errno(answer) {
                return Err(Refused { label: call.label, errno });
            }
            if matches!(call.answer, Answer::Descriptor) {
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

//! What is wanted of a session's sandbox, and of one command in it.

use std::ffi::OsString;
use std::path::PathBuf;

use crate::{NameOrder, NameRules};

/// The wanted sandbox of one session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Profile {
    /// What can be seen and written where; everything else is visible and read-only.
    ///
    /// [`HIDDEN_UNLESS_SHOWN`] start hidden, `/dev` and `/proc` are the sandbox's own.
    /// A path below `/tmp` means the host's directory, which is shown inside of the session's own.
    /// When one path stands here twice, the stricter access counts.
    pub places: Vec<Place>,
    /// The directory of the host that commands see as `/tmp`, writable.
    ///
    /// The host makes it, for this session alone, and removes it at the end.
    /// With the host's own `/tmp` here commands see that one.
    pub temp: PathBuf,
    /// The machine's name inside.
    pub hostname: String,
    /// What all commands of the session may use at most, each by itself.
    pub limits: Limits,
    /// As whom commands act, where that is not the caller.
    ///
    /// Only root can act as somebody else, and in the sandbox only as one: the owner of the project.
    pub acting: Option<Owner>,
    /// Rules over names in writable places; without them the places are all that commands are held to.
    pub names: Option<NameRules>,
    /// The order in which names are changed, where other sandboxes or tools of the host change names in the same places;
    /// without it the sandbox has one of its own.
    pub order: Option<NameOrder>,
}

/// What stands between commands and the rest of the machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Walls {
    /// Namespaces and mounts, with Landlock under them where there is any.
    Namespaces,
    /// Landlock and a filter that leaves no other way, where namespaces are not to be had.
    Landlock,
}

/// A user with a group, and no other groups.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Owner {
    /// The user's number.
    pub uid: u32,
    /// The group's number.
    pub gid: u32,
}

/// How much of the tree below a path can be seen and written, until a deeper place changes it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Place {
    /// An absolute path without `.`, `..` or symbolic links in it.
    pub path: PathBuf,
    /// What holds from there on.
    pub access: Access,
}

/// What is wanted of a place; the stricter is the smaller.
///
/// The first two only take away: such a place never shows what is hidden around it, nor a directory of the host where
/// commands see one of the session's. The others show the place whatever lies around it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Access {
    /// A directory is empty, a file cannot be opened.
    Hidden,
    /// It cannot be changed, and is seen only if what lies around it is.
    Unwritable,
    /// It is shown and can be read.
    ReadOnly,
    /// It is shown, can be read, and can be changed as far as the user may.
    ReadWrite,
}

/// Places of the host that commands do not see unless a place at or below them is shown: where sockets and secrets of
/// the running system lie, and what the kernel shows to root alone.
pub const HIDDEN_UNLESS_SHOWN: [&str; 6] = [
    "/run",
    "/sys/firmware",
    "/sys/fs/bpf",
    "/sys/kernel/debug",
    "/sys/kernel/security",
    "/sys/kernel/tracing",
];

/// Upper bounds for one command; where nothing is given, the user's own bounds hold.
///
/// Core dumps are always off.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Limits {
    /// Open descriptors of one process (`RLIMIT_NOFILE`).
    pub open_files: Option<u64>,
    /// Processes and threads at once: the highest number in the command's pid namespace (since Linux 6.14),
    /// before that a count taken ten times a second; `RLIMIT_NPROC` besides, which binds nothing for root.
    pub processes: Option<u64>,
    /// Bytes of one file (`RLIMIT_FSIZE`).
    pub file_bytes: Option<u64>,
    /// Bytes of memory that all processes of the command use together, looked at ten times a second: the
    /// command is killed above it.
    pub memory_bytes: Option<u64>,
    /// Bytes that one process may have of its own (`RLIMIT_DATA`): more is refused to it.
    ///
    /// Programs that reserve far more than they use, such as those built with a sanitizer, do not start under it.
    pub data_bytes: Option<u64>,
    /// Seconds of processor time of one process (`RLIMIT_CPU`).
    pub cpu_seconds: Option<u64>,
}

/// One command to be run in the sandbox.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Command {
    /// The program and its arguments; a program without a `/` is looked for in `PATH` of [`Command::env`].
    pub argv: Vec<OsString>,
    /// The whole environment; nothing is added.
    pub env: Vec<(OsString, OsString)>,
    /// Where it starts, as the sandbox sees it.
    pub cwd: PathBuf,
    /// Bounds of this command, never wider than those of the session.
    pub limits: Limits,
    /// Whether it gets a controlling terminal.
    pub terminal: Terminal,
}

/// What a command has of a terminal.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Terminal {
    /// None that controls it, whatever its descriptors lead to.
    #[default]
    None,
    /// Its standard input controls it: a terminal made for this command, which no other session has.
    Input,
}

/// Returns the bytes of memory that this machine has; nothing where it does not say.
#[must_use]
pub fn machine_memory() -> Option<u64> {
    #[cfg(target_os = "linux")]
    {
        let info = rustix::system::sysinfo();
        u64::from(info.mem_unit).checked_mul(info.totalram).filter(|bytes| *bytes > 0)
    }
    #[cfg(not(target_os = "linux"))]
    None
}

#[cfg(target_os = "linux")]
impl Limits {
    /// Returns the limits in the order of their fields.
    pub(crate) fn as_list(self) -> [Option<u64>; 6] {
        [
            self.open_files,
            self.processes,
            self.file_bytes,
            self.memory_bytes,
            self.data_bytes,
            self.cpu_seconds,
        ]
    }

    /// Makes them of a list in the order of their fields.
    pub(crate) fn from_list(list: [Option<u64>; 6]) -> Self {
        let [open_files, processes, file_bytes, memory_bytes, data_bytes, cpu_seconds] = list;
        Self { open_files, processes, file_bytes, memory_bytes, data_bytes, cpu_seconds }
    }

    /// Returns the stricter of two, field by field.
    pub(crate) fn strictest(self, other: Self) -> Self {
        let mut list = self.as_list();
        for (one, other) in list.iter_mut().zip(other.as_list()) {
            *one = one.iter().chain(&other).min().copied();
        }
        Self::from_list(list)
    }
}

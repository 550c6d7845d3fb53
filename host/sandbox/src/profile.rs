//! The wanted sandbox of a session, and the description of one command in it.

use std::ffi::OsString;
use std::path::PathBuf;

use crate::names::NameRules;
use crate::order::NameOrder;

/// The wanted sandbox of one session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Profile {
    /// Which paths are visible and writable; everything else is visible and read-only.
    ///
    /// [`HIDDEN_UNLESS_SHOWN`] starts hidden; `/dev` and `/proc` are the sandbox's own.
    /// A path below `/tmp` means the host's directory, shown inside the session's own `/tmp`.
    /// If a path is listed twice, the stricter access counts.
    pub places: Vec<PathAccess>,
    /// The directory of the host that commands see as `/tmp`, writable.
    ///
    /// The host creates it for this session alone and removes it at the end.
    /// If it is the host's own `/tmp`, commands see that one.
    pub temp: PathBuf,
    /// Further directories and files of the host that commands see elsewhere, writable.
    ///
    /// One that has no name to be mounted on is left out.
    pub own: Vec<OwnPlace>,
    /// Directories in hidden places, or in directories of the sandbox's own, whose names commands see although they can
    /// neither enter nor list them: `EACCES` instead of `ENOENT`.
    ///
    /// One that does not exist, or that lies in a visible place, is left out.
    pub closed: Vec<PathBuf>,
    /// Devices of the machine that commands may use, or directories of them, all below `/dev`; others than those are
    /// not visible, except for what every program expects.
    pub devices: Vec<PathBuf>,
    /// The host name inside the sandbox.
    pub hostname: String,
    /// The limits of each command of the session.
    pub limits: Limits,
    /// The user as whom commands act, if it is not the caller.
    ///
    /// Only root can act as another user, and in the sandbox only as one: the owner of the project.
    pub acting: Option<Owner>,
    /// Rules over names in writable places; without them only the places restrict commands.
    pub names: Option<NameRules>,
    /// The order in which names are changed, if other sandboxes or tools of the host change names in the same places;
    /// without it the sandbox has one of its own.
    pub order: Option<NameOrder>,
}

/// The mechanism that separates commands from the rest of the machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum IsolationMode {
    /// Namespaces and mounts, and Landlock if available.
    Namespaces,
    /// Landlock and a stricter seccomp filter, for machines that refuse namespaces.
    Landlock,
}

/// A user with one group and no supplementary groups.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Owner {
    /// The user id.
    pub uid: u32,
    /// The group id.
    pub gid: u32,
}

/// A place of the sandbox's own: what commands see at a path instead of the machine's.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OwnPlace {
    /// The path, plain as that of [`PathAccess`].
    pub path: PathBuf,
    /// The mounted source.
    pub source: OwnSource,
}

/// The source of a place of the sandbox's own. All paths are the host's.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum OwnSource {
    /// A directory or file.
    Plain(PathBuf),
    /// A directory of the machine, over which changes are kept elsewhere.
    Layered {
        /// The directories below, which do not change, the first on top.
        lower: Vec<PathBuf>,
        /// The directory of the changes.
        upper: PathBuf,
        /// A directory for the kernel's own use, in the file system of `upper`.
        work: PathBuf,
        /// The directory to show where directories cannot be layered; otherwise the last of `lower`, unchangeable.
        cold: Option<PathBuf>,
    },
    /// The directory of the machine at the same path, over which changes are kept elsewhere; there is no sandbox
    /// without it.
    Branch {
        /// The directory of the changes.
        upper: PathBuf,
        /// A directory for the kernel's own use, in the file system of `upper`.
        work: PathBuf,
    },
}

/// The access to the tree below a path, until a deeper place changes it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PathAccess {
    /// An absolute path without `.`, `..` or symbolic links in it.
    pub path: PathBuf,
    /// The access from there on.
    pub access: Access,
}

/// The access to a place; stricter accesses compare as smaller.
///
/// The first two only restrict: such a place never shows paths in a hidden directory, nor a directory of the host that
/// one of the session's replaces. The others show the place whatever surrounds it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Access {
    /// A directory appears empty, a file cannot be opened.
    Hidden,
    /// Cannot be changed, and is visible only if its surroundings are.
    Unwritable,
    /// Visible and readable.
    ReadOnly,
    /// Visible, readable, and writable as far as the user's permissions allow.
    ReadWrite,
}

/// Paths of the host that are hidden unless a place at or below them is shown: they contain sockets and secrets of the
/// running system, and kernel files that are meant for root alone.
pub const HIDDEN_UNLESS_SHOWN: [&str; 6] = [
    "/run",
    "/sys/firmware",
    "/sys/fs/bpf",
    "/sys/kernel/debug",
    "/sys/kernel/security",
    "/sys/kernel/tracing",
];

/// Upper limits for one command; `None` leaves the user's own limit in force.
///
/// Core dumps are always off.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Limits {
    /// Open file descriptors of one process (`RLIMIT_NOFILE`).
    pub open_files: Option<u64>,
    /// Processes and threads at once: the highest pid in the command's pid namespace (since Linux 6.14), before that a
    /// count taken ten times a second; in addition `RLIMIT_NPROC`, which does not bind root.
    pub processes: Option<u64>,
    /// Bytes of one file (`RLIMIT_FSIZE`).
    pub file_bytes: Option<u64>,
    /// Bytes of memory that all processes of the command use together, checked ten times a second: the command is
    /// killed above it.
    pub memory_bytes: Option<u64>,
    /// Bytes of private memory of one process (`RLIMIT_DATA`): allocations beyond it fail.
    ///
    /// Programs that reserve far more than they use, such as those built with a sanitizer, do not start under it.
    pub data_bytes: Option<u64>,
    /// Seconds of CPU time of one process (`RLIMIT_CPU`).
    pub cpu_seconds: Option<u64>,
}

/// A command to run in the sandbox.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Command {
    /// The program and its arguments; a program without a `/` is looked up in `PATH` of [`Command::env`].
    pub argv: Vec<OsString>,
    /// The whole environment; nothing is added.
    pub env: Vec<(OsString, OsString)>,
    /// The working directory, as the sandbox sees it.
    pub cwd: PathBuf,
    /// Limits of this command, never wider than those of the session.
    pub limits: Limits,
    /// Whether the command gets a controlling terminal.
    pub terminal: Terminal,
}

/// The controlling terminal of a command.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Terminal {
    /// None, even if its file descriptors refer to a terminal.
    #[default]
    None,
    /// Its standard input: a terminal made for this command, which no other session controls.
    Input,
}

/// Returns the bytes of memory of this machine; `None` if unknown.
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

impl Limits {
    /// Returns the limits in field order.
    pub fn as_list(self) -> [Option<u64>; 6] {
        [
            self.open_files,
            self.processes,
            self.file_bytes,
            self.memory_bytes,
            self.data_bytes,
            self.cpu_seconds,
        ]
    }

    /// Makes the limits from a list in field order.
    pub fn from_list(list: [Option<u64>; 6]) -> Self {
        let [open_files, processes, file_bytes, memory_bytes, data_bytes, cpu_seconds] = list;
        Self { open_files, processes, file_bytes, memory_bytes, data_bytes, cpu_seconds }
    }

    /// Returns the stricter of two, field by field.
    pub fn strictest(self, other: Self) -> Self {
        let mut list = self.as_list();
        for (one, other) in list.iter_mut().zip(other.as_list()) {
            *one = one.iter().chain(&other).min().copied();
        }
        Self::from_list(list)
    }
}

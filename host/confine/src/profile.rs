//! What is wanted of a session's sandbox, and of one command in it.

use std::ffi::OsString;
use std::path::PathBuf;

use crate::NameRules;

/// The wanted sandbox of one session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Profile {
    /// What can be seen and written where; everything else is visible and read-only.
    ///
    /// `/run` and a few places below `/sys` start hidden, `/dev` and `/proc` are the sandbox's own.
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
    /// Rules over names in writable places; without them the places are all that commands are held to.
    pub names: Option<NameRules>,
}

/// How much of the tree below a path can be seen and written, until a deeper place changes it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Place {
    /// An absolute path without `.`, `..` or symbolic links in it.
    pub path: PathBuf,
    /// What holds from there on.
    pub access: Access,
}

/// What can be done with a place; the stricter is the smaller.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Access {
    /// A directory is empty, a file cannot be opened.
    Hidden,
    /// It can be read.
    ReadOnly,
    /// It can be read and changed as far as the user may.
    ReadWrite,
}

/// Upper bounds for one process (see setrlimit(2)); where nothing is given, the user's own bounds hold.
///
/// Core dumps are always off.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Limits {
    /// Open descriptors (`RLIMIT_NOFILE`).
    pub open_files: Option<u64>,
    /// Processes and threads of the user inside the session (`RLIMIT_NPROC`); binds nothing for root.
    pub processes: Option<u64>,
    /// Bytes of one file (`RLIMIT_FSIZE`).
    pub file_bytes: Option<u64>,
    /// Bytes of address space (`RLIMIT_AS`).
    pub memory_bytes: Option<u64>,
    /// Seconds of processor time (`RLIMIT_CPU`).
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
}

#[cfg(target_os = "linux")]
impl Limits {
    /// Returns the limits in the order of their fields.
    pub(crate) fn as_list(self) -> [Option<u64>; 5] {
        [self.open_files, self.processes, self.file_bytes, self.memory_bytes, self.cpu_seconds]
    }
}

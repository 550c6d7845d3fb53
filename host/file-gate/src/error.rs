//! What can go wrong with a file.

use std::io;

/// A file operation failed. Paths are in [`portcullis_decision::path_text`] form.
#[derive(Debug, thiserror::Error)]
pub enum FileError {
    /// Nothing has this name.
    #[error("`{path}` does not exist")]
    NotFound {
        /// The path.
        path: String,
    },
    /// It is a directory and a file was wanted.
    #[error("`{path}` is a directory; list it instead")]
    IsDirectory {
        /// The path.
        path: String,
    },
    /// A part of the path, or the thing to be listed, is no directory.
    #[error("`{path}` is not a directory, or something above it is not")]
    NotADirectory {
        /// The path.
        path: String,
    },
    /// It is a device, a pipe or a socket.
    #[error("`{path}` is neither a file nor a directory; devices, pipes and sockets are left alone")]
    NotAFile {
        /// The path.
        path: String,
    },
    /// It belongs to a file system through which the kernel is controlled.
    #[error("`{path}` is an interface of the kernel, not a file; use a command to look at it")]
    Special {
        /// The path.
        path: String,
    },
    /// It holds more than the limit.
    #[error("`{path}` is larger than {limit} bytes; read a part of it with a command")]
    TooLarge {
        /// The path.
        path: String,
        /// The limit in bytes.
        limit: u64,
    },
    /// It holds more names than a listing may have.
    #[error("`{path}` holds more than {limit} names; search in it for those you need")]
    TooManyNames {
        /// The path.
        path: String,
        /// The limit.
        limit: usize,
    },
    /// It is not what was read before, or it came or went in the meantime.
    #[error("`{path}` was changed by someone else; read it again")]
    Conflict {
        /// The path.
        path: String,
    },
    /// It has other names, which nobody judged.
    #[error("`{path}` has {links} names (hard links); write to a copy of it")]
    Linked {
        /// The path.
        path: String,
        /// How many names it has.
        links: u32,
    },
    /// It was moved away or removed while it was being used.
    #[error("`{path}` was moved or removed while it was being used; try again")]
    Moved {
        /// The path.
        path: String,
    },
    /// Its links lead in a circle, or through a link that only the kernel understands.
    #[error("`{path}` leads through too many links, or through one of /proc")]
    Loop {
        /// The path.
        path: String,
    },
    /// The kernel forbids it.
    #[error("cannot {doing} `{path}`: the system does not permit it")]
    Denied {
        /// What was being done.
        doing: &'static str,
        /// The path.
        path: String,
        /// What the kernel said: `EACCES`, `EPERM` or `EROFS`.
        #[source]
        source: io::Error,
    },
    /// The name belongs to the session's own temporary directory and does not exist there.
    #[error("`{path}` lies in the host's temporary directory, which the session does not share")]
    HostTemp {
        /// The path.
        path: String,
    },
    /// It lies in the session's own temporary directory, and somebody else was to open it.
    #[error("`{path}` lies in the sandbox's own temporary directory, which other programs do not share")]
    SessionTemp {
        /// The path.
        path: String,
    },
    /// The permit is for something else.
    #[error("the permit is not for this: {detail}")]
    WrongPermit {
        /// What does not fit.
        detail: String,
    },
    /// The path was located for another purpose.
    #[error("`{path}` was not located for writing")]
    NotForWriting {
        /// The path.
        path: String,
    },
    /// The sandbox has ended, and its view of the files with it.
    #[error("the sandbox has ended, so its files cannot be reached; start it again")]
    ViewEnded(#[source] io::Error),
    /// This system cannot do it.
    #[error("files cannot be opened safely on this system; Linux 5.6 or later with /proc is needed")]
    Unsupported,
    /// Anything else.
    #[error("cannot {doing} `{path}`")]
    Io {
        /// What was being done.
        doing: &'static str,
        /// The path.
        path: String,
        /// What the kernel said.
        #[source]
        source: io::Error,
    },
}

impl FileError {
    /// Returns the error number with which the system itself would have failed, where there is one.
    #[must_use]
    pub fn errno(&self) -> Option<i32> {
        // The numbers are those of Linux, which is the only system with other errors than `Unsupported`.
        match self {
            Self::NotFound { .. } | Self::HostTemp { .. } => Some(2),
            Self::NotADirectory { .. } => Some(20),
            Self::IsDirectory { .. } => Some(21),
            Self::NotAFile { .. } | Self::Special { .. } => Some(22),
            Self::TooLarge { .. } | Self::TooManyNames { .. } => Some(27),
            Self::Loop { .. } => Some(40),
            Self::Denied { source, .. } | Self::Io { source, .. } => source.raw_os_error(),
            Self::Conflict { .. }
            | Self::Linked { .. }
            | Self::Moved { .. }
            | Self::SessionTemp { .. }
            | Self::WrongPermit { .. }
            | Self::NotForWriting { .. }
            | Self::ViewEnded(_)
            | Self::Unsupported => None,
        }
    }
}

//! Errors of file operations.

use std::io;

use rustix::io::Errno;

/// The reason why a file operation failed. Paths are in [`portcullis_decision::path_text`] form.
#[derive(Debug, thiserror::Error)]
#[expect(missing_docs, reason = "the messages say what the fields are")]
pub enum FileError {
    /// The path does not exist.
    #[error("`{path}` does not exist")]
    NotFound { path: String },
    /// It is a directory, but a file is required.
    #[error("`{path}` is a directory; list it instead")]
    IsDirectory { path: String },
    /// A component of the path is not a directory, or the path to be listed is not.
    #[error("`{path}` is not a directory, or something above it is not")]
    NotADirectory { path: String },
    /// It is a device, a pipe or a socket.
    #[error("`{path}` is neither a file nor a directory; devices, pipes and sockets are left alone")]
    NotAFile { path: String },
    /// It belongs to a file system that is an interface of the kernel.
    #[error("`{path}` is an interface of the kernel, not a file; use a command to look at it")]
    Special { path: String },
    /// It exceeds the size limit.
    #[error("`{path}` is larger than {limit} bytes; read a part of it with a command")]
    TooLarge { path: String, limit: u64 },
    /// It contains more names than the limit of a listing.
    #[error("`{path}` holds more than {limit} names; search in it for those you need")]
    TooManyNames { path: String, limit: usize },
    /// It was changed, created or removed since it was read or located.
    #[error("`{path}` was changed by someone else; read it again")]
    Conflict { path: String },
    /// It has other names, which were not part of the decision.
    #[error("`{path}` has {links} names (hard links); write to a copy of it")]
    Linked { path: String, links: u32 },
    /// It was moved or removed during the operation.
    #[error("`{path}` was moved or removed while it was being used; try again")]
    Moved { path: String },
    /// It leads through a loop of links, or through a magic link of `/proc`.
    #[error("`{path}` leads through too many links, or through one of /proc")]
    Loop { path: String },
    /// The kernel denies it.
    #[error("cannot {doing} `{path}`: the system does not permit it")]
    Denied {
        doing: &'static str,
        path: String,
        #[source]
        source: io::Error,
    },
    /// The name belongs to a directory of the session's own, or to its branch, and does not exist there.
    #[error("`{path}` lies in a directory of the host that the session does not share")]
    HostTemp { path: String },
    /// It is a new name with capital letters that would also be a protected name, because case does not count here.
    #[error(
        "`{path}` is a hidden name, and case does not count in this directory; write the name in lower case"
    )]
    Spelling { path: String },
    /// It is in a directory of the session's own, or in its branch, which other programs cannot open.
    #[error("`{path}` lies in a directory of the sandbox's own, which other programs do not share")]
    SessionTemp { path: String },
    /// The permit is for another path, operation or content.
    #[error("the permit is not for this: {detail}")]
    WrongPermit { detail: String },
    /// The path was located for another purpose.
    #[error("`{path}` was not located for writing")]
    NotForWriting { path: String },
    /// The sandbox has ended, and with it its view of the files.
    #[error("the sandbox has ended, so its files cannot be reached; start it again")]
    ViewEnded(#[source] io::Error),
    /// This system does not support the operation.
    #[error("files cannot be opened safely on this system; Linux 5.6 or later with /proc is needed")]
    Unsupported,
    /// Any other error.
    #[error("cannot {doing} `{path}`")]
    Io {
        doing: &'static str,
        path: String,
        #[source]
        source: io::Error,
    },
}

impl FileError {
    /// Returns the error number with which the system call would have failed, if there is one.
    #[must_use]
    pub fn errno(&self) -> Option<i32> {
        let errno = match self {
            Self::NotFound { .. } | Self::HostTemp { .. } => Errno::NOENT,
            Self::NotADirectory { .. } => Errno::NOTDIR,
            Self::IsDirectory { .. } => Errno::ISDIR,
            Self::NotAFile { .. } | Self::Special { .. } => Errno::INVAL,
            Self::TooLarge { .. } | Self::TooManyNames { .. } => Errno::FBIG,
            Self::Loop { .. } => Errno::LOOP,
            Self::Denied { source, .. } | Self::Io { source, .. } => return source.raw_os_error(),
            Self::Conflict { .. }
            | Self::Linked { .. }
            | Self::Moved { .. }
            | Self::SessionTemp { .. }
            | Self::WrongPermit { .. }
            | Self::NotForWriting { .. }
            | Self::ViewEnded(_)
            | Self::Spelling { .. }
            | Self::Unsupported => return None,
        };
        Some(errno.raw_os_error())
    }
}

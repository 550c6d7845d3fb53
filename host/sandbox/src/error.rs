//! The errors of planning.

use std::path::PathBuf;

/// A profile that cannot become a sandbox.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum PlanError {
    /// The path is relative, or contains `.`, `..` or NUL.
    #[error("place `{}` is not an absolute, plain path; give it without `.` and `..`", .path.display())]
    NotPlain {
        /// The path as it was given.
        path: PathBuf,
    },
    /// The path is a symbolic link.
    #[error("place `{}` is a symbolic link; give the path it leads to", .path.display())]
    Link {
        /// The path as it was given.
        path: PathBuf,
    },
    /// The sandbox has a directory of its own at this path.
    #[error("place `{}` cannot be changed, the sandbox has its own; leave it out", .path.display())]
    Reserved {
        /// The path as it was given.
        path: PathBuf,
    },
    /// A writable place does not exist.
    #[error("place `{}` is to be writable but does not exist; create it or leave it out", .path.display())]
    Missing {
        /// The path as it was given.
        path: PathBuf,
    },
    /// The directory for `/tmp` does not exist.
    #[error("`{}`, to be shown as /tmp, is not a directory; create it first", .path.display())]
    Temp {
        /// The path as it was given.
        path: PathBuf,
    },
}

//! One mount of a plan.

use std::fmt;
use std::path::{Path, PathBuf};

use crate::OwnSource;

/// One mount.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum MountStep {
    /// Creates mount points for other places in the session's temporary directory.
    Prepare {
        /// The directory of the host.
        directory: PathBuf,
        /// The mount points to create in it.
        openings: Vec<Opening>,
    },
    /// Prevents renaming or removing a directory inside a writable tree, because something below it is protected by
    /// its path.
    ///
    /// The directory is mounted on itself before the writable tree is mounted over it: the kernel refuses to move a
    /// mount point, even when the mount itself is covered.
    Pin {
        /// The directory.
        path: PathBuf,
    },
    /// Mounts a minimal `/dev` with terminals and shared memory of its own.
    Devices {
        /// Further devices of the machine, or directories of them; those that are missing are left out.
        given: Vec<PathBuf>,
    },
    /// Mounts a `/proc` that shows only the session's processes.
    Processes,
    /// Mounts the session's temporary directory at `/tmp`.
    Temp {
        /// The directory of the host.
        directory: PathBuf,
    },
    /// Mounts a place of the sandbox's own.
    Own {
        /// The path.
        path: PathBuf,
        /// The mounted source.
        source: OwnSource,
    },
    /// Makes the host's files visible again, or changes their access within the surrounding tree.
    Show {
        /// The path.
        path: PathBuf,
        /// The access.
        writable: Writable,
    },
    /// Makes a directory appear empty, except for mount points of other places.
    HideDirectory {
        /// The directory.
        path: PathBuf,
        /// The mount points to create in it.
        openings: Vec<Opening>,
    },
    /// Makes a file impossible to open.
    HideFile {
        /// The file.
        path: PathBuf,
    },
    /// Replaces a resolver configuration, so that it names the sandbox's own name server, or the file of names, so that
    /// it has the sandbox's own names only.
    Resolver {
        /// The file.
        path: PathBuf,
    },
}

/// Whether a shown place is writable.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Writable {
    /// Read-only.
    No,
    /// Writable as far as the user's permissions allow.
    Yes,
}

/// A name that a hidden directory, or one of the sandbox's own, still shows: the mount point of a place below it, or a
/// closed directory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Opening {
    /// The path relative to the hidden directory.
    pub path: PathBuf,
    /// The kind of file to create.
    pub kind: PathKind,
    /// Whether it is a directory without any right and without a mount, which no command can enter or list.
    pub is_closed: bool,
}

/// The kind of file at a path; symbolic links are not followed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum PathKind {
    /// A directory.
    Directory,
    /// A file, socket, pipe or device.
    File,
    /// A symbolic link.
    Link,
    /// The path does not exist, or this user cannot reach it.
    Missing,
}

impl PathKind {
    /// Returns the kind of the path on this machine.
    pub fn on_disk(path: &Path) -> Self {
        match path.symlink_metadata() {
            Ok(metadata) if metadata.is_dir() => Self::Directory,
            Ok(metadata) if metadata.is_symlink() => Self::Link,
            Ok(_) => Self::File,
            Err(_) => Self::Missing,
        }
    }
}

impl fmt::Display for MountStep {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Prepare { directory, openings } => {
                write!(formatter, "prepare {}{}", directory.display(), Openings(openings))
            }
            Self::Pin { path } => write!(formatter, "pin {}", path.display()),
            Self::Devices { given } => {
                formatter.write_str("devices /dev")?;
                given.iter().try_for_each(|device| write!(formatter, " {}", device.display()))
            }
            Self::Processes => formatter.write_str("processes /proc"),
            Self::Temp { directory } => write!(formatter, "temp /tmp from {}", directory.display()),
            Self::Own { path, source: OwnSource::Plain(source) } => {
                write!(formatter, "own {} from {}", path.display(), source.display())
            }
            Self::Own { path, source: OwnSource::Layered { lower, upper, .. } } => {
                write!(formatter, "own {} from {}", path.display(), upper.display())?;
                lower.iter().try_for_each(|lower| write!(formatter, " over {}", lower.display()))
            }
            Self::Own { path, source: OwnSource::Branch { upper, .. } } => {
                write!(formatter, "branch {} in {}", path.display(), upper.display())
            }
            Self::Show { path, writable: Writable::No } => write!(formatter, "read-only {}", path.display()),
            Self::Show { path, writable: Writable::Yes } => write!(formatter, "writable {}", path.display()),
            Self::HideDirectory { path, openings } => {
                write!(formatter, "hide {}{}", path.display(), Openings(openings))
            }
            Self::HideFile { path } => write!(formatter, "hide file {}", path.display()),
            Self::Resolver { path } => write!(formatter, "resolver {}", path.display()),
        }
    }
}

struct Openings<'a>(&'a [Opening]);

impl fmt::Display for Openings<'_> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, opening) in self.0.iter().enumerate() {
            let lead = if index == 0 { " with" } else { "," };
            let closed = if opening.is_closed { " (closed)" } else { "" };
            write!(formatter, "{lead} {}{closed}", opening.path.display())?;
        }
        Ok(())
    }
}

//! The ordered steps that make a profile real, computed without touching the machine.

mod nodes;

use std::fmt;
use std::path::{Path, PathBuf};

use crate::{PlanError, Profile};

/// What mounts a session's sandbox is made of, in the order in which they are put in place.
///
/// There is one mount where a place differs from the tree it lies in, and none where it does not.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Plan {
    steps: Vec<Step>,
}

/// One mount.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Step {
    /// The directories on the way to other places are made in the session's temporary directory.
    Prepare {
        /// The directory of the host.
        directory: PathBuf,
        /// What is to exist in it.
        openings: Vec<Opening>,
    },
    /// A directory inside a writable tree is kept from being renamed or removed, because something below it
    /// is protected by its path.
    ///
    /// It is mounted on itself before the writable tree is mounted over it: the kernel refuses to move a
    /// mount point, also when the mount itself is covered.
    Pin {
        /// The directory.
        path: PathBuf,
    },
    /// A small `/dev` with terminals and shared memory of its own.
    Devices,
    /// A `/proc` that knows only the session's processes.
    Processes,
    /// The session's temporary directory appears as `/tmp`.
    Temp {
        /// The directory of the host.
        directory: PathBuf,
    },
    /// The host's files appear again, or with other rights than those around them.
    Show {
        /// Where.
        path: PathBuf,
        /// With which rights.
        writable: Writable,
    },
    /// A directory appears empty but for the names on the way to other places.
    HideDirectory {
        /// Which.
        path: PathBuf,
        /// What is to exist in it.
        openings: Vec<Opening>,
    },
    /// A file cannot be opened.
    HideFile {
        /// Which.
        path: PathBuf,
    },
    /// What programs read to find a name service names the sandbox's own.
    Resolver {
        /// The file.
        path: PathBuf,
    },
}

/// Whether a shown place can be changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Writable {
    /// It can only be read.
    No,
    /// It can be changed as far as the user may.
    Yes,
}

/// A name that a hidden directory still shows, because a place below it is mounted there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Opening {
    /// The path below the hidden directory.
    pub path: PathBuf,
    /// What has to be there to mount on.
    pub kind: PathKind,
}

/// What there is at a path, links not followed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum PathKind {
    /// A directory.
    Directory,
    /// A file, socket, pipe or device.
    File,
    /// A symbolic link.
    Link,
    /// Nothing, or nothing that this user can reach.
    Missing,
}

impl PathKind {
    /// Looks at the path on this machine.
    pub fn of(path: &Path) -> Self {
        match path.symlink_metadata() {
            Ok(metadata) if metadata.is_dir() => Self::Directory,
            Ok(metadata) if metadata.is_symlink() => Self::Link,
            Ok(_) => Self::File,
            Err(_) => Self::Missing,
        }
    }
}

impl Plan {
    /// Computes the steps for a profile; `kind` tells what there is at a path, [`PathKind::of`] on the real
    /// machine.
    ///
    /// A hidden or read-only place that does not exist is left out: nothing can be mounted there.
    ///
    /// # Errors
    /// When a place is not plain, is a link, is writable and missing, or is the sandbox's own.
    pub fn new(profile: &Profile, kind: &dyn Fn(&Path) -> PathKind) -> Result<Self, PlanError> {
        let nodes = nodes::collect(profile, kind)?;
        Ok(Self { steps: nodes::steps(&nodes) })
    }

    /// Returns the steps in their order.
    pub fn steps(&self) -> &[Step] {
        &self.steps
    }

    #[cfg(target_os = "linux")]
    pub(crate) fn from_steps(steps: Vec<Step>) -> Self {
        Self { steps }
    }
}

impl fmt::Display for Plan {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.steps.iter().try_for_each(|step| writeln!(formatter, "{step}"))
    }
}

impl fmt::Display for Step {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Prepare { directory, openings } => {
                write!(formatter, "prepare {}{}", directory.display(), Openings(openings))
            }
            Self::Pin { path } => write!(formatter, "pin {}", path.display()),
            Self::Devices => formatter.write_str("devices /dev"),
            Self::Processes => formatter.write_str("processes /proc"),
            Self::Temp { directory } => write!(formatter, "temp /tmp from {}", directory.display()),
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
            write!(formatter, "{lead} {}", opening.path.display())?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;

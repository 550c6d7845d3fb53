//! What can go wrong, by operation.

use std::io;
use std::path::PathBuf;

use crate::Stage;

/// A profile that no sandbox can be made of.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum PlanError {
    /// The path is relative, or has `.`, `..` or NUL in it.
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
    /// The sandbox has something of its own there.
    #[error("place `{}` cannot be changed, the sandbox has its own; leave it out", .path.display())]
    Reserved {
        /// The path as it was given.
        path: PathBuf,
    },
    /// A place that is to be written does not exist.
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

/// A session's sandbox that did not start; nothing of it is left behind.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StartError {
    /// This system has no such sandbox.
    #[error("commands can be confined on Linux only; this is {system}")]
    Unsupported {
        /// The name of the system.
        system: &'static str,
    },
    /// The profile makes no sense.
    #[error("the profile of the sandbox is not usable")]
    Plan(#[from] PlanError),
    /// The keeper could not be started.
    #[error("starting the keeper `{}`", .executable.display())]
    Spawn {
        /// The program that was to be the keeper.
        executable: PathBuf,
        /// Why not.
        #[source]
        source: io::Error,
    },
    /// The keeper ended without a word.
    #[error("the keeper ended during the set-up; was it killed?")]
    Lost,
    /// The kernel or the machine's settings refuse a part of the sandbox.
    #[error("{}{}", .stage, shown_path(.path.as_ref()))]
    Refused {
        /// What was being done.
        stage: Stage,
        /// What it was being done to, where it is a path.
        path: Option<PathBuf>,
        /// The kernel's answer.
        #[source]
        source: io::Error,
    },
    /// Root, who has no power over other people's files in the sandbox, is to write in such a place.
    #[error(
        "`{}` is to be writable but belongs to another user, and root has no power over other users' files \
         in the sandbox; run as its owner, or chown it", .path.display()
    )]
    ForeignOwner {
        /// The writable place.
        path: PathBuf,
    },
}

fn shown_path(path: Option<&PathBuf>) -> String {
    path.map(|path| format!(" `{}`", path.display())).unwrap_or_default()
}

/// A command that did not start.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LaunchError {
    /// There is no such program; shells say 127.
    #[error("`{program}` was not found; is it visible in the sandbox and in PATH?")]
    NotFound {
        /// The program as it was given.
        program: String,
    },
    /// The program is there but cannot be run; shells say 126.
    #[error("`{program}` cannot be executed")]
    NotExecutable {
        /// The program as it was given.
        program: String,
        /// The kernel's answer.
        #[source]
        source: io::Error,
    },
    /// The directory to start in cannot be entered.
    #[error("cannot start in `{}`; is it visible in the sandbox?", .path.display())]
    Directory {
        /// The directory as it was given.
        path: PathBuf,
        /// The kernel's answer.
        #[source]
        source: io::Error,
    },
    /// The command cannot be handed over: empty, NUL inside, or too big.
    #[error("the command cannot be started as it is: {reason}")]
    Malformed {
        /// What is wrong with it.
        reason: &'static str,
    },
    /// A part of the confinement could not be put in force, so the command was not run.
    #[error("{stage}")]
    Refused {
        /// What was being done.
        stage: Stage,
        /// The kernel's answer.
        #[source]
        source: io::Error,
    },
    /// The command could not be handed to the sandbox, which goes on.
    #[error(
        "the command cannot be handed to its sandbox now; where there are too many references or open files, end \
         what holds them, perhaps another command, and try again"
    )]
    NotSent {
        /// The kernel's answer.
        #[source]
        source: io::Error,
    },
    /// The session's sandbox is gone.
    #[error("the sandbox of this session has ended; start a new session")]
    Lost,
}

impl LaunchError {
    /// Returns the exit code by which shells and launchers tell these cases apart.
    pub fn exit_code(&self) -> u8 {
        match self {
            Self::NotFound { .. } => 127,
            Self::NotExecutable { .. } => 126,
            Self::Directory { .. }
            | Self::Malformed { .. }
            | Self::Refused { .. }
            | Self::NotSent { .. }
            | Self::Lost => 125,
        }
    }
}

/// A use of the sandbox's view after its keeper has ended.
///
/// The mounts that hide files come apart with the keeper, so the view is not handed out any more.
#[derive(Debug, thiserror::Error)]
#[error("the sandbox of this session has ended, its view of the files with it; start a new session")]
pub struct ViewError;

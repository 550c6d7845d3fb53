//! The errors of this crate, by operation.

use std::io;
use std::path::PathBuf;

use portcullis_sandbox::{PlanError, Stage};

/// A session's sandbox did not start; no part of it is left behind.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StartError {
    /// This system has no sandbox.
    #[error("commands can be confined on Linux only; this is {system}")]
    Unsupported {
        /// The name of the system.
        system: &'static str,
    },
    /// The profile cannot become a plan.
    #[error("the profile of the sandbox is not usable")]
    Plan(#[from] PlanError),
    /// The keeper could not be started.
    #[error("starting the keeper `{}`", .executable.display())]
    Spawn {
        /// The program that should have become the keeper.
        executable: PathBuf,
        /// The cause.
        #[source]
        source: io::Error,
    },
    /// The keeper ended without sending a message.
    #[error("the keeper ended during the set-up; was it killed?")]
    Lost,
    /// The kernel or the machine's settings refuse a part of the sandbox.
    #[error("{}{}", .stage, shown_path(.path.as_ref()))]
    Refused {
        /// The step that failed.
        stage: Stage,
        /// The path of that step, if it has one.
        path: Option<PathBuf>,
        /// The kernel's error.
        #[source]
        source: io::Error,
    },
    /// Root is to write in another user's directory, but in the sandbox root has no power over other users' files.
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
    /// The program does not exist; shells exit with 127.
    #[error("`{program}` was not found; is it visible in the sandbox and in PATH?")]
    NotFound {
        /// The program as it was given.
        program: String,
    },
    /// The program exists but cannot be executed; shells exit with 126.
    #[error("`{program}` cannot be executed")]
    NotExecutable {
        /// The program as it was given.
        program: String,
        /// The kernel's error.
        #[source]
        source: io::Error,
    },
    /// The command's working directory cannot be entered.
    #[error("cannot start in `{}`; is it visible in the sandbox?", .path.display())]
    Directory {
        /// The directory as it was given.
        path: PathBuf,
        /// The kernel's error.
        #[source]
        source: io::Error,
    },
    /// The command cannot be sent to the keeper: it is empty, contains NUL, or is too large.
    #[error("the command cannot be started as it is: {reason}")]
    Malformed {
        /// The fault in the command.
        reason: &'static str,
    },
    /// A part of the confinement could not be put in force, so the command was not run.
    #[error("{stage}")]
    Refused {
        /// The step that failed.
        stage: Stage,
        /// The kernel's error.
        #[source]
        source: io::Error,
    },
    /// The command could not be sent to the sandbox, which continues to run.
    #[error(
        "the command cannot be handed to its sandbox now; where there are too many references or open files, end \
         what holds them, perhaps another command, and try again"
    )]
    NotSent {
        /// The kernel's error.
        #[source]
        source: io::Error,
    },
    /// The session's sandbox has ended.
    #[error("the sandbox of this session has ended; start a new session")]
    Lost,
}

impl LaunchError {
    /// Returns the exit code that shells and launchers use for this error.
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

/// The sandbox's view was requested after its keeper had ended.
///
/// The mounts that hide files are removed with the keeper, so the view is no longer available.
#[derive(Debug, thiserror::Error)]
#[error("the sandbox of this session has ended, its view of the files with it; start a new session")]
pub struct ViewError;

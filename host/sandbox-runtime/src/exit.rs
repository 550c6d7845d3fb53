//! The events of a running command, up to its end.

use crate::held::Held;

/// The end of a command: an exit code, a signal, or unknown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Exit {
    /// It exited by itself.
    Code(i32),
    /// A signal ended it.
    Signal(i32),
    /// The sandbox ended before the exit was known; the command is dead.
    Lost,
}

impl Exit {
    /// Returns the exit code a shell would give: the code, or 128 + signal; 125 if unknown.
    pub fn shell_code(self) -> i32 {
        match self {
            Self::Code(code) => code,
            Self::Signal(signal) => 128 + signal,
            Self::Lost => 125,
        }
    }
}

/// The next event of a running command.
#[derive(Debug)]
#[must_use = "a call that is not answered is refused"]
pub enum Next {
    /// The command has ended, and so have all processes that it started.
    Ended(Exit),
    /// A call of the command waits for an answer.
    Held(Held),
    /// No event within the given time.
    Nothing,
}

/// How a command ended.
#[cfg(target_os = "linux")]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum CommandEnd {
    Code(i32),
    Signal(i32),
}

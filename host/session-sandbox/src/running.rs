//! A running command, in whichever sandbox.

use std::time::Duration;

use portcullis_profile_runtime::RunningUnderProfile;
use portcullis_sandbox_runtime::{Breach, Exit, Next, RefusedCall, Running};

/// A command that has started. Dropping it kills the command.
#[derive(Debug)]
#[must_use = "dropping a running command kills it"]
pub enum RunningCommand {
    /// In a sandbox of the kernel's mechanisms.
    InSandbox(Running),
    /// Under a profile: nothing holds its calls, and nothing tells which were refused.
    UnderProfile(RunningUnderProfile),
}

impl RunningCommand {
    /// Returns the operations that rules have refused so far without asking the user.
    pub fn refusals(&self) -> Vec<RefusedCall> {
        match self {
            Self::InSandbox(running) => running.refusals(),
            Self::UnderProfile(_) => Vec::new(),
        }
    }

    /// Waits until the command has ended.
    pub fn wait(&self) -> Exit {
        match self {
            Self::InSandbox(running) => running.wait(),
            Self::UnderProfile(running) => running.wait(),
        }
    }

    /// Returns the process id of the ancestor of all its processes; 0 if unknown.
    pub fn init(&self) -> u32 {
        match self {
            Self::InSandbox(running) => running.init().unwrap_or_default(),
            Self::UnderProfile(running) => running.init(),
        }
    }

    /// Returns the numbers of the sandbox and of the command in the record of the session's changes, if it has any.
    pub fn in_changes(&self) -> Option<(u64, u64)> {
        match self {
            Self::InSandbox(running) => Some(running.in_changes()),
            Self::UnderProfile(_) => None,
        }
    }

    /// Waits for the next event, for at most `time`.
    pub fn next(&self, time: Duration) -> Next {
        match self {
            Self::InSandbox(running) => running.next(time),
            Self::UnderProfile(running) => running.wait_timeout(time).map_or(Next::Nothing, Next::Ended),
        }
    }

    /// Returns the limit that the command has exceeded, once it has ended.
    pub fn breach(&self) -> Option<Breach> {
        match self {
            Self::InSandbox(running) => running.breach(),
            Self::UnderProfile(_) => None,
        }
    }

    /// Sends a signal to the command's process group.
    pub fn signal(&self, signal: i32) {
        match self {
            Self::InSandbox(running) => running.signal(signal),
            Self::UnderProfile(running) => running.signal(signal),
        }
    }

    /// Kills the command.
    pub fn kill(&self) {
        match self {
            Self::InSandbox(running) => running.kill(),
            Self::UnderProfile(running) => running.kill(),
        }
    }
}

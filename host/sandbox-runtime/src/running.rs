//! A running command.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use crate::exit::{Exit, Next};
use crate::held::RefusedCall;
use crate::job::Job;
use crate::keeper_link::KeeperLink;
use crate::limit_exceeded::Breach;

/// A command that has started, usable from several threads.
///
/// Dropping it kills the command, so that no command runs without an owner.
#[must_use = "dropping a running command kills it"]
pub struct Running {
    pub(crate) link: Arc<KeeperLink>,
    pub(crate) job: Arc<Job>,
}

impl Running {
    /// Returns the operations that rules have refused so far without asking the user; only the first few of many.
    #[must_use]
    pub fn refusals(&self) -> Vec<RefusedCall> {
        self.link.wait_for_messages();
        self.job.refusals()
    }

    /// Waits until the command and all processes that it started have ended.
    pub fn wait(&self) -> Exit {
        self.job.wait()
    }

    /// Waits for at most `time`; returns `None` if the command is still running then.
    pub fn wait_timeout(&self, time: Duration) -> Option<Exit> {
        self.job.wait_timeout(time)
    }

    /// Returns the pid of the command's init, the ancestor of all its processes.
    ///
    /// It is `None` if unknown, for example if the command ended at once.
    pub fn init(&self) -> Option<u32> {
        self.job.init()
    }

    /// Returns the numbers of the sandbox and of the command in the record of the session's changes.
    #[must_use]
    pub fn in_changes(&self) -> (u64, u64) {
        // Brokers know the lower half of a command's number.
        (self.link.view(), self.job.id() & u64::from(u32::MAX))
    }

    /// Waits for the next event, for at most `time`. Calls wait for an answer only if the command was started with
    /// [`crate::Confinement::launch_asking`].
    pub fn next(&self, time: Duration) -> Next {
        self.job.next(time)
    }

    /// Returns the limit that the command has exceeded, once it has ended.
    pub fn breach(&self) -> Option<Breach> {
        self.job.breach()
    }

    /// Sends a signal to the command's process group, as a terminal would.
    ///
    /// Does nothing if the command has ended or the signal does not exist.
    pub fn signal(&self, signal: i32) {
        self.link.signal(self.job.id(), signal);
    }

    /// Kills the command and all processes that it started, including those that left its process group or session.
    pub fn kill(&self) {
        self.link.kill(self.job.id());
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        if self.job.exit().is_none() {
            self.kill();
        }
    }
}

impl fmt::Debug for Running {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("Running")
            .field("id", &self.job.id())
            .field("exit", &self.job.exit())
            .finish_non_exhaustive()
    }
}

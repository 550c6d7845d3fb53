//! A command under way.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use crate::breach::Breach;
use crate::held::{Held, Refusal};
use crate::job::Job;
use crate::link::Link;

/// How a command ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Exit {
    /// It ended by itself.
    Code(i32),
    /// A signal ended it.
    Signal(i32),
    /// The sandbox ended before it was known; the command is dead.
    Lost,
}

impl Exit {
    /// Returns the number a shell would give: the code, or 128 + signal; 125 when it is not known.
    pub fn shell_code(self) -> i32 {
        match self {
            Self::Code(code) => code,
            Self::Signal(signal) => 128 + signal,
            Self::Lost => 125,
        }
    }
}

/// What happens next to a command under way.
#[derive(Debug)]
#[must_use = "a call that is not answered is refused"]
pub enum Next {
    /// It has ended, and everything that it started is gone.
    Ended(Exit),
    /// A call of it waits for an answer.
    Held(Held),
    /// Nothing, for as long as was waited.
    Nothing,
}

/// A command that has started, usable from several threads.
///
/// Dropping it kills the command, so nothing runs that nobody can stop.
#[must_use = "dropping a running command kills it"]
pub struct Running {
    pub(crate) link: Arc<Link>,
    pub(crate) job: Arc<Job>,
}

impl Running {
    /// Returns what rules have refused to the command so far, without a question; of very many only the first.
    #[must_use]
    pub fn refusals(&self) -> Vec<Refusal> {
        self.link.settle();
        self.job.refusals()
    }

    /// Waits until the command and everything it started are gone.
    pub fn wait(&self) -> Exit {
        self.job.wait()
    }

    /// Waits for at most `time`; returns nothing when the command is still running then.
    pub fn wait_timeout(&self, time: Duration) -> Option<Exit> {
        self.job.wait_timeout(time)
    }

    /// Returns the process number of the command's init, below which all its processes are.
    ///
    /// Nothing is returned where it is not known, as when the command ended at once.
    pub fn init(&self) -> Option<u32> {
        self.job.init()
    }

    /// Waits for what happens next, for at most `time`. Calls wait for an answer only where the command was started
    /// with [`crate::Confinement::launch_asking`].
    pub fn next(&self, time: Duration) -> Next {
        self.job.next(time)
    }

    /// Returns the limit that the command has met, once it has ended.
    pub fn breach(&self) -> Option<Breach> {
        self.job.breach()
    }

    /// Sends a signal to the command's process group, as a terminal would.
    ///
    /// It does nothing when the command has ended or there is no such signal.
    pub fn signal(&self, signal: i32) {
        self.link.signal(self.job.id(), signal);
    }

    /// Kills the command and everything it started, also what has left its process group or session.
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

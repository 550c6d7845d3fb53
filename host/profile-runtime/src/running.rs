//! A running command.

use std::process::Child;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use portcullis_sandbox_runtime::Exit;
use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, kill_process_group, waitid};

/// A command that runs under a profile, usable from several threads.
///
/// Dropping it kills the command, so that no command runs without an owner.
#[derive(Debug)]
#[must_use = "dropping a running command kills it"]
pub struct RunningUnderProfile(Arc<Group>);

/// The process group of a command, which its starter leads.
#[derive(Debug)]
struct Group {
    leader: Pid,
    state: Mutex<State>,
    ended: Condvar,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    /// The leader exists, if only as a zombie, so its number means this group.
    Alive,
    Ended(Exit),
}

impl RunningUnderProfile {
    /// Takes a starter that has just been started.
    pub(crate) fn new(mut starter: Child) -> std::io::Result<Self> {
        let unknown = || std::io::Error::from(std::io::ErrorKind::NotFound);
        let leader = i32::try_from(starter.id()).ok().and_then(Pid::from_raw).ok_or_else(unknown)?;
        let group = Arc::new(Group { leader, state: Mutex::new(State::Alive), ended: Condvar::new() });
        let running = Self(Arc::clone(&group));
        std::thread::Builder::new().name("command".to_owned()).spawn(move || group.watch(&mut starter))?;
        Ok(running)
    }

    /// Returns the process id of the starter, the ancestor of all processes of the command.
    #[must_use]
    pub fn init(&self) -> u32 {
        self.0.leader.as_raw_nonzero().get().cast_unsigned()
    }

    /// Waits until the command has ended and its process group is killed.
    #[must_use]
    pub fn wait(&self) -> Exit {
        loop {
            if let Some(exit) = self.wait_timeout(Duration::from_hours(1)) {
                return exit;
            }
        }
    }

    /// Waits for at most `time`; returns `None` if the command is still running then.
    #[must_use]
    pub fn wait_timeout(&self, time: Duration) -> Option<Exit> {
        let until = Instant::now() + time;
        let mut state = self.0.lock();
        loop {
            if let State::Ended(exit) = *state {
                return Some(exit);
            }
            let left = until.checked_duration_since(Instant::now())?;
            state = self.0.ended.wait_timeout(state, left).unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    /// Sends a signal to the command's process group, as a terminal would.
    ///
    /// Does nothing if the command has ended or the signal does not exist.
    pub fn signal(&self, signal: i32) {
        if let Some(signal) = Signal::from_named_raw(signal) {
            self.0.signal(signal);
        }
    }

    /// Kills the command's process group.
    pub fn kill(&self) {
        self.0.signal(Signal::KILL);
    }
}

impl Drop for RunningUnderProfile {
    fn drop(&mut self) {
        self.kill();
    }
}

impl Group {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn signal(&self, signal: Signal) {
        let state = self.lock();
        // INVARIANT: the leader is reaped under the lock, so its number belongs to no other group meanwhile.
        if *state == State::Alive {
            let _group_is_empty = kill_process_group(self.leader, signal);
        }
    }

    /// Waits for the starter, and kills what is left of its group.
    fn watch(&self, starter: &mut Child) {
        // Its number stays taken until it is reaped.
        let seen = rustix::io::retry_on_intr(|| {
            waitid(WaitId::Pid(self.leader), WaitIdOptions::EXITED | WaitIdOptions::NOWAIT)
        });
        let mut state = self.lock();
        let _group_is_empty = kill_process_group(self.leader, Signal::KILL);
        let exit = match (seen, starter.wait()) {
            (Ok(_), Ok(status)) => exit_of(status),
            (Err(_), _) | (_, Err(_)) => Exit::Lost,
        };
        *state = State::Ended(exit);
        drop(state);
        self.ended.notify_all();
    }
}

fn exit_of(status: std::process::ExitStatus) -> Exit {
    use std::os::unix::process::ExitStatusExt as _;
    match (status.code(), status.signal()) {
        (Some(code), _) => Exit::Code(code),
        (None, Some(signal)) => Exit::Signal(signal),
        (None, None) => Exit::Lost,
    }
}

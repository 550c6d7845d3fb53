//! The host's state of one command.

use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use portcullis_sandbox::Stage;

use crate::exit::{Exit, Next};
use crate::held::{Held, PendingQueue};
use crate::{Breach, RefusedCall};

/// One command, shared by the threads that wait for it and the thread that receives the keeper's messages.
#[derive(Debug)]
pub(crate) struct Job {
    id: u64,
    state: Mutex<JobState>,
    changed: Condvar,
    /// The command's waiting calls, if there is someone to answer them.
    waiting: Option<PendingQueue>,
    /// The pid of the command's init; 0 while unknown.
    init: AtomicU32,
    refusals: Mutex<Vec<RefusedCall>>,
}

#[derive(Debug, Clone, Copy)]
enum JobState {
    Pending,
    Running,
    Refused(Stage, i32),
    Ended(Exit, Option<Breach>),
}

impl JobState {
    fn exit(&self) -> Option<Exit> {
        match *self {
            Self::Ended(exit, _) => Some(exit),
            Self::Refused(..) => Some(Exit::Lost),
            Self::Pending | Self::Running => None,
        }
    }
}

#[cfg_attr(not(target_os = "linux"), expect(dead_code, reason = "commands run on Linux only"))]
impl Job {
    pub(crate) fn new(id: u64, waiting: Option<PendingQueue>) -> Self {
        let (state, changed) = (Mutex::new(JobState::Pending), Condvar::new());
        Self { id, state, changed, waiting, init: AtomicU32::new(0), refusals: Mutex::default() }
    }

    /// Queues a call for an answer; refuses it if the command's calls are not answered.
    pub(crate) fn hold(&self, call: Held) {
        if let Some(waiting) = &self.waiting {
            waiting.add(call);
            // A thread that is about to wait holds the lock, so it does not miss this.
            drop(self.state());
            self.changed.notify_all();
        }
    }

    pub(crate) fn note_refusal(&self, refusal: RefusedCall) {
        self.refusals.lock().unwrap_or_else(PoisonError::into_inner).push(refusal);
    }

    /// Waits until the program runs or has failed to start; the error is the failed stage with its errno.
    pub(crate) fn wait_for_start(&self) -> Result<(), (Stage, i32)> {
        let state = self.changed.wait_while(self.state(), |state| matches!(state, JobState::Pending));
        match *state.unwrap_or_else(PoisonError::into_inner) {
            JobState::Refused(stage, errno) => Err((stage, errno)),
            JobState::Pending | JobState::Running | JobState::Ended(..) => Ok(()),
        }
    }

    pub(crate) fn started(&self, init: Option<u32>) {
        self.init.store(init.unwrap_or_default(), Ordering::Relaxed);
        self.change(JobState::Running);
    }

    pub(crate) fn start_failed(&self, stage: Stage, errno: i32) {
        self.close();
        self.change(JobState::Refused(stage, errno));
    }

    pub(crate) fn ended(&self, exit: Exit, breach: Option<Breach>) {
        self.close();
        self.change(JobState::Ended(exit, breach));
    }

    fn close(&self) {
        if let Some(waiting) = &self.waiting {
            waiting.close();
        }
    }

    fn change(&self, to: JobState) {
        *self.state() = to;
        self.changed.notify_all();
    }
}

impl Job {
    /// Waits for the next event, for at most `time`.
    pub(crate) fn next(&self, time: Duration) -> Next {
        let start = Instant::now();
        let mut state = self.state();
        loop {
            if let Some(exit) = state.exit() {
                return Next::Ended(exit);
            }
            if let Some(held) = self.waiting.as_ref().and_then(PendingQueue::take) {
                return Next::Held(held);
            }
            let Some(left) = time.checked_sub(start.elapsed()) else { return Next::Nothing };
            state = self.changed.wait_timeout(state, left).unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    pub(crate) fn refusals(&self) -> Vec<RefusedCall> {
        self.refusals.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    pub(crate) fn id(&self) -> u64 {
        self.id
    }

    pub(crate) fn init(&self) -> Option<u32> {
        Some(self.init.load(Ordering::Relaxed)).filter(|&init| init != 0)
    }

    pub(crate) fn exit(&self) -> Option<Exit> {
        self.state().exit()
    }

    pub(crate) fn breach(&self) -> Option<Breach> {
        match *self.state() {
            JobState::Ended(_, breach) => breach,
            JobState::Refused(..) | JobState::Pending | JobState::Running => None,
        }
    }

    pub(crate) fn wait(&self) -> Exit {
        loop {
            // One year per iteration, so that both kinds of waiting share one loop.
            if let Some(exit) = self.wait_timeout(Duration::from_secs(365 * 24 * 3600)) {
                return exit;
            }
        }
    }

    pub(crate) fn wait_timeout(&self, time: Duration) -> Option<Exit> {
        let start = Instant::now();
        loop {
            let state = self.state();
            if let Some(exit) = state.exit() {
                return Some(exit);
            }
            let left = time.checked_sub(start.elapsed())?;
            drop(self.changed.wait_timeout(state, left));
        }
    }

    fn state(&self) -> MutexGuard<'_, JobState> {
        // A waiter that panicked has not left the state half changed: every change is a single assignment.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use portcullis_sandbox::{CallDetails, NameAccess};

    const LONG: Duration = Duration::from_secs(60);

    fn call() -> Held {
        let (attempt, deed) = (NameAccess::Write, CallDetails::Plain);
        Held {
            attempt,
            deed,
            path: "/x".into(),
            rule: String::new(),
            reason: String::new(),
            named: Vec::new(),
            answer: None,
        }
    }

    #[test]
    fn waiting_ends_with_the_command_or_the_time() {
        let job = Job::new(1, None);
        assert_eq!(job.wait_timeout(Duration::from_millis(5)), None);
        assert_eq!(job.init(), None);
        job.started(Some(7));
        assert_eq!((job.wait_for_start(), job.init()), (Ok(()), Some(7)));
        std::thread::scope(|scope| {
            let waiters = [scope.spawn(|| job.wait()), scope.spawn(|| job.wait())];
            job.ended(Exit::Code(3), None);
            for waiter in waiters {
                assert_eq!(waiter.join().expect("no panic"), Exit::Code(3));
            }
        });
        assert_eq!(job.wait_timeout(Duration::ZERO), Some(Exit::Code(3)));
    }

    #[test]
    fn calls_are_heard_of_until_the_command_has_ended() {
        let job = Job::new(1, Some(PendingQueue::default()));
        job.started(None);
        assert!(matches!(job.next(Duration::ZERO), Next::Nothing));
        std::thread::scope(|scope| {
            let waiter = scope.spawn(|| job.next(LONG));
            job.hold(call());
            assert!(matches!(waiter.join().expect("no panic"), Next::Held(_)));
            let waiter = scope.spawn(|| job.next(LONG));
            job.ended(Exit::Code(0), None);
            assert!(matches!(waiter.join().expect("no panic"), Next::Ended(Exit::Code(0))));
        });
        job.hold(call());
        assert!(matches!(job.next(LONG), Next::Ended(Exit::Code(0))));
    }

    #[test]
    fn a_command_that_never_ran_says_why() {
        let job = Job::new(1, None);
        job.start_failed(Stage::Exec, 2);
        assert_eq!(job.wait_for_start(), Err((Stage::Exec, 2)));
        assert_eq!(job.wait(), Exit::Lost);
    }
}

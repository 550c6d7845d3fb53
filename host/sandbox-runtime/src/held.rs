//! Calls of commands that wait, inside the system call, for the user's answer.

use std::collections::VecDeque;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

use portcullis_sandbox::{CallDetails, NameAccess};

/// A call of a command that a rule refused without asking the user.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RefusedCall {
    /// The operation that was refused.
    pub attempt: NameAccess,
    /// The path that it was refused for, as commands see it.
    pub path: PathBuf,
    /// The rule over names, or `host.hard-links` for a hard link to a hidden file; empty for the session's own rules.
    pub rule: String,
}

/// A waiting call of a command. Dropping it without an answer refuses it.
#[must_use = "a call that is not answered is refused"]
pub struct Held {
    /// The operation that the call is about to perform.
    pub(crate) attempt: NameAccess,
    pub(crate) deed: CallDetails,
    pub(crate) path: PathBuf,
    pub(crate) rule: String,
    pub(crate) reason: String,
    pub(crate) named: Vec<PathBuf>,
    pub(crate) answer: Option<Box<GiveAnswer>>,
}

/// Takes the answer to a call. If the host itself performs the operation, it first calls the function, while no other
/// process changes names, and does nothing if that returns false.
pub(crate) type GiveAnswer = dyn FnOnce(HostAnswer, &dyn Fn() -> bool) + Send;

/// The answer to a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum HostAnswer {
    GoOn,
    Refuse,
}

impl Held {
    /// Returns the operation that the call is about to perform.
    pub fn attempt(&self) -> NameAccess {
        self.attempt
    }

    /// Returns the details of the call.
    pub fn deed(&self) -> &CallDetails {
        &self.deed
    }

    /// Returns the path that the call is about, as commands see it: canonical except for the last component.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Returns the id of the rule of `portcullis-exec-surface` that requires the question; empty if the session's own
    /// rules require it.
    pub fn rule(&self) -> &str {
        &self.rule
    }

    /// Returns the effect of the file's new content, if the content is the reason for the question; otherwise empty.
    /// An approval then covers this content only.
    pub fn reason(&self) -> &str {
        &self.reason
    }

    /// Returns the directories among the caller's arguments that hold the path, as far as their text tells. The caller
    /// chooses its arguments.
    pub fn named(&self) -> &[PathBuf] {
        &self.named
    }

    /// Lets the call continue. The host performs operations outside the writable places, in its own view.
    pub fn allow(self) {
        self.allow_if(&|| true);
    }

    /// Lets the call continue if `still_allowed` holds. Before the host performs an operation in its own view, it calls
    /// `still_allowed` in the [`NameOrder`](portcullis_sandbox::NameOrder) of the sandbox, and refuses the call if that
    /// returns false. (The broker judges its own operations again itself.)
    pub fn allow_if(mut self, still_allowed: &dyn Fn() -> bool) {
        self.give(HostAnswer::GoOn, still_allowed);
    }

    /// Makes the call fail.
    pub fn refuse(mut self) {
        self.give(HostAnswer::Refuse, &|| false);
    }

    fn give(&mut self, answer: HostAnswer, still_allowed: &dyn Fn() -> bool) {
        if let Some(give) = self.answer.take() {
            give(answer, still_allowed);
        }
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        self.give(HostAnswer::Refuse, &|| false);
    }
}

impl std::fmt::Debug for Held {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter
            .debug_struct("Held")
            .field("attempt", &self.attempt)
            .field("path", &self.path)
            .field("rule", &self.rule)
            .finish_non_exhaustive()
    }
}

/// The waiting calls of one command that have not been taken yet.
#[derive(Debug, Default)]
pub(crate) struct PendingQueue {
    state: Mutex<QueueState>,
}

#[derive(Debug, Default)]
struct QueueState {
    calls: VecDeque<Held>,
    /// The command has ended; no further calls will come.
    closed: bool,
}

impl PendingQueue {
    /// Adds a call; a call of a command that has ended is refused.
    pub(crate) fn add(&self, call: Held) {
        let mut state = self.lock();
        if !state.closed {
            state.calls.push_back(call);
        }
    }

    /// Closes the queue: no more calls will come.
    pub(crate) fn close(&self) {
        let calls = {
            let mut state = self.lock();
            state.closed = true;
            std::mem::take(&mut state.calls)
        };
        drop(calls);
    }

    /// Takes the call that has waited longest.
    pub(crate) fn take(&self) -> Option<Held> {
        self.lock().calls.pop_front()
    }

    fn lock(&self) -> MutexGuard<'_, QueueState> {
        // No code that can panic runs while the lock is held.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;

    fn held(told: &Arc<Mutex<Vec<HostAnswer>>>) -> Held {
        let told = Arc::clone(told);
        let answer =
            Box::new(move |answer, _: &dyn Fn() -> bool| told.lock().expect("no panic").push(answer));
        Held {
            attempt: NameAccess::Write,
            deed: CallDetails::Plain,
            path: "/x".into(),
            rule: String::new(),
            reason: String::new(),
            named: Vec::new(),
            answer: Some(answer),
        }
    }

    #[test]
    fn a_call_is_answered_once_and_refused_if_nobody_does() {
        let told = Arc::default();
        held(&told).allow();
        held(&told).refuse();
        drop(held(&told));
        assert_eq!(
            *told.lock().expect("no panic"),
            [HostAnswer::GoOn, HostAnswer::Refuse, HostAnswer::Refuse]
        );
    }

    #[test]
    fn calls_that_nobody_takes_are_refused_when_the_command_has_ended() {
        let (told, waiting) = (Arc::default(), PendingQueue::default());
        waiting.add(held(&told));
        waiting.take().expect("a call").allow();
        waiting.add(held(&told));
        waiting.close();
        waiting.add(held(&told));
        assert!(waiting.take().is_none());
        assert_eq!(
            *told.lock().expect("no panic"),
            [HostAnswer::GoOn, HostAnswer::Refuse, HostAnswer::Refuse]
        );
    }
}

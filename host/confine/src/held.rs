//! Calls of commands that wait, inside the call, until somebody has answered for them.

use std::collections::VecDeque;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// What a waiting call is about to do with a name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Attempt {
    /// A file is read.
    Read,
    /// A file is made or changed.
    Write,
    /// A directory is made.
    MakeDirectory,
    /// The name goes.
    Remove,
}

/// What a waiting call does besides, where that is more than its [`Attempt`] says.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Deed {
    /// Nothing more.
    Plain,
    /// The name becomes a symbolic link with this target.
    Symlink(OsString),
    /// The name becomes a further one of the file that has this name.
    LinkOf(PathBuf),
    /// The file gets this name besides.
    LinkTo(PathBuf),
    /// What has this name gets the name instead.
    MoveOf(PathBuf),
    /// It gets this name instead.
    MoveTo(PathBuf),
    /// The name becomes a pipe, a socket or a device.
    Special,
}

/// A call of a command that a rule has refused, without a question.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refusal {
    /// What it was about to do.
    pub attempt: Attempt,
    /// The name that it was about, as commands see it.
    pub path: PathBuf,
    /// The rule on names, or `host.hard-links` for another name of a hidden file; empty for the session's own rules.
    pub rule: String,
}

/// A call of a command that waits. Dropping it without an answer refuses it.
#[must_use = "a call that is not answered is refused"]
pub struct Held {
    /// What it is about to do.
    pub(crate) attempt: Attempt,
    pub(crate) deed: Deed,
    pub(crate) path: PathBuf,
    pub(crate) rule: String,
    pub(crate) reason: String,
    pub(crate) answer: Option<Box<GiveAnswer>>,
}

/// Takes the answer to a call. Where the host itself does what was asked about, it calls the function first, while
/// nobody else changes names, and does nothing if that returns false.
pub(crate) type GiveAnswer = dyn FnOnce(Answer, &dyn Fn() -> bool) + Send;

/// What becomes of a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Answer {
    GoOn,
    Refuse,
}

impl Held {
    /// Returns what the call is about to do.
    pub fn attempt(&self) -> Attempt {
        self.attempt
    }

    /// Returns what it does besides.
    pub fn deed(&self) -> &Deed {
        &self.deed
    }

    /// Returns the name that it is about, as commands see it: canonical but for the last component.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Returns the id of the rule of `portcullis-names` that wants it asked; empty where the rules of the session
    /// do.
    pub fn rule(&self) -> &str {
        &self.rule
    }

    /// Returns what the new content of the file does, where that decides; empty elsewhere. A yes is for this content
    /// only.
    pub fn reason(&self) -> &str {
        &self.reason
    }

    /// Lets the call go on. What it does outside the writable places is done for it in the host's own view.
    pub fn allow(self) {
        self.allow_if(&|| true);
    }

    /// Lets the call go on. Before the host does anything for it in its own view, it calls `still_allowed`, in the
    /// [`NameOrder`](crate::NameOrder) of the sandbox, and refuses the call if that returns false. (What the broker does
    /// it judges again itself.)
    pub fn allow_if(mut self, still_allowed: &dyn Fn() -> bool) {
        self.give(Answer::GoOn, still_allowed);
    }

    /// Has the call fail.
    pub fn refuse(mut self) {
        self.give(Answer::Refuse, &|| false);
    }

    fn give(&mut self, answer: Answer, still_allowed: &dyn Fn() -> bool) {
        if let Some(give) = self.answer.take() {
            give(answer, still_allowed);
        }
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        self.give(Answer::Refuse, &|| false);
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

/// The waiting calls of one command that nobody has looked at yet.
#[derive(Debug, Default)]
pub(crate) struct Waiting {
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    calls: VecDeque<Held>,
    /// The command has ended: there are no calls to come.
    closed: bool,
}

impl Waiting {
    /// Adds a call; one of a command that has ended is refused.
    pub(crate) fn add(&self, call: Held) {
        let mut state = self.lock();
        if !state.closed {
            state.calls.push_back(call);
        }
    }

    /// Says that there are no calls to come.
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

    fn lock(&self) -> MutexGuard<'_, State> {
        // No code that can panic runs while the lock is held.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;

    fn held(told: &Arc<Mutex<Vec<Answer>>>) -> Held {
        let told = Arc::clone(told);
        let answer =
            Box::new(move |answer, _: &dyn Fn() -> bool| told.lock().expect("no panic").push(answer));
        Held {
            attempt: Attempt::Write,
            deed: Deed::Plain,
            path: "/x".into(),
            rule: String::new(),
            reason: String::new(),
            answer: Some(answer),
        }
    }

    #[test]
    fn a_call_is_answered_once_and_refused_if_nobody_does() {
        let told = Arc::default();
        held(&told).allow();
        held(&told).refuse();
        drop(held(&told));
        assert_eq!(*told.lock().expect("no panic"), [Answer::GoOn, Answer::Refuse, Answer::Refuse]);
    }

    #[test]
    fn calls_that_nobody_takes_are_refused_when_the_command_has_ended() {
        let (told, waiting) = (Arc::default(), Waiting::default());
        waiting.add(held(&told));
        waiting.take().expect("a call").allow();
        waiting.add(held(&told));
        waiting.close();
        waiting.add(held(&told));
        assert!(waiting.take().is_none());
        assert_eq!(*told.lock().expect("no panic"), [Answer::GoOn, Answer::Refuse, Answer::Refuse]);
    }
}

//! Calls of a running command that wait while the user is asked.
//!
//! One question for a command and a place: whatever the answer, further calls of the command there get the same. A
//! name that other programs execute is a place of its own, and removing is another question than making.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use portcullis_confine::{Attempt, Held};
use portcullis_decision::request::{Action, FileAccess, FileOperation, Origin};
use portcullis_decision::{Decision, Effect, path_text};

use crate::asked;
use crate::cancel::Cancel;
use crate::commands::Started;
use crate::executed;
use crate::links::HARD_LINKS;
use crate::lookalike::revealed;
use crate::refused;
use crate::session::Session;

/// How often the user is asked for one command: what needs more is no oversight.
const QUESTIONS: usize = 20;

/// What is asked about once: the rule that wants it, and the place.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct Subject {
    rule: String,
    place: PathBuf,
    attempt: Attempt,
    /// What is done to which names, where the place does not say it all.
    deed: Option<String>,
    /// A number of its own for content that decides: a yes to one text is none to the next.
    content: Option<u64>,
}

/// The questions of one command.
#[derive(Debug, Default)]
pub(crate) struct Questions {
    state: Mutex<State>,
    changed: Condvar,
    contents: AtomicU64,
    /// What was refused, in words for the model.
    refused: Mutex<Vec<String>>,
    /// Taken back when the command has ended.
    cancel: Cancel,
}

#[derive(Debug, Default)]
struct State {
    /// None while the user is being asked.
    answers: HashMap<Subject, Option<bool>>,
    /// How many are open, and since when there is any.
    open: usize,
    since: Option<Instant>,
    /// How long there was one altogether.
    waited: Duration,
}

impl Questions {
    /// How long the command has waited for answers so far.
    pub(crate) fn waited(&self) -> Duration {
        let state = self.lock();
        state.waited + state.since.map_or(Duration::ZERO, |since| since.elapsed())
    }

    /// Takes back what the user is asked, because the command has ended.
    pub(crate) fn take_back(&self) {
        self.cancel.cancel();
    }

    /// Whether the command waits for an answer now.
    pub(crate) fn is_open(&self) -> bool {
        self.lock().open > 0
    }

    /// Returns the answer for a subject, asking with `ask` if nobody has yet.
    fn answer(&self, subject: Subject, ask: impl FnOnce(&Cancel) -> bool) -> bool {
        let mut state = self.lock();
        loop {
            match state.answers.get(&subject) {
                Some(Some(answer)) => return *answer,
                Some(None) => state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner),
                None if state.answers.len() >= QUESTIONS => return false,
                None => break,
            }
        }
        state.answers.insert(subject.clone(), None);
        state.open += 1;
        state.since.get_or_insert_with(Instant::now);
        drop(state);
        let answer = ask(&self.cancel);
        let mut state = self.lock();
        state.answers.insert(subject, Some(answer));
        state.open -= 1;
        if state.open == 0 {
            let since = state.since.take();
            state.waited += since.map_or(Duration::ZERO, |since| since.elapsed());
        }
        self.changed.notify_all();
        answer
    }

    fn note(&self, refused: String) {
        self.refused.lock().unwrap_or_else(PoisonError::into_inner).push(refused);
    }

    /// What was refused to the command after a question, in words for the model.
    pub(crate) fn refused(&self) -> Vec<String> {
        self.refused.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Whether every name under a rule is asked about by itself: of those that other programs execute, one is not like
/// another.
fn has_own_question(rule: &str) -> bool {
    portcullis_names::rule(rule).is_some()
}

/// What a yes to a call that waits is called, so that it says how far it goes.
pub(crate) fn once(access: &FileAccess, decision: &Decision) -> String {
    if asked::is_only_once(&access.operation) {
        return "Allow once".to_owned();
    }
    let place =
        Path::new(&access.path.canonical).parent().filter(|_| !has_own_question(&decision.cause().rule));
    let Some(place) = place else { return "Allow for this command".to_owned() };
    let what = match access.operation {
        FileOperation::Delete => "removes",
        FileOperation::Read | FileOperation::List | FileOperation::Search(_) => "reads",
        FileOperation::Write(_)
        | FileOperation::Edit(_)
        | FileOperation::CreateDirectory
        | FileOperation::Move(_)
        | FileOperation::Link(_)
        | FileOperation::Symlink(_)
        | FileOperation::ChangeMetadata
        | FileOperation::Other(_) => "makes and writes",
    };
    format!("Allow for this command: all that it {what} in {}", revealed(&place.to_string_lossy()))
}

/// The name, and what is done with it, where one answer speaks of nothing else.
fn only_once(action: &Action) -> Option<(PathBuf, String)> {
    let Action::File(access) = action else { return None };
    let is_only_once = asked::is_only_once(&access.operation);
    let path = path_text::decode(&access.path.canonical).unwrap_or_default();
    is_only_once.then(|| (path, format!("{:?}", access.operation)))
}

impl Session {
    /// Answers for a call of a command that waits, as soon as the user has.
    pub(crate) fn answer(&self, started: &Started, held: Held) {
        let path = held.path().to_owned();
        if !self.setup.inmate.may(&path, held.attempt(), held.deed()) {
            return held.refuse();
        }
        let (reason, attempt) = (held.reason().to_owned(), held.attempt());
        let content =
            (!reason.is_empty()).then(|| started.questions.contents.fetch_add(1, Ordering::Relaxed));
        let action = self.held_action(&held);
        let deed = only_once(&action);
        let mut request = self.request(Origin::Process, action);
        request.attributes.extend(asked::attribute(held.rule(), held.deed()));
        request.attributes.extend(match held.rule() {
            HARD_LINKS => self.other_names(&path),
            _ => (!reason.is_empty()).then(|| executed::attribute(reason)),
        });
        let decision = self.decide(&request);
        if decision.effect() == Effect::Allow {
            // Not an answer to a question: it says nothing of what else lies there.
            return match self.authorize(request, started.call.as_deref(), &started.questions.cancel).granted()
            {
                Ok(_) => held.allow(),
                Err(_) => held.refuse(),
            };
        }
        let rule = decision.cause().rule.clone();
        let is_own = has_own_question(held.rule()) || has_own_question(&rule);
        let (place, kind) = match &deed {
            Some((path, _)) => (path.as_path(), Attempt::Write),
            None if is_own => (path.as_path(), attempt),
            None => (path.parent().unwrap_or(Path::new("/")), attempt),
        };
        let subject = Subject {
            rule: held.rule().to_owned(),
            place: place.to_owned(),
            attempt: if kind == Attempt::MakeDirectory { Attempt::Write } else { kind },
            deed: deed.as_ref().map(|(_, deed)| deed.clone()),
            content,
        };
        let is_allowed = started.questions.answer(subject, |cancel| {
            let granted = self.authorize(request, started.call.as_deref(), cancel).granted();
            granted
                .map_err(|decision| {
                    started.questions.note(refused::after_question(attempt, &path, &decision))
                })
                .is_ok()
        });
        if is_allowed { held.allow() } else { held.refuse() }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;

    fn subject(place: &str) -> Subject {
        Subject {
            rule: String::new(),
            place: place.into(),
            attempt: Attempt::Write,
            deed: None,
            content: None,
        }
    }

    #[test]
    fn a_place_is_asked_about_once() {
        let questions = Questions::default();
        assert!(questions.answer(subject("/a"), |_| true));
        assert!(questions.answer(subject("/a"), |_| panic!("asked again")));
        assert!(!questions.answer(subject("/b"), |_| false));
        assert!(!questions.answer(subject("/b"), |_| panic!("asked again")));
        assert!(!questions.is_open());
    }

    #[test]
    fn a_command_does_not_ask_for_ever() {
        let questions = Questions::default();
        for number in 0..QUESTIONS {
            assert!(questions.answer(subject(&format!("/{number}")), |_| true));
        }
        assert!(!questions.answer(subject("/more"), |_| panic!("asked")));
        assert!(questions.answer(subject("/0"), |_| panic!("asked")));
    }

    #[test]
    fn who_comes_while_it_is_asked_waits_for_the_same_answer() {
        let questions = Arc::new(Questions::default());
        std::thread::scope(|scope| {
            let (ask, asked) = std::sync::mpsc::channel::<()>();
            let first = scope.spawn(|| questions.answer(subject("/a"), move |_| asked.recv().is_ok()));
            while !questions.is_open() {
                std::thread::yield_now();
            }
            let second = scope.spawn(|| questions.answer(subject("/a"), |_| panic!("asked again")));
            assert!(questions.waited() > Duration::ZERO);
            ask.send(()).unwrap();
            assert!(first.join().unwrap() && second.join().unwrap());
        });
    }
}

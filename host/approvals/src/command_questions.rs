//! The questions about the pending calls of one command, and their answers.
//!
//! There is one question per command and place. The answer applies to all further calls of the command there about
//! which the same rules ask. A place that a person knows (a repository, a project, a directory) includes everything
//! below it, and one answer covers creating, changing, moving, linking and removing there. Elsewhere, a place is one
//! directory. A name that other programs execute, such as `.vscode`, is a separate place together with all paths below;
//! all new dot files in one directory are one place. There, and outside known places, removing files is a different
//! question from creating them.

use std::collections::HashMap;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use portcullis_decision::request::Action;
use portcullis_decision::{Decision, path_text};

use crate::cancel::Cancel;
use crate::question::file_operation::is_only_once;
use crate::question::pending_call::has_own_question;

/// Maximum number of questions per command; users do not read more.
const QUESTIONS: usize = 20;

/// The subject of a question: the rules that ask, and the place.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Subject {
    rule: String,
    /// Policy and rule of the decision.
    ///
    /// `None` if `deed` is set, so that one question covers both names of the operation.
    asked_by: Option<(String, String)>,
    place: PathBuf,
    /// Whether it is about a name that other programs execute, whichever rules ask.
    is_executed: bool,
    /// Whether it reaches down to everything below the place.
    reaches_down: bool,
    access: Access,
    /// The operation, if the place alone does not describe it.
    deed: Option<String>,
    /// A unique number if the decision depends on content: a "yes" to one content does not cover the next.
    content: Option<u64>,
}

/// The access of a system call to a file. Creating a directory counts as writing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Access {
    /// It reads.
    Read,
    /// It creates or writes.
    Write,
    /// It removes.
    Remove,
}

/// The questions of one command.
#[derive(Debug, Default)]
pub struct CommandQuestions {
    state: Mutex<AnswersState>,
    changed: Condvar,
    contents: AtomicU64,
    /// Notes on refused operations, for the model.
    refused: Mutex<Vec<String>>,
    /// Cancelled when the command has ended.
    cancel: Cancel,
}

#[derive(Debug, Default)]
struct AnswersState {
    /// `None` while the user is being asked.
    answers: HashMap<Subject, Option<bool>>,
    /// Number of questions so far.
    asked: usize,
    /// Number of open questions, and the start of the current wait.
    open: usize,
    since: Option<Instant>,
    /// Total time of earlier waits.
    waited: Duration,
}

impl CommandQuestions {
    /// Returns the time that the command has waited for answers so far.
    #[must_use]
    pub fn waited(&self) -> Duration {
        let state = self.lock();
        state.waited + state.since.map_or(Duration::ZERO, |since| since.elapsed())
    }

    /// Withdraws all questions because the command has ended.
    pub fn take_back(&self) {
        self.cancel.cancel();
    }

    /// Returns true if the command waits for an answer.
    #[must_use]
    pub fn is_open(&self) -> bool {
        self.lock().open > 0
    }

    /// Returns the answer for a subject. Calls `ask` if there is none yet.
    pub fn answer(&self, subject: Subject, ask: impl FnOnce(&Cancel) -> Answered) -> Known {
        let mut state = self.lock();
        match state.known(&subject) {
            Some((_, Some(answer))) => return Known::Before(answer),
            Some((asked, None)) => {
                let is_open = |state: &mut AnswersState| state.answers.get(&asked) == Some(&None);
                let state = self.changed.wait_while(state, is_open);
                let state = state.unwrap_or_else(PoisonError::into_inner);
                let answer = state.answers.get(&asked).copied().flatten();
                return answer.map_or(Known::Changed, Known::Before);
            }
            None if state.asked >= QUESTIONS => return Known::Before(false),
            None => {}
        }
        state.answers.insert(subject.clone(), None);
        state.asked += 1;
        state.open += 1;
        state.since.get_or_insert_with(Instant::now);
        drop(state);
        // Threads that wait for this answer must get one even if `ask` panics.
        let answered = catch_unwind(AssertUnwindSafe(|| ask(&self.cancel)));
        let (answered, panic) = match answered {
            Ok(answered) => (answered, None),
            Err(panic) => (Answered::Place(false), Some(panic)),
        };
        let mut state = self.lock();
        let is_allowed = match answered {
            Answered::Place(answer) => {
                state.answers.insert(subject, Some(answer));
                answer
            }
            Answered::Itself(answer) => {
                state.answers.remove(&subject);
                answer
            }
        };
        state.open -= 1;
        if state.open == 0 {
            let since = state.since.take();
            state.waited += since.map_or(Duration::ZERO, |since| since.elapsed());
        }
        drop(state);
        self.changed.notify_all();
        if let Some(panic) = panic {
            resume_unwind(panic);
        }
        Known::Asked(is_allowed)
    }

    /// Returns a number for content that is asked about.
    #[must_use]
    pub fn next_content(&self) -> u64 {
        self.contents.fetch_add(1, Ordering::Relaxed)
    }

    /// Returns the flag that is cancelled when the command has ended.
    #[must_use]
    pub fn cancel(&self) -> &Cancel {
        &self.cancel
    }

    /// Adds a note on a refused operation, for the model.
    pub fn note(&self, refused: String) {
        let mut known = self.refused.lock().unwrap_or_else(PoisonError::into_inner);
        if known.len() < QUESTIONS && !known.contains(&refused) {
            known.push(refused);
        }
    }

    /// Returns the notes on operations refused after a question, for the model.
    #[must_use]
    pub fn refusal_notes(&self) -> Vec<String> {
        self.refused.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn lock(&self) -> MutexGuard<'_, AnswersState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl AnswersState {
    /// Returns the subject whose answer covers `subject`, the nearest one, with the answer.
    fn known(&self, subject: &Subject) -> Option<(Subject, Option<bool>)> {
        let mut around = subject.around();
        around.find_map(|around| self.answers.get(&around).map(|answer| (around, *answer)))
    }
}

/// The result of a question.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Answered {
    /// The result applies to this call only.
    Itself(bool),
    /// The result applies to all calls in the place.
    Place(bool),
}

/// The known answer for a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Known {
    /// The user was asked about this call.
    Asked(bool),
    /// An earlier answer covers all calls in the place.
    Before(bool),
    /// Another question was answered meanwhile, and the answer may cover this call.
    Changed,
}

/// Returns the name and the operation if one answer covers only this operation.
#[must_use]
pub fn only_once(action: &Action) -> Option<(PathBuf, String)> {
    let Action::File(access) = action else { return None };
    let is_only_once = is_only_once(&access.operation);
    let path = path_text::decode(&access.path.canonical).unwrap_or_default();
    is_only_once.then(|| (path, format!("{:?}", access.operation)))
}

impl Subject {
    /// Returns the subject for a place whose names other programs execute.
    #[must_use]
    pub fn executed(place: &Path, access: Access) -> Self {
        Self {
            rule: String::new(),
            asked_by: None,
            place: place.to_owned(),
            is_executed: true,
            reaches_down: false,
            access,
            deed: None,
            content: None,
        }
    }

    /// Returns the subject for a place that a person knows.
    #[must_use]
    pub fn place(place: &Path, access: Access, decision: &Decision) -> Self {
        Self {
            rule: String::new(),
            asked_by: Some((decision.policy().to_owned(), decision.cause().rule.clone())),
            place: place.to_owned(),
            is_executed: false,
            reaches_down: true,
            access: if access == Access::Read { Access::Read } else { Access::Write },
            deed: None,
            content: None,
        }
    }

    /// Returns the subjects whose answers would cover this one, the nearest first: itself and, if answers include the
    /// paths below, the directories around its place. An answer for writing also covers reading.
    fn around(&self) -> impl Iterator<Item = Self> {
        let levels = if self.reaches_down { usize::MAX } else { 1 };
        let accesses = match (self.reaches_down, self.access) {
            (true, Access::Read) => [Some(Access::Read), Some(Access::Write)],
            (_, access) => [Some(access), None],
        };
        self.place.ancestors().take(levels).flat_map(move |place| {
            let subject = move |access| Self { place: place.to_owned(), access, ..self.clone() };
            accesses.into_iter().flatten().map(subject)
        })
    }

    /// Returns the subject of a call.
    #[must_use]
    pub fn new(
        (rule_of_broker, access, path): (&str, Access, &Path),
        deed: Option<&(PathBuf, String)>,
        content: Option<u64>,
        decision: &Decision,
    ) -> Self {
        let rule = decision.cause().rule.clone();
        let is_own = has_own_question(rule_of_broker) || has_own_question(&rule);
        let (place, access) = match deed {
            Some((path, _)) => (path.as_path(), Access::Write),
            None if is_own => (path, access),
            None => (path.parent().unwrap_or(Path::new("/")), access),
        };
        Self {
            rule: rule_of_broker.to_owned(),
            asked_by: deed.is_none().then(|| (decision.policy().to_owned(), rule)),
            place: place.to_owned(),
            is_executed: false,
            reaches_down: false,
            access,
            deed: deed.map(|(_, deed)| deed.clone()),
            content,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;

    fn subject(place: &str) -> Subject {
        Subject {
            rule: String::new(),
            asked_by: None,
            place: place.into(),
            is_executed: false,
            reaches_down: false,
            access: Access::Write,
            deed: None,
            content: None,
        }
    }

    #[test]
    fn a_place_is_asked_about_once() {
        let questions = CommandQuestions::default();
        for (place, answer) in [("/a", true), ("/b", false)] {
            assert_eq!(questions.answer(subject(place), |_| Answered::Place(answer)), Known::Asked(answer));
            assert_eq!(questions.answer(subject(place), |_| panic!("asked again")), Known::Before(answer));
        }
        assert!(!questions.is_open());
    }

    #[test]
    fn an_answer_for_a_known_place_reaches_down() {
        let questions = CommandQuestions::default();
        let known = |place: &str, access| Subject { reaches_down: true, access, ..subject(place) };
        let ask = |subject, answer| questions.answer(subject, |_| Answered::Place(answer));
        assert_eq!(ask(known("/a/b", Access::Write), true), Known::Asked(true));
        for below in ["/a/b", "/a/b/c", "/a/b/c/d"] {
            assert_eq!(ask(known(below, Access::Write), false), Known::Before(true), "{below}");
            assert_eq!(ask(known(below, Access::Read), false), Known::Before(true), "{below}");
        }
        for other in ["/a/bc", "/b", "/a"] {
            assert_eq!(ask(known(other, Access::Write), false), Known::Asked(false), "{other}");
        }
        // The nearest answer counts, and a yes to reading is none to writing.
        assert_eq!(ask(known("/a/bc/d", Access::Write), true), Known::Before(false));
        assert_eq!(ask(known("/c", Access::Read), true), Known::Asked(true));
        assert_eq!(ask(known("/c/d", Access::Write), true), Known::Asked(true));
        assert_eq!(ask(subject("/a/b/c"), false), Known::Asked(false), "another kind of question");
    }

    #[test]
    fn a_question_that_panics_is_a_no() {
        let questions = CommandQuestions::default();
        let fault = || questions.answer(subject("/a"), |_| panic!("as a fault would"));
        assert!(catch_unwind(AssertUnwindSafe(fault)).is_err());
        assert!(!questions.is_open(), "the time of the command goes on");
        assert_eq!(questions.answer(subject("/a"), |_| panic!("asked again")), Known::Before(false));
    }

    #[test]
    fn an_answer_for_itself_says_nothing_of_its_place() {
        let questions = CommandQuestions::default();
        for answer in [true, true, false] {
            assert_eq!(questions.answer(subject("/a"), |_| Answered::Itself(answer)), Known::Asked(answer));
        }
    }

    #[test]
    fn a_command_does_not_ask_for_ever() {
        let questions = CommandQuestions::default();
        for number in 0..QUESTIONS / 2 {
            questions.answer(subject(&format!("/{number}")), |_| Answered::Place(true));
            questions.answer(subject("/a"), |_| Answered::Itself(true));
        }
        assert_eq!(questions.answer(subject("/more"), |_| panic!("asked")), Known::Before(false));
        assert_eq!(questions.answer(subject("/0"), |_| panic!("asked")), Known::Before(true));
    }

    #[test]
    fn who_comes_while_it_is_asked_waits_for_the_same_answer() {
        for (answered, known) in [
            (Answered::Place(true), Known::Before(true)),
            (Answered::Place(false), Known::Before(false)),
            // The call is decided again, and asked about if necessary.
            (Answered::Itself(true), Known::Changed),
        ] {
            let questions = Arc::new(CommandQuestions::default());
            std::thread::scope(|scope| {
                let (ask, asked) = std::sync::mpsc::channel::<()>();
                let first = scope.spawn(|| {
                    questions.answer(subject("/a"), move |_| {
                        asked.recv().unwrap();
                        answered
                    })
                });
                while !questions.is_open() {
                    std::thread::yield_now();
                }
                let second = scope.spawn(|| questions.answer(subject("/a"), |_| answered));
                assert!(questions.waited() > Duration::ZERO);
                ask.send(()).unwrap();
                assert_eq!(first.join().unwrap(), Known::Asked(known != Known::Before(false)));
                let second = second.join().unwrap();
                assert!(second == known || (known, second) == (Known::Changed, Known::Asked(true)));
            });
        }
    }
}

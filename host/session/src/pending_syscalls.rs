//! Pending calls of a running command, which wait while the user is asked.
//!
//! There is one question per command and place. A "no" applies to all further calls of the command there that the same
//! rules ask about, and so does a "yes" for all that the command makes there; each of these calls is still decided and
//! logged, and explicit denials stay. Any other "yes" is a grant and covers what its pattern says. A name that other
//! programs execute, such as `.vscode`, is a place of its own together with all paths below; all new dot files in one
//! directory are one place. Removing files is a different question from creating them.

use std::collections::HashMap;
use std::os::unix::fs::MetadataExt;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use portcullis_decision::request::{Action, FileAccess, FileOperation, Origin};
use portcullis_decision::{AnsweredBy, Decision, Effect, GrantScope, Request, path_text};
use portcullis_exec_surface::NEW_DOT_FILES;
use portcullis_sandbox::Attempt;
use portcullis_sandbox_runtime::Held;
use portcullis_text::escape_confusables;

use crate::ask::Refusal;
use crate::authorized::Authorized;
use crate::broker_question;
use crate::cancel::Cancel;
use crate::commands::Started;
use crate::exec_surface_rules;
use crate::links::HARD_LINKS;
use crate::provoked::fault_point;
use crate::refused;
use crate::session::Session;

/// Maximum number of questions per command; with more, the user no longer has oversight.
const QUESTIONS: usize = 20;

/// The subject of a question: the rules that ask, and the place.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct Subject {
    rule: String,
    /// Policy and rule of the decision.
    ///
    /// `None` if `deed` is set, so that one question covers both names of the operation.
    asked_by: Option<(String, String)>,
    place: PathBuf,
    /// Whether it is about a name that other programs execute, whichever rules ask.
    is_executed: bool,
    attempt: Attempt,
    /// The operation, if the place alone does not describe it.
    deed: Option<String>,
    /// A unique number if the decision depends on content: a "yes" to one content does not cover the next.
    content: Option<u64>,
}

/// The questions of one command.
#[derive(Debug, Default)]
pub(crate) struct Questions {
    state: Mutex<State>,
    changed: Condvar,
    contents: AtomicU64,
    /// Notes on refused operations, for the model.
    refused: Mutex<Vec<String>>,
    /// Cancelled when the command has ended.
    cancel: Cancel,
}

#[derive(Debug, Default)]
struct State {
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

impl Questions {
    /// Returns the time that the command has waited for answers so far.
    pub(crate) fn waited(&self) -> Duration {
        let state = self.lock();
        state.waited + state.since.map_or(Duration::ZERO, |since| since.elapsed())
    }

    /// Withdraws all questions because the command has ended.
    pub(crate) fn take_back(&self) {
        self.cancel.cancel();
    }

    /// Returns true if the command waits for an answer.
    pub(crate) fn is_open(&self) -> bool {
        self.lock().open > 0
    }

    /// Returns the answer for a subject. Calls `ask` if there is none yet.
    fn answer(&self, subject: Subject, ask: impl FnOnce(&Cancel) -> Answered) -> Known {
        let mut state = self.lock();
        match state.answers.get(&subject) {
            Some(Some(answer)) => return Known::Before(*answer),
            Some(None) => {
                let is_open = |state: &mut State| state.answers.get(&subject) == Some(&None);
                let state = self.changed.wait_while(state, is_open);
                let state = state.unwrap_or_else(PoisonError::into_inner);
                let answer = state.answers.get(&subject).copied().flatten();
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

    fn note(&self, refused: String) {
        let mut known = self.refused.lock().unwrap_or_else(PoisonError::into_inner);
        if known.len() < QUESTIONS && !known.contains(&refused) {
            known.push(refused);
        }
    }

    /// Returns true if a call may proceed; records the reason otherwise.
    fn hear(&self, authorized: Authorized, attempt: Attempt, path: &Path) -> bool {
        let refused = authorized.granted().err();
        refused.inspect(|why| self.note(refused::after_question(attempt, path, why))).is_none()
    }

    /// Returns the notes on operations refused after a question, for the model.
    pub(crate) fn refused(&self) -> Vec<String> {
        self.refused.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The result of a question.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Answered {
    /// The result applies to this call only.
    Itself(bool),
    /// The result applies to all calls in the place.
    Place(bool),
}

/// The known answer for a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Known {
    /// The user was asked about this call.
    Asked(bool),
    /// An earlier answer covers all calls in the place.
    Before(bool),
    /// Another question was answered meanwhile, and the answer may cover this call.
    Changed,
}

/// Id of the rule that protects start-up files; rules on names cover the same names.
const START_UP_FILES: &str = "host.start-up-files";

/// Returns true if names under a rule need separate questions, since other programs execute them.
fn has_own_question(rule: &str) -> bool {
    rule == START_UP_FILES || portcullis_exec_surface::rule(rule).is_some()
}

/// Label of a "yes" that lasts as long as the command runs.
pub(crate) const FOR_THIS_COMMAND: &str = "Allow for this command";

/// Returns the label of a "yes" to a pending call, which says how far it reaches.
pub(crate) fn once(request: &Request, access: &FileAccess, decision: &Decision) -> String {
    if broker_question::is_only_once(&access.operation) {
        return "Allow once".to_owned();
    }
    let path = Path::new(&access.path.canonical);
    let place = match broker_question::place_of(request) {
        Some(place) if decision.cause().rule == NEW_DOT_FILES.id => {
            return format!(
                "{FOR_THIS_COMMAND}: all new dot files in {}",
                escape_confusables(&place.to_string_lossy())
            );
        }
        Some(place) => Some(place).filter(|place| place != path),
        None => path.parent().filter(|_| !has_own_question(&decision.cause().rule)).map(Path::to_owned),
    };
    let Some(place) = place else { return FOR_THIS_COMMAND.to_owned() };
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
    format!("{FOR_THIS_COMMAND}: all that it {what} in {}", escape_confusables(&place.to_string_lossy()))
}

/// Returns the name and the operation if one answer covers only this operation.
fn only_once(action: &Action) -> Option<(PathBuf, String)> {
    let Action::File(access) = action else { return None };
    let is_only_once = broker_question::is_only_once(&access.operation);
    let path = path_text::decode(&access.path.canonical).unwrap_or_default();
    is_only_once.then(|| (path, format!("{:?}", access.operation)))
}

impl Session {
    /// Answers a pending call of a command, once the user has decided.
    pub(crate) fn answer(&self, started: &Started, held: Held) {
        fault_point("call");
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
        request.attributes.extend(broker_question::attribute(held.rule(), held.deed()));
        // Content and links are asked about one by one.
        let is_plain = deed.is_none() && content.is_none();
        let asks = is_plain
            .then(|| self.decide(&request))
            .filter(|decision| decision.policy() == exec_surface_rules::HOST);
        let executed = asks.and_then(|decision| {
            let rules = [held.rule(), decision.cause().rule.as_str()];
            let rule = rules.into_iter().find(|rule| has_own_question(rule))?;
            self.question_place(&path, rule)
        });
        request.attributes.extend(executed.as_deref().map(broker_question::place_attribute));
        request.attributes.extend(match held.rule() {
            HARD_LINKS => self.other_names(&path),
            _ => (!reason.is_empty()).then(|| exec_surface_rules::attribute(reason)),
        });
        // A write through this name changes the file under all its names, and one of the others may be denied.
        let is_shared = || attempt == Attempt::Write && has_other_names(&path);
        let knows_other_names = held.rule() == HARD_LINKS || is_shared();
        if held.rule() != HARD_LINKS && knows_other_names {
            request.attributes.extend(self.other_names(&path));
        }
        let (is_allowed, decision) = loop {
            let decision = self.decide_under(&request, started.rules.as_deref());
            if decision.effect() != Effect::Ask {
                // This call was allowed without a question, so the result does not cover other calls in the place.
                let authorized = self.authorize_held(request.clone(), started, &started.questions.cancel);
                break (started.questions.hear(authorized, attempt, &path), decision);
            }
            let subject = match &executed {
                Some(place) => Subject::executed(place, attempt),
                None => subject((&held, &path), deed.as_ref(), content, &decision),
            };
            let known = started.questions.answer(subject, |cancel| {
                let authorized = self.authorize_held(request.clone(), started, cancel);
                match (authorized.permit.is_some(), authorized.answer) {
                    (true, Some(GrantScope::Once)) => Answered::Place(true),
                    (true, _) => Answered::Itself(true),
                    // pi itself runs for the whole session, so a single "no" must not last as long.
                    (false, _) if self.setup.inmate.is_agent() => {
                        Answered::Itself(started.questions.hear(authorized, attempt, &path))
                    }
                    (false, _) => Answered::Place(started.questions.hear(authorized, attempt, &path)),
                }
            });
            match known {
                Known::Asked(answer) => break (answer, decision),
                Known::Before(false) => break (false, decision),
                Known::Before(true) => {
                    let authorized = self.authorize_as_before(request.clone(), decision.clone());
                    break (started.questions.hear(authorized, attempt, &path), decision);
                }
                Known::Changed => {}
            }
        };
        if !is_allowed {
            return held.refuse();
        }
        // Get the rules before names are locked: putting changed rules in force builds a sandbox, which takes that
        // lock.
        let force = self.force();
        held.allow_if(&|| {
            // The "yes" does not cover names of the file that were created since.
            (knows_other_names || !is_shared())
                && self.is_still_allowed(&force, &request, &[&decision])
                && (attempt == Attempt::Remove || self.may_complete(&force, &path))
        });
    }

    /// Authorizes a call by the rules of its command.
    fn authorize_held(&self, request: Request, started: &Started, cancel: &Cancel) -> Authorized {
        self.authorize_under(request, started.rules.as_deref(), started.call.as_deref(), cancel)
    }

    /// Authorizes one more call in a place where the user has allowed all calls of the command.
    ///
    /// Denials for the session and reservations of other sessions still apply.
    fn authorize_as_before(&self, request: Request, decision: Decision) -> Authorized {
        let decision = if self.memory.denies(&request.action) {
            decision.refused(AnsweredBy::User, Refusal::Remembered.reason())
        } else {
            decision.granted(AnsweredBy::User, "you allowed it for all that this command does there")
        };
        self.settle(request, decision)
    }
}

fn has_other_names(path: &Path) -> bool {
    path.symlink_metadata().is_ok_and(|found| found.is_file() && found.nlink() > 1)
}

impl Subject {
    /// Returns the subject for a place whose names other programs execute.
    fn executed(place: &Path, attempt: Attempt) -> Self {
        Self {
            rule: String::new(),
            asked_by: None,
            place: place.to_owned(),
            is_executed: true,
            attempt: making(attempt),
            deed: None,
            content: None,
        }
    }
}

/// Creating a directory is the same question as creating a file.
fn making(attempt: Attempt) -> Attempt {
    if attempt == Attempt::MakeDirectory { Attempt::Write } else { attempt }
}

/// Returns the subject of a call.
fn subject(
    (held, path): (&Held, &Path),
    deed: Option<&(PathBuf, String)>,
    content: Option<u64>,
    decision: &Decision,
) -> Subject {
    let rule = decision.cause().rule.clone();
    let is_own = has_own_question(held.rule()) || has_own_question(&rule);
    let (place, kind) = match deed {
        Some((path, _)) => (path.as_path(), Attempt::Write),
        None if is_own => (path, held.attempt()),
        None => (path.parent().unwrap_or(Path::new("/")), held.attempt()),
    };
    Subject {
        rule: held.rule().to_owned(),
        asked_by: deed.is_none().then(|| (decision.policy().to_owned(), rule)),
        place: place.to_owned(),
        is_executed: false,
        attempt: making(kind),
        deed: deed.map(|(_, deed)| deed.clone()),
        content,
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
            attempt: Attempt::Write,
            deed: None,
            content: None,
        }
    }

    #[test]
    fn a_place_is_asked_about_once() {
        let questions = Questions::default();
        for (place, answer) in [("/a", true), ("/b", false)] {
            assert_eq!(questions.answer(subject(place), |_| Answered::Place(answer)), Known::Asked(answer));
            assert_eq!(questions.answer(subject(place), |_| panic!("asked again")), Known::Before(answer));
        }
        assert!(!questions.is_open());
    }

    #[test]
    fn a_question_that_panics_is_a_no() {
        let questions = Questions::default();
        let fault = || questions.answer(subject("/a"), |_| panic!("as a fault would"));
        assert!(catch_unwind(AssertUnwindSafe(fault)).is_err());
        assert!(!questions.is_open(), "the time of the command goes on");
        assert_eq!(questions.answer(subject("/a"), |_| panic!("asked again")), Known::Before(false));
    }

    #[test]
    fn an_answer_for_itself_says_nothing_of_its_place() {
        let questions = Questions::default();
        for answer in [true, true, false] {
            assert_eq!(questions.answer(subject("/a"), |_| Answered::Itself(answer)), Known::Asked(answer));
        }
    }

    #[test]
    fn a_command_does_not_ask_for_ever() {
        let questions = Questions::default();
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
            let questions = Arc::new(Questions::default());
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

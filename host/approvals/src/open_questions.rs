//! Open questions: the requests that wait for answers, and the interface that shows questions.

use std::hash::{BuildHasher as _, RandomState};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, PoisonError};

use portcullis_decision::request::Action;
use portcullis_decision::{AnsweredBy, GrantPattern, GrantScope, Request};

use portcullis_text::escape;

use crate::cancel::Cancel;

/// A question for the user. All texts are safe to show.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Question {
    /// Unique within the session.
    pub id: u64,
    /// The client's call that it is about, if any.
    pub call: Option<String>,
    /// The subject and the action, in the host's words; the place follows.
    pub title: String,
    /// The resource: a path, a script, a host and port.
    pub subject: String,
    /// The subject as a person writes it, if that differs.
    pub place: Option<String>,
    /// Why it is asked, in one short sentence.
    pub context: String,
    /// The first lines of the text that the agent wants to write.
    pub preview: Option<String>,
    /// Whether it is about something that deserves a second look.
    pub is_sensitive: bool,
    /// The subject that asks.
    pub asker: String,
    /// The whole reason.
    pub reason: String,
    /// The policy that asks.
    pub policy: String,
    /// The rule of that policy.
    pub rule: String,
    /// The policy's own text, to be shown as a quotation.
    pub quote: Option<String>,
    /// The choices besides "no", ordered by key, and for each key the narrowest first.
    pub choices: Vec<Choice>,
    /// Timeout in milliseconds, counted while the question is visible.
    pub timeout_ms: Option<u32>,
}

impl Question {
    /// Returns title and place in one line, if no text of the place can pass for the host's own.
    #[must_use]
    pub fn in_one_line(&self) -> Option<String> {
        let place = self.place.as_ref().unwrap_or(&self.subject);
        let is_plain = !place.is_empty() && place.bytes().all(|byte| byte.is_ascii_graphic());
        is_plain.then(|| format!("{} {place}", self.title))
    }
}

/// One choice besides a plain "no".
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Choice {
    /// Its key. Choices that differ only in the extent of the grant share a key.
    pub key: char,
    /// Whether it allows or denies.
    pub kind: ChoiceKind,
    /// Its label, with the scope.
    pub label: String,
    /// The extent of the grant, in words; `None` if it only covers the request itself.
    pub covers: Option<String>,
    /// Rank of its extent among choices with the same key; 0 is the narrowest.
    pub width: u32,
    /// Where the answer is stored, for the user; `None` if it is not stored.
    pub target: Option<String>,
    /// The id of the keeper's place that stores it.
    pub place: Option<String>,
    /// The scope of the answer.
    pub scope: GrantScope,
    /// The pattern of the answer.
    pub pattern: GrantPattern,
    /// Lifetime in seconds; 0 means as long as the scope lasts.
    pub lifetime: u32,
}

impl Choice {
    /// Returns the text to type for this choice in a line-based client: its key, and a number for wider choices.
    #[must_use]
    pub fn code(&self) -> String {
        if self.width == 0 { self.key.to_string() } else { format!("{}{}", self.key, self.width + 1) }
    }

    /// Returns label and extent in one line.
    #[must_use]
    pub fn spoken(&self) -> String {
        match &self.covers {
            Some(covers) => format!("{}: {covers}", self.label),
            None => self.label.clone(),
        }
    }
}

/// Whether a choice allows or denies.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ChoiceKind {
    /// It allows.
    Allow,
    /// It denies, and the session remembers that.
    Deny,
}

/// The answer to a question.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Answer {
    /// The choice at this index.
    Choice(usize),
    /// A refusal, with its cause.
    Refused(Refusal),
    /// A refusal of the user, with a line for the model.
    RefusedBecause(String),
    /// Another answer has created a grant that covers the request.
    Covered,
}

/// Maximum length of the user's line in a refusal, in characters.
const BECAUSE_MAX: usize = 240;

/// Returns the reason of a refusal with a line of the user, as the end of a sentence.
///
/// The line can be pasted text, so it is escaped as foreign text and quoted.
#[must_use]
pub fn refused_because(line: &str) -> String {
    let line: String = line.trim().chars().take(BECAUSE_MAX).collect();
    if line.is_empty() {
        return Refusal::User.reason().to_owned();
    }
    format!("{}, because: “{}”", Refusal::User.reason(), escape(&line))
}

/// Why a question was not answered with "yes".
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Refusal {
    /// The user said no.
    User,
    /// No user interface is present.
    NoUser,
    /// The call was cancelled.
    Aborted,
    /// The question timed out.
    Timeout,
    /// The user has said no for the whole session before.
    Remembered,
}

impl Refusal {
    /// Returns the reason, as the end of a sentence.
    #[must_use]
    pub fn reason(self) -> &'static str {
        match self {
            Self::User => "you said no",
            Self::NoUser => "nobody could be asked",
            Self::Aborted => "the call was cancelled",
            Self::Timeout => "no answer came in time",
            Self::Remembered => "you said no for this session",
        }
    }

    /// Returns the author of the answer.
    #[must_use]
    pub fn by(self) -> AnsweredBy {
        match self {
            Self::User | Self::Remembered => AnsweredBy::User,
            Self::NoUser => AnsweredBy::NoUser,
            Self::Aborted => AnsweredBy::Withdrawal,
            Self::Timeout => AnsweredBy::Timeout,
        }
    }
}

/// The name of a session in texts for the user.
pub const SESSION: &str = "session";

/// The interface that shows questions to the user.
pub trait Prompter: Send + Sync {
    /// Shows a question. The answer can come at once or later, from any thread.
    fn show(&self, question: &Question, answer: Answerer);

    /// Withdraws a question; a later answer is ignored.
    fn withdraw(&self, id: u64, why: &str);

    /// Shows a message that needs no answer.
    fn notice(&self, text: &str);

    /// Says in one line that an answer was kept, and how to take it back.
    fn saved(&self, text: &str) {
        self.notice(&format!("{text} · undo: portcullis grants"));
    }

    /// Returns the name of the session in texts for the user: [`SESSION`], or "command" if it is a single command.
    fn session_name(&self) -> &'static str {
        SESSION
    }
}

/// Sends the answer to a question; only the first one counts. Dropping it without an answer refuses.
#[derive(Debug)]
pub struct Answerer(Arc<Slot>);

impl Answerer {
    /// Sends the answer.
    pub fn answer(self, answer: Answer) {
        self.0.fill(answer);
    }
}

impl Drop for Answerer {
    fn drop(&mut self) {
        self.0.fill(Answer::Refused(Refusal::NoUser));
    }
}

#[derive(Debug, Default)]
struct Slot {
    answer: Mutex<Option<Answer>>,
    filled: Condvar,
}

impl Slot {
    /// Stores the answer unless there is one already. Returns true if it was stored.
    fn fill(&self, answer: Answer) -> bool {
        let mut slot = self.answer.lock().unwrap_or_else(PoisonError::into_inner);
        let is_first = slot.is_none();
        slot.get_or_insert(answer);
        self.filled.notify_all();
        is_first
    }

    fn wait(&self) -> Answer {
        let mut slot = self.answer.lock().unwrap_or_else(PoisonError::into_inner);
        loop {
            if let Some(answer) = slot.as_ref() {
                return answer.clone();
            }
            slot = self.filled.wait(slot).unwrap_or_else(PoisonError::into_inner);
        }
    }
}

/// The unanswered questions of a session.
#[derive(Debug, Default)]
pub struct OpenQuestions {
    pending: Mutex<Vec<Pending>>,
    next: AtomicU64,
    /// Secret for the last digits of question ids.
    secret: RandomState,
}

/// Number of values for the last digits of a question id.
const ENDS: u64 = 10_000;

#[derive(Debug)]
struct Pending {
    question: Question,
    request: Request,
    slot: Arc<Slot>,
}

impl OpenQuestions {
    /// Returns the id of the next question.
    ///
    /// Commands cannot guess it; otherwise one could print a fake question with the same id.
    #[must_use]
    pub fn next_id(&self) -> u64 {
        let count = self.next.fetch_add(1, Ordering::Relaxed) + 1;
        count * ENDS + self.secret.hash_one(count) % ENDS
    }

    /// Shows `question` and waits for an answer or for cancellation.
    ///
    /// `is_covered` returns true if a grant covers the request by now.
    #[must_use]
    pub fn put(
        &self,
        prompter: &Arc<dyn Prompter>,
        question: &Question,
        request: &Request,
        cancel: &Cancel,
        is_covered: impl FnOnce() -> bool,
    ) -> Answer {
        let slot = Arc::new(Slot::default());
        let pending =
            Pending { question: question.clone(), request: request.clone(), slot: Arc::clone(&slot) };
        self.lock().push(pending);
        let (desk_too, slot_too, id) = (Arc::clone(prompter), Arc::clone(&slot), question.id);
        cancel.on_cancel(move || {
            slot_too.fill(Answer::Refused(Refusal::Aborted));
            desk_too.withdraw(id, Refusal::Aborted.reason());
        });
        if is_covered() {
            // A grant that came before this question was registered has not settled it.
            slot.fill(Answer::Covered);
        } else if !cancel.is_cancelled() {
            prompter.show(question, Answerer(Arc::clone(&slot)));
        }
        let answer = slot.wait();
        self.lock().retain(|pending| pending.question.id != question.id);
        answer
    }

    /// Settles all questions about actions for which `is_settled` returns true.
    pub fn close_settled(&self, prompter: &Arc<dyn Prompter>, is_settled: impl Fn(&Action) -> bool) {
        self.review(prompter, |request| is_settled(&request.action));
    }

    /// Settles all questions about requests for which `is_settled` returns true.
    pub fn review(&self, prompter: &Arc<dyn Prompter>, is_settled: impl Fn(&Request) -> bool) {
        // Decide without holding the lock: policies can take time.
        let all: Vec<(u64, Request, Arc<Slot>)> = self
            .lock()
            .iter()
            .map(|pending| (pending.question.id, pending.request.clone(), Arc::clone(&pending.slot)))
            .collect();
        for (id, _, slot) in all.into_iter().filter(|(_, request, _)| is_settled(request)) {
            slot.fill(Answer::Covered);
            prompter.withdraw(id, "another answer covers it");
        }
    }

    /// Refuses all other questions about the same action, so that the user need not say no to each.
    pub fn refuse_same(&self, prompter: &Arc<dyn Prompter>, request: &Request) {
        let is_same = |other: &Request| other.action == request.action && other.origin == request.origin;
        let same: Vec<(u64, Arc<Slot>)> = self
            .lock()
            .iter()
            .filter(|pending| is_same(&pending.request))
            .map(|pending| (pending.question.id, Arc::clone(&pending.slot)))
            .collect();
        for (id, slot) in same {
            if slot.fill(Answer::Refused(Refusal::User)) {
                prompter.withdraw(id, "the same was refused");
            }
        }
    }

    /// Returns the unanswered questions, the oldest first.
    #[must_use]
    pub fn questions(&self) -> Vec<Question> {
        self.lock().iter().map(|pending| pending.question.clone()).collect()
    }

    /// Answers a question without its prompter. Returns false if it is no longer open.
    pub fn answer(&self, prompter: &Arc<dyn Prompter>, id: u64, answer: Answer) -> bool {
        let slot =
            self.lock().iter().find(|pending| pending.question.id == id).map(|found| Arc::clone(&found.slot));
        let answered = slot.is_some_and(|slot| slot.fill(answer));
        if answered {
            prompter.withdraw(id, "it was answered elsewhere");
        }
        answered
    }

    /// Returns the number of unanswered questions.
    #[must_use]
    pub fn waiting(&self) -> usize {
        self.lock().len()
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Vec<Pending>> {
        self.pending.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A prompter without a user: each question is refused at once.
#[derive(Debug, Clone, Copy)]
pub struct NoUser;

impl Prompter for NoUser {
    fn show(&self, _question: &Question, answer: Answerer) {
        answer.answer(Answer::Refused(Refusal::NoUser));
    }

    fn withdraw(&self, _id: u64, _why: &str) {}

    fn notice(&self, _text: &str) {}

    fn saved(&self, _text: &str) {}
}

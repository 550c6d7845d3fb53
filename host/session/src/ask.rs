//! Open questions: who waits for which answer, and where questions are shown.

use std::hash::{BuildHasher as _, RandomState};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, PoisonError};

use portcullis_decision::request::Action;
use portcullis_decision::{AnsweredBy, GrantPattern, GrantScope, Request};

use crate::cancel::Cancel;

/// A question for the user; every text is safe to show.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Question {
    /// Unique within the session.
    pub id: u64,
    /// The call of the client it is about, where there is one.
    pub call: Option<String>,
    /// One line, in the host's words.
    pub title: String,
    /// What it is asked for: a path, a script, a host and port.
    pub subject: String,
    /// Who asks.
    pub asker: String,
    /// Why, in one sentence.
    pub reason: String,
    /// The policy that wants it asked.
    pub policy: String,
    /// The rule in that policy.
    pub rule: String,
    /// The policy's own text, to be shown as its quotation.
    pub quote: Option<String>,
    /// What may be answered beside "no", in the order of keys, of each the narrowest first.
    pub choices: Vec<Choice>,
    /// Milliseconds to answer in, counted while the question is seen.
    pub timeout_ms: Option<u32>,
}

/// One answer beside a plain "no".
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Choice {
    /// Its key; choices that differ only in how much they cover have the same.
    pub key: char,
    /// Whether it permits.
    pub kind: ChoiceKind,
    /// What it says of itself: how long it holds.
    pub label: String,
    /// What it covers, spelled out; none for the very request alone.
    pub covers: Option<String>,
    /// How much it covers among those with its key, from 0 for the least.
    pub width: u32,
    /// Where it is kept, for the user; none for what is not written anywhere.
    pub target: Option<String>,
    /// Which of the keeper's places that is.
    pub place: Option<String>,
    /// How long it holds.
    pub scope: GrantScope,
    /// What it covers.
    pub pattern: GrantPattern,
    /// Seconds; 0 for as long as the scope lasts.
    pub lifetime: u32,
}

impl Choice {
    /// What is typed for it where there is only a line to type: its key, and a number for the wider ones.
    #[must_use]
    pub fn code(&self) -> String {
        if self.width == 0 { self.key.to_string() } else { format!("{}{}", self.key, self.width + 1) }
    }

    /// The whole of it in one line.
    #[must_use]
    pub fn spoken(&self) -> String {
        match &self.covers {
            Some(covers) => format!("{}: {covers}", self.label),
            None => self.label.clone(),
        }
    }
}

/// Whether a choice permits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ChoiceKind {
    /// It does.
    Allow,
    /// It refuses, and the session remembers that.
    Deny,
}

/// What came back.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Answer {
    /// The choice at this place.
    Choice(usize),
    /// No, and why.
    Refused(Refusal),
    /// Another answer has settled it: there is a grant now that covers it.
    Covered,
}

/// Why a question was not answered with yes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Refusal {
    /// The user said no.
    User,
    /// Nobody is there to ask.
    Nobody,
    /// The call was taken back.
    Aborted,
    /// No answer came in time.
    Timeout,
    /// The user said no for the whole session before.
    Remembered,
}

impl Refusal {
    /// The reason, as the end of a sentence.
    #[must_use]
    pub fn reason(self) -> &'static str {
        match self {
            Self::User => "you said no",
            Self::Nobody => "nobody is there to ask",
            Self::Aborted => "the call was taken back",
            Self::Timeout => "no answer came in time",
            Self::Remembered => "you said no for this session",
        }
    }

    /// Who gave the answer that it stands for.
    pub(crate) fn by(self) -> AnsweredBy {
        match self {
            Self::User | Self::Remembered => AnsweredBy::User,
            Self::Nobody => AnsweredBy::Nobody,
            Self::Aborted => AnsweredBy::Withdrawal,
            Self::Timeout => AnsweredBy::Timeout,
        }
    }
}

/// Where questions are shown.
pub trait Desk: Send + Sync {
    /// Shows a question; the answer may be given at once or later, from any thread.
    fn show(&self, question: &Question, answer: Answerer);

    /// Takes a question back; an answer that still comes means nothing.
    fn withdraw(&self, id: u64, why: &str);

    /// Tells the user something that needs no answer.
    fn notice(&self, text: &str);
}

/// The way back for an answer; the first one counts. Dropping it without an answer refuses.
#[derive(Debug)]
pub struct Answerer(Arc<Slot>);

impl Answerer {
    /// Gives the answer.
    pub fn answer(self, answer: Answer) {
        self.0.fill(answer);
    }
}

impl Drop for Answerer {
    fn drop(&mut self) {
        self.0.fill(Answer::Refused(Refusal::Nobody));
    }
}

#[derive(Debug, Default)]
struct Slot {
    answer: Mutex<Option<Answer>>,
    filled: Condvar,
}

impl Slot {
    /// The first answer counts; says whether this is it.
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

/// The questions of a session that have no answer yet.
#[derive(Debug, Default)]
pub(crate) struct Asks {
    pending: Mutex<Vec<Pending>>,
    next: AtomicU64,
    /// What the last digits of a question's number are drawn from.
    secret: RandomState,
}

/// One of so many ends of a question's number.
const ENDS: u64 = 10_000;

#[derive(Debug)]
struct Pending {
    question: Question,
    request: Request,
    slot: Arc<Slot>,
}

impl Asks {
    /// A number for the next question, which a command cannot foretell: it might paint a question of that number.
    pub(crate) fn next_id(&self) -> u64 {
        let count = self.next.fetch_add(1, Ordering::Relaxed) + 1;
        count * ENDS + self.secret.hash_one(count) % ENDS
    }

    /// Shows `question` and waits for its answer, or until the call is taken back. `is_covered` says whether
    /// there is an answer by now.
    pub(crate) fn put(
        &self,
        desk: &Arc<dyn Desk>,
        question: &Question,
        request: &Request,
        cancel: &Cancel,
        is_covered: impl FnOnce() -> bool,
    ) -> Answer {
        let slot = Arc::new(Slot::default());
        let pending =
            Pending { question: question.clone(), request: request.clone(), slot: Arc::clone(&slot) };
        self.lock().push(pending);
        let (desk_too, slot_too, id) = (Arc::clone(desk), Arc::clone(&slot), question.id);
        cancel.on_cancel(move || {
            slot_too.fill(Answer::Refused(Refusal::Aborted));
            desk_too.withdraw(id, Refusal::Aborted.reason());
        });
        if is_covered() {
            // A grant that came before the question was known here has not settled it.
            slot.fill(Answer::Covered);
        } else if !cancel.is_cancelled() {
            desk.show(question, Answerer(Arc::clone(&slot)));
        }
        let answer = slot.wait();
        self.lock().retain(|pending| pending.question.id != question.id);
        answer
    }

    /// Settles every question about an action that `is_settled` says is answered as well.
    pub(crate) fn settle(&self, desk: &Arc<dyn Desk>, is_settled: impl Fn(&Action) -> bool) {
        self.review(desk, |request| is_settled(&request.action));
    }

    /// Settles every question that `is_settled` says needs no answer any more.
    pub(crate) fn review(&self, desk: &Arc<dyn Desk>, is_settled: impl Fn(&Request) -> bool) {
        // Judged outside of the lock: that may take a policy's time.
        let all: Vec<(u64, Request, Arc<Slot>)> = self
            .lock()
            .iter()
            .map(|pending| (pending.question.id, pending.request.clone(), Arc::clone(&pending.slot)))
            .collect();
        for (id, _, slot) in all.into_iter().filter(|(_, request, _)| is_settled(request)) {
            slot.fill(Answer::Covered);
            desk.withdraw(id, "another answer covers it");
        }
    }

    /// Refuses every other question about the very same thing: who said no to it once is not asked seventy times.
    pub(crate) fn refuse_same(&self, desk: &Arc<dyn Desk>, request: &Request) {
        let is_same = |other: &Request| other.action == request.action && other.origin == request.origin;
        let same: Vec<(u64, Arc<Slot>)> = self
            .lock()
            .iter()
            .filter(|pending| is_same(&pending.request))
            .map(|pending| (pending.question.id, Arc::clone(&pending.slot)))
            .collect();
        for (id, slot) in same {
            if slot.fill(Answer::Refused(Refusal::User)) {
                desk.withdraw(id, "the same was refused");
            }
        }
    }

    /// The questions that wait, the oldest first.
    pub(crate) fn questions(&self) -> Vec<Question> {
        self.lock().iter().map(|pending| pending.question.clone()).collect()
    }

    /// Answers a question from elsewhere than the desk; false when it does not wait any more.
    pub(crate) fn answer(&self, desk: &Arc<dyn Desk>, id: u64, answer: Answer) -> bool {
        let slot =
            self.lock().iter().find(|pending| pending.question.id == id).map(|found| Arc::clone(&found.slot));
        let answered = slot.is_some_and(|slot| slot.fill(answer));
        if answered {
            desk.withdraw(id, "it was answered elsewhere");
        }
        answered
    }

    /// How many questions wait.
    pub(crate) fn waiting(&self) -> usize {
        self.lock().len()
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Vec<Pending>> {
        self.pending.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Nobody is there: every question is refused at once.
#[derive(Debug, Clone, Copy)]
pub struct Nobody;

impl Desk for Nobody {
    fn show(&self, _question: &Question, answer: Answerer) {
        answer.answer(Answer::Refused(Refusal::Nobody));
    }

    fn withdraw(&self, _id: u64, _why: &str) {}

    fn notice(&self, _text: &str) {}
}

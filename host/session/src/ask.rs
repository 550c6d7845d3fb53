//! Open questions: who waits for which answer, and where questions are shown.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, PoisonError};

use portcullis_decision::{Grant, GrantPattern, GrantScope, Request};

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
    /// What may be answered beside "no", narrowest first.
    pub choices: Vec<Choice>,
    /// Milliseconds to answer in, counted while the question is seen.
    pub timeout_ms: Option<u32>,
}

/// One answer that permits.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Choice {
    /// Its key.
    pub key: char,
    /// What it says; spells out what is granted.
    pub label: String,
    /// How long it holds.
    pub scope: GrantScope,
    /// What it covers.
    pub pattern: GrantPattern,
    /// Seconds; 0 for as long as the scope lasts.
    pub lifetime: u32,
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
    fn fill(&self, answer: Answer) {
        let mut slot = self.answer.lock().unwrap_or_else(PoisonError::into_inner);
        slot.get_or_insert(answer);
        self.filled.notify_all();
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
}

#[derive(Debug)]
struct Pending {
    id: u64,
    request: Request,
    slot: Arc<Slot>,
}

impl Asks {
    /// A number for the next question.
    pub(crate) fn next_id(&self) -> u64 {
        self.next.fetch_add(1, Ordering::Relaxed) + 1
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
        let pending = Pending { id: question.id, request: request.clone(), slot: Arc::clone(&slot) };
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
        self.lock().retain(|pending| pending.id != question.id);
        answer
    }

    /// Settles every question that `grant` answers as well.
    pub(crate) fn settle(&self, desk: &Arc<dyn Desk>, grant: &Grant) {
        let covered: Vec<(u64, Arc<Slot>)> = self
            .lock()
            .iter()
            .filter(|pending| grant.covers(&pending.request))
            .map(|pending| (pending.id, Arc::clone(&pending.slot)))
            .collect();
        for (id, slot) in covered {
            slot.fill(Answer::Covered);
            desk.withdraw(id, "another answer covers it");
        }
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

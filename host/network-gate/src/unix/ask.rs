//! The queue of connections that wait for the user.
//!
//! One question covers all connections that can be asked about together.

use std::collections::HashMap;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use portcullis_decision::ConnectionRefusal;
use portcullis_decision::request::{Endpoint, Stage};
use tokio::sync::oneshot;

use crate::judge::{ConnectionAttempt, Judge, Judgement, Undecided, Want};

/// How long the first connection of a question waits for others: programs open several at once.
const GATHER: Duration = Duration::from_millis(40);
/// The most connections that may wait for answers; more are refused. A session cannot have more connections.
const WAITING_MAX: usize = 16 * 1024;
/// The most destinations in one question; the rest goes into the next question.
const PLACES_MAX: usize = 8;
/// The most questions about one command; more are refused.
///
/// Users stop reading them, and the command's time limit is suspended while they are open.
const QUESTIONS: usize = 20;

/// The queue of attempts, and the open question.
#[derive(Debug, Default)]
pub(crate) struct Asking {
    state: Mutex<QueueState>,
    changed: Condvar,
}

#[derive(Default)]
struct QueueState {
    waiting: Vec<Waiting>,
    /// The number of attempts that the next question is being chosen from.
    in_hand: usize,
    round: Option<Round>,
    rounds: u64,
    /// The number of questions asked for each command; under 0 those of the session about connections of an unknown
    /// command.
    asked: HashMap<u32, usize>,
    is_closed: bool,
}

impl std::fmt::Debug for QueueState {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("QueueState").field("waiting", &self.waiting.len()).finish_non_exhaustive()
    }
}

struct Waiting {
    undecided: Box<Undecided>,
    judge: Arc<dyn Judge>,
    reply: oneshot::Sender<Judgement>,
}

/// The open question.
struct Round {
    number: u64,
    judge: Arc<dyn Judge>,
    replies: Vec<oneshot::Sender<Judgement>>,
    is_withdrawn: bool,
}

impl Asking {
    /// Queues an attempt, unless too many wait already. The sender of the answer is dropped when the queue closes.
    pub(crate) fn put(
        &self,
        judge: &Arc<dyn Judge>,
        undecided: Box<Undecided>,
    ) -> Result<oneshot::Receiver<Judgement>, ConnectionRefusal> {
        let (reply, answer) = oneshot::channel();
        let mut state = self.state();
        let asked = state.round.as_ref().map_or(0, |round| round.replies.len());
        if state.is_closed || state.waiting.len() + state.in_hand + asked >= WAITING_MAX {
            return Err(ConnectionRefusal::by_host(
                "host.too-many-waiting",
                "too many connections wait for an answer already",
            ));
        }
        state.waiting.push(Waiting { undecided, judge: Arc::clone(judge), reply });
        self.changed.notify_all();
        Ok(answer)
    }

    /// Drops attempts whose clients have gone, and withdraws the open question if it has no clients left.
    pub(crate) fn one_gave_up(&self) {
        let withdrawn = {
            let mut state = self.state();
            state.waiting.retain(|waiting| !waiting.reply.is_closed());
            state.round.as_mut().filter(|round| !round.is_withdrawn && round.is_deserted()).map(|round| {
                round.is_withdrawn = true;
                (Arc::clone(&round.judge), round.number)
            })
        };
        if let Some((judge, number)) = withdrawn {
            judge.withdraw(number);
        }
    }

    /// Resets the count of a command that has ended; its process id may be reused.
    pub(crate) fn forget(&self, command: u32) {
        if command != 0 {
            self.state().asked.remove(&command);
        }
    }

    /// Closes the queue: drops all waiting attempts and withdraws the open question.
    pub(crate) fn close(&self) {
        let round = {
            let mut state = self.state();
            state.is_closed = true;
            state.waiting.clear();
            state.round.as_ref().map(|round| (Arc::clone(&round.judge), round.number))
        };
        self.changed.notify_all();
        if let Some((judge, number)) = round {
            judge.withdraw(number);
        }
    }

    /// Asks one question after another, until the queue is closed.
    pub(crate) fn run(&self) {
        while self.wait_for_one() {
            std::thread::sleep(GATHER);
            let Some((number, judge, attempts)) = self.next_round() else { continue };
            let answers = judge.ask(number, attempts);
            let mut state = self.state();
            let replies = state.round.take().map(|round| round.replies).unwrap_or_default();
            for (reply, answer) in replies.into_iter().zip(answers) {
                match answer {
                    Judgement::Ask(undecided) if !state.is_closed => {
                        state.waiting.push(Waiting { undecided, judge: Arc::clone(&judge), reply });
                    }
                    answer @ (Judgement::Ask(_) | Judgement::Allow(_) | Judgement::Deny(_)) => {
                        // The client may have gone in the meantime.
                        let _unheard = reply.send(answer);
                    }
                }
            }
        }
    }

    fn wait_for_one(&self) -> bool {
        let state =
            self.changed.wait_while(self.state(), |state| state.waiting.is_empty() && !state.is_closed);
        !state.unwrap_or_else(PoisonError::into_inner).is_closed
    }

    /// Settles attempts that an earlier answer covers, and combines those that can be asked about together.
    fn next_round(&self) -> Option<(u64, Arc<dyn Judge>, Vec<Undecided>)> {
        let waiting = {
            let mut state = self.state();
            state.in_hand = state.waiting.len();
            std::mem::take(&mut state.waiting)
        };
        let mut open = waiting.into_iter().filter_map(Waiting::unless_settled);
        let Some(first) = open.next() else {
            self.state().in_hand = 0;
            return None;
        };
        let judge = Arc::clone(&first.judge);
        let ConnectionAttempt { access, command, want, credential } = first.attempt().clone();
        let stage = access.stage;
        let is_to_connect = want == Want::Connect && stage == Stage::Connect;
        let mut places = vec![place(first.attempt())];
        let mut chosen = vec![first];
        let mut later = Vec::new();
        for next in open {
            let is_known = places.contains(&place(next.attempt()));
            let is_alike = Arc::ptr_eq(&next.judge, &judge)
                && next.attempt().command == command
                && next.attempt().want == want
                && next.attempt().credential == credential
                && next.attempt().access.stage == stage
                && (is_to_connect || is_known);
            if !is_alike || !(is_known || places.len() < PLACES_MAX) {
                later.push(next);
                continue;
            }
            if !is_known {
                places.push(place(next.attempt()));
            }
            chosen.push(next);
        }
        let mut state = self.state();
        state.in_hand = 0;
        later.append(&mut state.waiting);
        state.waiting = later;
        if state.is_closed {
            return None;
        }
        let asked = state.asked.entry(command).or_default();
        if *asked >= QUESTIONS {
            chosen.into_iter().for_each(Waiting::refuse);
            return None;
        }
        *asked += 1;
        state.rounds += 1;
        let number = state.rounds;
        let (attempts, replies) = chosen.into_iter().map(|one| (*one.undecided, one.reply)).unzip();
        state.round = Some(Round { number, judge: Arc::clone(&judge), replies, is_withdrawn: false });
        Some((number, judge, attempts))
    }

    fn state(&self) -> MutexGuard<'_, QueueState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Waiting {
    fn attempt(&self) -> &ConnectionAttempt {
        &self.undecided.attempt
    }

    /// Returns the attempt if it is still open: an answer given in the meantime may cover it, and its command may have
    /// ended.
    fn unless_settled(self) -> Option<Self> {
        if self.reply.is_closed() {
            return None;
        }
        let judgement = if self.judge.has_ended(self.attempt().command) {
            Judgement::Deny(ConnectionRefusal::of_ended_command())
        } else {
            self.judge.review(self.undecided)
        };
        match judgement {
            Judgement::Ask(undecided) => Some(Self { undecided, ..self }),
            settled @ (Judgement::Allow(_) | Judgement::Deny(_)) => {
                let _unheard = self.reply.send(settled);
                None
            }
        }
    }

    fn refuse(self) {
        let refusal = ConnectionRefusal::by_host(
            "host.too-many-questions",
            "the command has led to as many questions about connections as one may",
        );
        let _unheard = self.reply.send(Judgement::Deny(refusal));
    }
}

impl Round {
    fn is_deserted(&self) -> bool {
        self.replies.iter().all(oneshot::Sender::is_closed)
    }
}

fn place(attempt: &ConnectionAttempt) -> (Endpoint, u16) {
    (attempt.access.target.clone(), attempt.access.port)
}

#[cfg(test)]
pub(in crate::unix) mod tests;

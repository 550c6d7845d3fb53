//! Bounds on what the clients of a signer can ask for.

use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use portcullis_approvals::Cancel;

/// How many requests are answered at once. Others wait.
const AT_ONCE: usize = 8;
/// After so many refusals of the user without a yes, there are no questions for a while.
const REFUSALS_MAX: u32 = 3;
/// How long that is.
const PAUSE: Duration = Duration::from_secs(60);

/// The requests for signatures that are answered at the moment.
#[derive(Default)]
pub(super) struct Slots {
    open: Mutex<usize>,
    freed: Condvar,
    refusals: Mutex<Refusals>,
}

#[derive(Default)]
struct Refusals {
    in_a_row: u32,
    paused_until: Option<Instant>,
    /// The requests that may be put to the user, each with its number.
    open: Vec<(u64, Cancel)>,
    next: u64,
}

/// A request that may be put to the user.
pub(super) struct Open<'a> {
    slots: &'a Slots,
    number: u64,
}

impl Drop for Open<'_> {
    fn drop(&mut self) {
        lock(&self.slots.refusals).open.retain(|(number, _)| *number != self.number);
    }
}

/// A place among the requests that are answered.
pub(super) struct Slot(Arc<Slots>);

impl Slots {
    /// Waits until there is room for one request more.
    pub(super) fn take(self: &Arc<Self>) -> Slot {
        let open = lock(&self.open);
        let mut open =
            self.freed.wait_while(open, |open| *open >= AT_ONCE).unwrap_or_else(PoisonError::into_inner);
        *open += 1;
        Slot(Arc::clone(self))
    }

    /// Registers a request that may be put to the user; `None` if the user has refused so often that none is now.
    pub(super) fn open(&self, cancel: &Cancel, now: Instant) -> Option<Open<'_>> {
        let mut refusals = lock(&self.refusals);
        if refusals.paused_until.is_some_and(|until| now < until) {
            return None;
        }
        let number = refusals.next;
        refusals.next += 1;
        refusals.open.push((number, cancel.clone()));
        Some(Open { slots: self, number })
    }

    /// Returns true if the user has refused so often that no question is put now.
    pub(super) fn is_paused(&self, now: Instant) -> bool {
        lock(&self.refusals).paused_until.is_some_and(|until| now < until)
    }

    /// Notes the user's answer to a question. The last refusal of several withdraws the questions that wait.
    pub(super) fn answered(&self, is_yes: bool, now: Instant) {
        let mut refusals = lock(&self.refusals);
        refusals.in_a_row = if is_yes { 0 } else { refusals.in_a_row + 1 };
        if refusals.in_a_row < REFUSALS_MAX {
            return;
        }
        refusals.in_a_row = 0;
        refusals.paused_until = Some(now + PAUSE);
        let open = std::mem::take(&mut refusals.open);
        drop(refusals);
        open.iter().for_each(|(_, cancel)| cancel.cancel());
    }
}

impl Slot {
    pub(super) fn slots(&self) -> &Slots {
        &self.0
    }
}

impl Drop for Slot {
    fn drop(&mut self) {
        *lock(&self.0.open) -= 1;
        self.0.freed.notify_one();
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::channel;

    use super::*;

    #[test]
    fn others_wait_for_room() {
        let slots = Arc::new(Slots::default());
        let mut taken: Vec<Slot> = (0..AT_ONCE).map(|_| slots.take()).collect();
        let (done, is_done) = channel();
        let waiting = Arc::clone(&slots);
        let thread = std::thread::spawn(move || done.send(waiting.take()).unwrap());
        assert!(is_done.recv_timeout(Duration::from_millis(50)).is_err(), "there is no room");
        taken.pop();
        drop(is_done.recv_timeout(Duration::from_secs(60)).unwrap());
        thread.join().unwrap();
    }

    #[test]
    fn refusals_in_a_row_end_the_questions_for_a_while() {
        let (slots, now, waiting) = (Slots::default(), Instant::now(), Cancel::default());
        let open = slots.open(&waiting, now);
        for is_yes in [false, false, true, false, false] {
            slots.answered(is_yes, now);
            assert!(!slots.is_paused(now));
        }
        slots.answered(false, now);
        assert!(slots.is_paused(now) && !slots.is_paused(now + PAUSE));
        assert!(waiting.is_cancelled(), "it waited for its turn");
        drop(open);
        assert!(slots.open(&Cancel::default(), now).is_none());
        assert!(slots.open(&Cancel::default(), now + PAUSE).is_some());
    }
}

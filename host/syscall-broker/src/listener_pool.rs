//! Limits how many of the broker's threads wait for the next call.
//!
//! The kernel wakes every thread that waits for a call, and all but one go back to sleep: four of them slow a command
//! that creates many files by a tenth. So two wait, one for the next call and one for the call that arrives while the
//! first is carried out, and the others rest until both are busy.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Condvar, Mutex, PoisonError};

/// The largest number of threads that wait.
const WAITING: usize = 2;

/// The state that the threads share.
#[derive(Debug, Default)]
pub(crate) struct ListenerPool {
    waiting: AtomicUsize,
    /// Set when no thread waits any more, to wake one that rests.
    is_wanted: Mutex<bool>,
    wanted: Condvar,
}

impl ListenerPool {
    /// Waits for a call with `receive`, after a rest if enough others wait.
    pub(crate) fn hear<T>(&self, receive: impl FnOnce() -> T) -> T {
        if !self.join() {
            self.rest();
        }
        let heard = receive();
        if self.waiting.fetch_sub(1, Ordering::SeqCst) == 1 {
            *self.is_wanted.lock().unwrap_or_else(PoisonError::into_inner) = true;
            self.wanted.notify_one();
        }
        heard
    }

    /// Counts this thread among those that wait, unless they are enough.
    fn join(&self) -> bool {
        let joined = |waiting: usize| (waiting < WAITING).then_some(waiting + 1);
        self.waiting.fetch_update(Ordering::SeqCst, Ordering::SeqCst, joined).is_ok()
    }

    /// Rests until this thread counts among those that wait. Those may receive calls the next moment and then set
    /// `is_wanted`, so that the last thread does not go to rest.
    fn rest(&self) {
        let mut is_wanted = self.is_wanted.lock().unwrap_or_else(PoisonError::into_inner);
        while !self.join() {
            let woken = self.wanted.wait_while(is_wanted, |is_wanted| !*is_wanted);
            is_wanted = woken.unwrap_or_else(PoisonError::into_inner);
            *is_wanted = false;
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::mpsc::{Receiver, Sender, channel};
    use std::thread;

    use super::*;

    /// Threads that receive calls from one channel, and hold each call until they may continue.
    struct Threads {
        hearing: Arc<ListenerPool>,
        calls: Sender<()>,
        begun: Receiver<()>,
        go_on: Sender<()>,
    }

    impl Threads {
        fn start(count: usize) -> Self {
            let hearing = Arc::new(ListenerPool::default());
            let ((calls, called), (begins, begun), (go_on, ends)) = (channel(), channel(), channel());
            let (called, ends) = (Arc::new(Mutex::new(called)), Arc::new(Mutex::new(ends)));
            for _ in 0..count {
                let (hearing, begins) = (Arc::clone(&hearing), begins.clone());
                let (called, ends) = (Arc::clone(&called), Arc::clone(&ends));
                let next = |from: &Mutex<Receiver<()>>| from.lock().is_ok_and(|from| from.recv().is_ok());
                thread::spawn(move || {
                    while hearing.hear(|| next(&called)) && begins.send(()).is_ok() && next(&ends) {}
                });
            }
            Self { hearing, calls, begun, go_on }
        }

        fn wait_until_waiting(&self, count: usize) {
            while self.hearing.waiting.load(Ordering::SeqCst) != count {
                thread::yield_now();
            }
        }
    }

    #[test]
    fn as_many_calls_are_carried_out_at_once_as_there_are_threads() {
        let threads = Threads::start(5);
        for _ in 0..3 {
            (0..5).for_each(|_| threads.calls.send(()).expect("heard"));
            (0..5).for_each(|_| threads.begun.recv().expect("begun"));
            threads.wait_until_waiting(0);
            (0..5).for_each(|_| threads.go_on.send(()).expect("went on"));
        }
    }

    #[test]
    fn few_wait_however_many_there_are() {
        let threads = Threads::start(5);
        threads.wait_until_waiting(WAITING);
        for _ in 0..100 {
            threads.calls.send(()).expect("heard");
            threads.begun.recv().expect("begun");
            threads.go_on.send(()).expect("went on");
        }
        threads.wait_until_waiting(WAITING);
    }
}

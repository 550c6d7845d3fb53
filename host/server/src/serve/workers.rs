//! Threads that carry out requests. They are reused, since starting one takes longer than most decisions.

use std::sync::mpsc::{Sender, channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::{io, thread};

/// Maximum number of idle threads; pi has a handful of calls at a time.
const IDLE: usize = 8;

type Work = Box<dyn FnOnce() + Send>;
type Idle = Mutex<Vec<Sender<Work>>>;

/// Busy and idle threads. The idle ones exit when this is dropped.
#[derive(Debug, Default)]
pub(super) struct Workers {
    idle: Arc<Idle>,
}

impl Workers {
    /// Runs `work` on an idle thread or a new one.
    ///
    /// # Errors
    /// When no thread is idle and the system cannot start one.
    pub(super) fn start(&self, work: impl FnOnce() + Send + 'static) -> io::Result<()> {
        let mut work: Work = Box::new(work);
        // The last thread to become idle has the warmest caches.
        while let Some(thread) = lock(&self.idle).pop() {
            match thread.send(work) {
                Ok(()) => return Ok(()),
                Err(unsent) => work = unsent.0,
            }
        }
        let idle = Arc::downgrade(&self.idle);
        thread::Builder::new().name("request".to_owned()).spawn(move || run(work, &idle))?;
        Ok(())
    }
}

/// Runs one piece of work after another, until the thread is no longer needed.
fn run(first: Work, idle: &Weak<Idle>) {
    let mut work = first;
    loop {
        work();
        let (sender, receiver) = channel();
        let Some(waiting) = idle.upgrade() else { return };
        {
            let mut waiting = lock(&waiting);
            if waiting.len() >= IDLE {
                return;
            }
            waiting.push(sender);
        }
        drop(waiting);
        // The sender is dropped with the list.
        let Ok(next) = receiver.recv() else { return };
        work = next;
    }
}

fn lock(idle: &Idle) -> MutexGuard<'_, Vec<Sender<Work>>> {
    // A poisoned lock is safe to use: no work runs while it is held.
    idle.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use std::sync::Barrier;
    use std::sync::mpsc::sync_channel;

    use super::*;

    /// Returns the id of the thread that runs the work.
    fn who(workers: &Workers) -> thread::ThreadId {
        let (told, who) = sync_channel(1);
        workers.start(move || told.send(thread::current().id()).unwrap()).unwrap();
        who.recv().unwrap()
    }

    fn wait_for_idle(workers: &Workers, count: usize) {
        while lock(&workers.idle).len() != count {
            thread::yield_now();
        }
    }

    #[test]
    fn a_thread_is_used_again() {
        let workers = Workers::default();
        let first = who(&workers);
        wait_for_idle(&workers, 1);
        assert_eq!(who(&workers), first);
    }

    #[test]
    fn nobody_waits_for_anybody_and_few_are_kept() {
        let workers = Workers::default();
        let all = Arc::new(Barrier::new(2 * IDLE + 1));
        for _ in 0..2 * IDLE {
            let all = Arc::clone(&all);
            let meet = move || {
                all.wait();
            };
            workers.start(meet).unwrap();
        }
        all.wait();
        wait_for_idle(&workers, IDLE);
    }

    #[test]
    fn work_that_panics_costs_its_thread_only() {
        let workers = Workers::default();
        let (alive, ended) = sync_channel::<()>(0);
        workers
            .start(move || {
                let _alive = alive;
                panic!("as a fault would");
            })
            .unwrap();
        assert!(ended.recv().is_err());
        who(&workers);
    }

    #[test]
    fn threads_that_wait_end_with_the_list() {
        let workers = Workers::default();
        who(&workers);
        wait_for_idle(&workers, 1);
        let waiting = lock(&workers.idle).pop().unwrap();
        drop(workers);
        // The thread still takes this work, but then finds the pool gone and exits.
        let (told, heard) = sync_channel(1);
        waiting.send(Box::new(move || told.send(()).unwrap())).unwrap();
        heard.recv().unwrap();
        while waiting.send(Box::new(|| ())).is_ok() {
            thread::yield_now();
        }
    }
}

//! The thread on which the judge runs.
//!
//! The judge may compute, read files and write the log, so it must not block the connections.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Sender, channel};
use std::thread::JoinHandle;
use std::time::Duration;

use tokio::sync::oneshot;

type Job = Box<dyn FnOnce() + Send>;

/// A worker thread that runs jobs in order.
#[derive(Debug)]
pub(crate) struct Decider {
    jobs: Option<Sender<Job>>,
    /// The number of jobs that are queued or running.
    left: Arc<AtomicUsize>,
    thread: Option<JoinHandle<()>>,
}

impl Decider {
    pub(crate) fn start() -> std::io::Result<Self> {
        let (jobs, todo) = channel::<Job>();
        let left = Arc::new(AtomicUsize::new(0));
        let undone = Arc::clone(&left);
        let work = move || {
            for job in todo {
                // After a panic the caller gets no answer and refuses; the next job runs all the same.
                drop(catch_unwind(AssertUnwindSafe(job)));
                undone.fetch_sub(1, Ordering::SeqCst);
            }
        };
        let thread = std::thread::Builder::new().name("net-decide".to_owned()).spawn(work)?;
        Ok(Self { jobs: Some(jobs), left, thread: Some(thread) })
    }

    /// Runs a job and returns its result; `None` if the job panicked or the thread has ended.
    pub(crate) async fn ask<T: Send + 'static>(&self, job: impl FnOnce() -> T + Send + 'static) -> Option<T> {
        let (reply, answer) = oneshot::channel();
        self.tell(move || {
            // The caller may have gone.
            let _unheard = reply.send(job());
        });
        answer.await.ok()
    }

    /// Queues a job.
    pub(crate) fn tell(&self, job: impl FnOnce() + Send + 'static) {
        if let Some(jobs) = &self.jobs {
            self.left.fetch_add(1, Ordering::SeqCst);
            // Fails only if the thread has ended.
            let _untold = jobs.send(Box::new(job));
        }
    }

    /// Waits until all queued jobs are done, for at most `time`.
    pub(crate) fn hear_out(&self, time: Duration) {
        // The queue is mostly empty, and then the thread need not be woken.
        if self.left.load(Ordering::SeqCst) == 0 {
            return;
        }
        let (done, is_done) = channel();
        self.tell(move || {
            // The caller may have timed out.
            let _unheard = done.send(());
        });
        let _in_time = is_done.recv_timeout(time);
    }
}

impl Drop for Decider {
    fn drop(&mut self) {
        drop(self.jobs.take());
        if let Some(thread) =
            self.thread.take().filter(|thread| thread.thread().id() != std::thread::current().id())
        {
            let _panicked = thread.join();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LONG: Duration = Duration::from_secs(60);

    #[test]
    fn what_was_told_is_heard_out() {
        let decider = Decider::start().expect("a thread");
        let (go_on, wait) = channel::<()>();
        let (done, is_done) = channel();
        decider.tell(move || {
            wait.recv().expect("told to go on");
            done.send(()).expect("heard");
        });
        decider.hear_out(Duration::from_millis(1));
        assert!(is_done.try_recv().is_err(), "it is not done yet");
        go_on.send(()).expect("waited for");
        decider.hear_out(LONG);
        assert!(is_done.try_recv().is_ok());
        decider.hear_out(LONG);
    }

    #[test]
    fn a_job_that_panics_is_no_answer_and_stops_nothing() {
        let decider = Decider::start().expect("a thread");
        let runtime = tokio::runtime::Builder::new_current_thread().build().expect("a runtime");
        let fault = || -> u8 { panic!("as a fault would") };
        assert_eq!(runtime.block_on(decider.ask(fault)), None);
        assert_eq!(runtime.block_on(decider.ask(|| 7)), Some(7));
        let left = Arc::clone(&decider.left);
        drop(decider);
        assert_eq!(left.load(Ordering::SeqCst), 0, "a job that panicked counts as done");
    }
}

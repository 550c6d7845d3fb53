//! The thread on which the judge is asked: it may compute, read files and write the log, so it may not keep the
//! connections waiting.

use std::sync::mpsc::{Sender, channel};
use std::thread::JoinHandle;

use tokio::sync::oneshot;

type Job = Box<dyn FnOnce() + Send>;

/// Does one thing after another.
#[derive(Debug)]
pub(crate) struct Decider {
    jobs: Option<Sender<Job>>,
    thread: Option<JoinHandle<()>>,
}

impl Decider {
    pub(crate) fn start() -> std::io::Result<Self> {
        let (jobs, todo) = channel::<Job>();
        let work = move || todo.into_iter().for_each(|job| job());
        let thread = std::thread::Builder::new().name("net-decide".to_owned()).spawn(work)?;
        Ok(Self { jobs: Some(jobs), thread: Some(thread) })
    }

    /// Does something, and returns what came of it; nothing when there is nobody any more to do it.
    pub(crate) async fn ask<T: Send + 'static>(&self, job: impl FnOnce() -> T + Send + 'static) -> Option<T> {
        let (reply, answer) = oneshot::channel();
        self.tell(move || {
            // Whoever asked may have gone.
            let _unheard = reply.send(job());
        });
        answer.await.ok()
    }

    /// Has something done some time.
    pub(crate) fn tell(&self, job: impl FnOnce() + Send + 'static) {
        if let Some(jobs) = &self.jobs {
            // With the thread gone there is nobody to be told.
            let _untold = jobs.send(Box::new(job));
        }
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

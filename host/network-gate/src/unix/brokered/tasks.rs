//! The tasks of one connection: the streams of HTTP/2, and the side of the server. They end with the connection.

use std::future::Future;
use std::pin::Pin;

use hyper::rt::Executor;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::task::JoinSet;

type Task = Pin<Box<dyn Future<Output = ()> + Send>>;

/// Starts tasks of a connection.
#[derive(Debug, Clone)]
pub(super) struct Tasks(UnboundedSender<Task>);

/// The running tasks. Dropping it ends them, also if one of them can start others.
pub(super) struct Running {
    tasks: JoinSet<()>,
    started: UnboundedReceiver<Task>,
}

impl Tasks {
    /// Makes a starter of tasks, and the place where they run.
    pub(super) fn new() -> (Self, Running) {
        let (starts, started) = unbounded_channel();
        (Self(starts), Running { tasks: JoinSet::new(), started })
    }
}

impl<Started: Future<Output = ()> + Send + 'static> Executor<Started> for Tasks {
    fn execute(&self, task: Started) {
        // If they no longer run, neither does the connection.
        let _ended = self.0.send(Box::pin(task));
    }
}

impl Running {
    /// Runs the tasks until `whole` has ended, and returns its result.
    pub(super) async fn during<Ended>(mut self, whole: impl Future<Output = Ended>) -> Ended {
        let mut whole = std::pin::pin!(whole);
        loop {
            tokio::select! {
                ended = whole.as_mut() => return ended,
                Some(task) = self.started.recv() => drop(self.tasks.spawn(task)),
                Some(_) = self.tasks.join_next(), if !self.tasks.is_empty() => {}
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::time::Duration;

    use super::*;

    #[tokio::test]
    async fn tasks_end_with_the_connection() {
        let (tasks, running) = Tasks::new();
        let alive = Arc::new(());
        let (ours, starter) = (Arc::clone(&alive), tasks.clone());
        tasks.execute(async move {
            let theirs = Arc::clone(&ours);
            starter.execute(async move {
                std::future::pending::<()>().await;
                drop(theirs);
            });
            std::future::pending::<()>().await;
            drop((ours, starter));
        });
        let count = running.during(async {
            tokio::time::sleep(Duration::from_millis(50)).await;
            Arc::strong_count(&alive)
        });
        assert_eq!(count.await, 3, "both run");
        tokio::time::sleep(Duration::from_millis(50)).await;
        assert_eq!(Arc::strong_count(&alive), 1, "both have ended");
    }
}

//! How long a server has left a question unanswered.

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

/// How long a server may be silent. While git's services work, they send a sign of life every five seconds.
pub(super) const PATIENCE: Duration = Duration::from_mins(5);

/// The time since which a server has been silent.
pub(super) struct Silence {
    patience: Duration,
    since: Mutex<Option<Instant>>,
}

impl Silence {
    /// Begins with the wait for the connection.
    pub(super) fn begun(patience: Duration) -> Self {
        Self { patience, since: Mutex::new(Some(Instant::now())) }
    }

    /// Notes that the server was sent something.
    pub(super) fn asked(&self) {
        self.set(Some(Instant::now()));
    }

    /// Notes that the server has sent something. It is the client's turn then.
    pub(super) fn answered(&self) {
        self.set(None);
    }

    fn set(&self, since: Option<Instant>) {
        *self.since.lock().unwrap_or_else(PoisonError::into_inner) = since;
    }

    /// Completes when the server has been silent for too long.
    pub(super) async fn is_too_long(&self) {
        loop {
            let since = *self.since.lock().unwrap_or_else(PoisonError::into_inner);
            let left = since.map_or(self.patience, |since| self.patience.saturating_sub(since.elapsed()));
            if left.is_zero() {
                return;
            }
            tokio::time::sleep(left).await;
        }
    }
}

#[cfg(test)]
mod tests {
    use tokio::time::timeout;

    use super::*;

    #[tokio::test]
    async fn only_an_unanswered_question_takes_too_long() {
        let patience = Duration::from_millis(200);
        let silence = Silence::begun(patience);
        timeout(10 * patience, silence.is_too_long()).await.expect("the connection was never made");
        silence.answered();
        timeout(3 * patience, silence.is_too_long()).await.expect_err("it is the client's turn");
        silence.asked();
        timeout(10 * patience, silence.is_too_long()).await.expect("it did not answer");
    }
}

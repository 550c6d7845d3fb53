//! Waiting for a condition, never for a time.

use std::thread;
use std::time::{Duration, Instant};

use anyhow::bail;

/// How long anything a test waits for may take.
///
/// Generous, because machines that run tests are small and busy; a test that passes never uses it up.
pub const PATIENCE: Duration = Duration::from_secs(90);

const POLL: Duration = Duration::from_millis(20);

/// The moment at which waiting turns into an error.
#[derive(Debug, Clone, Copy)]
pub struct Deadline(Instant);

impl Deadline {
    /// Starts a wait of at most [`PATIENCE`].
    #[must_use]
    pub fn start() -> Self {
        Self::after(PATIENCE)
    }

    /// Starts a wait of at most `patience`.
    #[must_use]
    pub fn after(patience: Duration) -> Self {
        Self(Instant::now() + patience)
    }

    /// Returns the time that is left, zero when there is none.
    #[must_use]
    pub fn left(self) -> Duration {
        self.0.saturating_duration_since(Instant::now())
    }

    /// Calls `look` until it finds something.
    ///
    /// # Errors
    ///
    /// When `look` fails, or has found nothing by the deadline; `wanted` says what was waited for.
    pub fn until<T>(
        self,
        wanted: &str,
        mut look: impl FnMut() -> anyhow::Result<Option<T>>,
    ) -> anyhow::Result<T> {
        loop {
            if let Some(found) = look()? {
                return Ok(found);
            }
            if self.left().is_zero() {
                bail!("waited in vain for {wanted}");
            }
            thread::sleep(POLL.min(self.left()));
        }
    }
}

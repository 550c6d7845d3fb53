//! Waits for conditions, never for fixed times.

use std::thread;
use std::time::{Duration, Instant};

use anyhow::bail;

/// The longest time that a test waits for anything.
///
/// It is generous, because machines that run tests are small and busy; a passing test never uses it up.
pub const PATIENCE: Duration = Duration::from_secs(90);

const POLL: Duration = Duration::from_millis(20);

/// The moment at which a wait becomes an error.
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

    /// Returns the remaining time, zero if there is none.
    #[must_use]
    pub fn left(self) -> Duration {
        self.0.saturating_duration_since(Instant::now())
    }

    /// Calls `look` until it returns something.
    ///
    /// # Errors
    ///
    /// If `look` fails, or finds nothing by the deadline; `wanted` describes the condition.
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

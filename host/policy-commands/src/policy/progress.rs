//! Progress messages of long commands.

use std::time::{Duration, Instant};

use portcullis_bootstrap::streams::say;

/// Interval between messages.
const EVERY: Duration = Duration::from_secs(5);

/// Prints progress messages at intervals.
pub(super) struct ProgressPrinter {
    /// Time of the last message; `None` if the output is for a program.
    told: Option<Instant>,
}

impl ProgressPrinter {
    /// Starts the first interval.
    pub(super) fn begin(is_for_a_program: bool) -> Self {
        Self { told: (!is_for_a_program).then(Instant::now) }
    }

    /// Prints the message if the interval is over.
    pub(super) fn tell(&mut self, words: impl FnOnce() -> String) {
        if let Some(told) = self.told.as_mut().filter(|told| told.elapsed() >= EVERY) {
            *told = Instant::now();
            say(&words());
        }
    }
}

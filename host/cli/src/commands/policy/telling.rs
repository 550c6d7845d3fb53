//! How far a long verb has come, told to the person who waits.

use std::time::{Duration, Instant};

use crate::exit::say;

/// How often it is told.
const EVERY: Duration = Duration::from_secs(5);

/// Tells now and then how far something has come.
pub(super) struct Telling {
    /// None: a program waits, to which it means nothing.
    told: Option<Instant>,
}

impl Telling {
    /// Begins to count the time.
    pub(super) fn begin(is_for_a_program: bool) -> Self {
        Self { told: (!is_for_a_program).then(Instant::now) }
    }

    /// Prints the words, if it is time for some.
    pub(super) fn tell(&mut self, words: impl FnOnce() -> String) {
        if let Some(told) = self.told.as_mut().filter(|told| told.elapsed() >= EVERY) {
            *told = Instant::now();
            say(&words());
        }
    }
}

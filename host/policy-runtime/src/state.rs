//! The host's state for one running instance: its budgets, its log and its random numbers.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::limits::{MemoryBudget, TimeBudget};

/// Bytes of one log line.
const LINE_BYTES: usize = 4 << 10;
/// Bytes of log that one call may write.
const LOG_BYTES: usize = 64 << 10;
/// Lines of log that one call may write.
const LOG_LINES: usize = 100;
/// Seed of the random numbers. It is the same for every instance, so that a decision can be replayed.
const SEED: u64 = 0x706f_7274_6375_6c6c;

/// The data of a wasmtime store.
pub(crate) struct HostState {
    pub(crate) memory: MemoryBudget,
    pub(crate) time: TimeBudget,
    pub(crate) log: CallLog,
    /// Number of handles on host resources that the guest holds.
    pub(crate) handles: i64,
    random: u64,
}

impl HostState {
    pub(crate) fn new(memory_limit: usize, time_limit: Duration) -> Self {
        Self {
            memory: MemoryBudget::new(memory_limit),
            time: TimeBudget::start(time_limit),
            log: CallLog::default(),
            handles: 0,
            random: SEED,
        }
    }

    /// Resets the log and the random numbers after `configure`.
    ///
    /// Calls then behave as they do on a snapshot.
    pub(crate) fn forget_configuring(&mut self) {
        self.log = CallLog::default();
        self.random = SEED;
    }

    /// Returns the next pseudo-random number (splitmix64).
    pub(crate) fn next_random(&mut self) -> u64 {
        self.random = self.random.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.random;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }
}

/// The severity of a log line.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum LogLevel {
    /// Details for the author of the policy.
    Trace,
    /// Details for debugging.
    Debug,
    /// Information. Also the level of standard output.
    Info,
    /// A warning. Also the level of standard error.
    Warn,
    /// A failure.
    Error,
}

/// One line that a policy logged. Written by a guest: show it as quoted text.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LogLine {
    /// The severity.
    pub level: LogLevel,
    /// The text, cut if it was too long.
    pub message: String,
}

/// The log lines of one call, limited in size. Excess lines are dropped.
#[derive(Debug, Default)]
pub(crate) struct CallLog {
    lines: Vec<LogLine>,
    bytes: usize,
    /// The streams' last lines, which have no end yet.
    open: Vec<LogLine>,
}

impl CallLog {
    pub(crate) fn add(&mut self, level: LogLevel, message: &str) {
        let left = LOG_BYTES.saturating_sub(self.bytes).min(LINE_BYTES);
        if left == 0 || self.lines.len() >= LOG_LINES {
            return;
        }
        let message = message.get(..message.floor_char_boundary(left)).unwrap_or_default().to_owned();
        // An empty line counts as one byte.
        self.bytes += message.len().max(1);
        self.lines.push(LogLine { level, message });
    }

    /// Adds text from a stream. Programs write a line in several pieces.
    pub(crate) fn write(&mut self, level: LogLevel, text: &str) {
        for piece in text.split_inclusive('\n') {
            let (text, is_whole) = piece.strip_suffix('\n').map_or((piece, false), |text| (text, true));
            let place = self.open.iter().position(|line| line.level == level).unwrap_or_else(|| {
                self.open.push(LogLine { level, message: String::new() });
                self.open.len() - 1
            });
            let Some(line) = self.open.get_mut(place) else { return };
            let room = text.floor_char_boundary(LINE_BYTES.saturating_sub(line.message.len()));
            line.message.push_str(text.get(..room).unwrap_or_default());
            if is_whole {
                let line = self.open.remove(place);
                self.add(level, &line.message);
            }
        }
    }

    pub(crate) fn into_lines(mut self) -> Vec<LogLine> {
        for line in std::mem::take(&mut self.open) {
            self.add(line.level, &line.message);
        }
        self.lines
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_log_is_bounded() {
        let mut log = CallLog::default();
        (0..LOG_LINES).for_each(|_| log.add(LogLevel::Info, &"é".repeat(LOG_BYTES)));
        let lines = log.into_lines();
        assert_eq!(lines.len(), LOG_BYTES / LINE_BYTES);
        assert!(lines.iter().all(|line| line.message.len() == LINE_BYTES));

        let mut log = CallLog::default();
        (0..LOG_LINES * 2).for_each(|_| log.add(LogLevel::Info, ""));
        assert_eq!(log.into_lines().len(), LOG_LINES);
    }

    #[test]
    fn pieces_of_a_line_are_put_together() {
        let mut log = CallLog::default();
        log.write(LogLevel::Info, "one, ");
        log.write(LogLevel::Warn, "a warning\nits rest");
        log.write(LogLevel::Info, "two\n\nthree");
        log.write(LogLevel::Info, &"é".repeat(LINE_BYTES));
        let lines = log.into_lines();
        let texts: Vec<&str> = lines.iter().map(|line| line.message.as_str()).collect();
        assert!(
            matches!(texts.as_slice(), ["a warning", "one, two", "", "its rest", long] if long.starts_with("threeé"))
        );
        assert!(lines.iter().all(|line| line.message.len() <= LINE_BYTES));
    }

    #[test]
    fn dice_fall_the_same_way() {
        let throws = |mut state: HostState| [state.next_random(), state.next_random()];
        assert_eq!(throws(HostState::new(0, Duration::ZERO)), throws(HostState::new(0, Duration::ZERO)));
        let [one, two] = throws(HostState::new(0, Duration::ZERO));
        assert_ne!(one, two);
    }
}

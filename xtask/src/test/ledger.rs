//! The results and times of the steps of a test run.

use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};

use super::report;
use super::tally::Tally;
use crate::run::{answer, say};

/// The results of all steps so far.
#[derive(Debug, Default)]
pub(super) struct Ledger {
    total: Tally,
    steps: Vec<(String, Duration)>,
    /// A line for each step that failed.
    failures: Vec<String>,
    /// The times of the single tests, as far as they are reported.
    tests: Vec<(String, Duration)>,
}

impl Ledger {
    /// Records a step that does not count as a test.
    pub(super) fn took(&mut self, what: &str, time: Duration) {
        self.steps.push((what.to_owned(), time));
    }

    /// Records the times of single tests.
    pub(super) fn tests_took(&mut self, times: impl IntoIterator<Item = (String, Duration)>) {
        self.tests.extend(times);
    }

    /// Runs a step that counts as one test.
    pub(super) fn check(&mut self, what: &str, work: impl FnOnce() -> Result<()>) {
        self.tests(what, || work().map(|()| (Tally { passed: 1, ..Tally::default() }, true)));
    }

    /// Runs a step that counts its own tests and returns whether its program succeeded.
    pub(super) fn tests(&mut self, what: &str, work: impl FnOnce() -> Result<(Tally, bool)>) {
        say(format_args!("{what} ..."));
        let start = Instant::now();
        let result = work();
        self.record(what, start.elapsed(), result);
    }

    /// Records the result of a finished step.
    pub(super) fn record(&mut self, what: &str, time: Duration, result: Result<(Tally, bool)>) {
        let (tally, result) = match result {
            Ok((tally, is_success)) if tally.passed + tally.failed > 0 => {
                // A program that fails without naming a failed test counts as one failure.
                let tally = Tally { failed: tally.failed.max(u64::from(!is_success)), ..tally };
                (tally, format!("{} passed, {} failed", tally.passed, tally.failed))
            }
            Ok((tally, _)) => (Tally { failed: 1, ..tally }, "no test ran at all".to_owned()),
            Err(error) => (Tally { failed: 1, ..Tally::default() }, format!("{error:#}")),
        };
        let line = format!("{what}: {result}");
        say(&line);
        if tally.failed > 0 {
            self.failures.push(line);
        }
        self.total.add(tally);
        self.took(what, time);
    }

    /// Writes the times of all tests to `path`, the slowest first: seconds, a tab, and the test's name.
    ///
    /// # Errors
    /// Fails when the file cannot be written.
    pub(super) fn write_times(&self, path: &Path) -> Result<()> {
        std::fs::write(path, report::table(&self.tests))
            .with_context(|| format!("writing the times of the tests to {}", path.display()))
    }

    /// Prints the times and the failures, and the total on the last line.
    ///
    /// # Errors
    /// Fails when a test failed or was ignored.
    pub(super) fn close(&self) -> Result<()> {
        for line in report::steps(&self.steps).into_iter().chain(report::slowest(&self.tests)) {
            say(line);
        }
        if !self.failures.is_empty() {
            say("failures, with their causes above:");
        }
        self.failures.iter().for_each(say);
        let Tally { passed, failed, ignored } = self.total;
        if ignored > 0 {
            say(format_args!("{ignored} tests are marked as ignored; none may be"));
        }
        let failed = failed + ignored;
        answer(format_args!("{passed} passed, {failed} failed"));
        if failed > 0 {
            bail!("{failed} tests or checks failed");
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_runner_that_dies_or_runs_nothing_has_failed() {
        let mut ledger = Ledger::default();
        ledger.tests("dies", || Ok((Tally { passed: 2, ..Tally::default() }, false)));
        ledger.tests("runs nothing", || Ok((Tally::default(), true)));
        assert_eq!(ledger.total, Tally { passed: 2, failed: 2, ignored: 0 });
        ledger.close().unwrap_err();
    }
}

//! Counts of passed and failed tests, parsed from the output of test runners.

use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};

use anyhow::{Context, Result};

use crate::run::answer;

/// The number of tests by result. A check without its own tests counts as one.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub(super) struct Tally {
    pub(super) passed: u64,
    pub(super) failed: u64,
    pub(super) ignored: u64,
}

impl Tally {
    pub(super) fn add(&mut self, other: Self) {
        self.passed += other.passed;
        self.failed += other.failed;
        self.ignored += other.ignored;
    }

    /// Parses the totals from one line of cargo's or node's test runner.
    pub(super) fn from_line(line: &str) -> Self {
        let mut tally = Self::default();
        let Some(counts) = line.strip_prefix("test result: ") else {
            let words: Vec<&str> = line.split_whitespace().collect();
            if let ["#" | "ℹ", word, count] = words.as_slice() {
                tally.count(word, count);
            }
            return tally;
        };
        for part in counts.split(['.', ';']) {
            if let Some((count, word)) = part.trim().split_once(' ') {
                tally.count(word, count);
            }
        }
        tally
    }

    fn count(&mut self, word: &str, count: &str) {
        // `2 failed ["name"]` has the names after the word.
        let field = match word.split(' ').next().unwrap_or_default() {
            "passed" | "pass" => &mut self.passed,
            "failed" | "fail" | "cancelled" => &mut self.failed,
            "ignored" | "skipped" | "todo" => &mut self.ignored,
            _ => return,
        };
        *field += count.parse::<u64>().unwrap_or(0);
    }
}

/// Runs a test runner, forwards its output, and counts the tests. Also returns whether it succeeded.
pub(super) fn counted(command: &mut Command) -> Result<(Tally, bool)> {
    let mut child =
        command.stdin(Stdio::null()).stdout(Stdio::piped()).spawn().context("starting the tests")?;
    let output = child.stdout.take().context("the tests have no output")?;
    let mut tally = Tally::default();
    for line in BufReader::new(output).split(b'\n') {
        let line = line.context("reading the tests' output")?;
        let line = String::from_utf8_lossy(&line);
        answer(&line);
        tally.add(Tally::from_line(&line));
    }
    Ok((tally, child.wait().context("waiting for the tests")?.success()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(line: &str, passed: u64, failed: u64, ignored: u64) {
        assert_eq!(Tally::from_line(line), Tally { passed, failed, ignored }, "{line}");
    }

    #[test]
    fn totals_of_both_runners_are_read() {
        check(
            "test result: ok. 3 passed; 0 failed; 1 ignored; 0 measured; 7 filtered out; finished in 0.1s",
            3,
            0,
            1,
        );
        check("test result: FAILED. 3 passed; 2 failed; 0 ignored; 0 measured; 0 filtered out", 3, 2, 0);
        check("test result: 3 passed; 2 failed [\"a\", \"b\"]", 3, 2, 0);
        check("# pass 4", 4, 0, 0);
        check("ℹ fail 2", 0, 2, 0);
        check("ℹ skipped 2", 0, 0, 2);
        check("ℹ duration_ms 2", 0, 0, 0);
        check("test decide ... ok", 0, 0, 0);
    }
}

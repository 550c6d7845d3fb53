//! `test`: everything that must hold before a change is good, in one command.

use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};

use crate::build::{self, GenOptions};
use crate::run::{answer, say, show};
use crate::{contract, extension, guests, project, setup};

pub(crate) const EXAMPLES: &str = "\
Examples:
  cargo xtask test              set up, build, check, test; the last line counts
  CI=true cargo xtask test      the same; a test that cannot run here fails

Every step is run, also after one has failed. The time of each is printed.";

/// How many tests ended how. A check without tests of its own counts as one.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
struct Tally {
    passed: u64,
    failed: u64,
    ignored: u64,
}

/// What ran, how long it took, and how it ended.
#[derive(Debug, Default)]
struct Ledger {
    total: Tally,
    times: Vec<(String, Duration)>,
}

pub(crate) fn task() -> Result<()> {
    let start = Instant::now();
    let tools = setup::ready()?;
    let mut ledger = Ledger::default();
    ledger.times.push(("setup".to_owned(), start.elapsed()));
    ledger.check("guests", || guests::shipped_policies().and_then(|()| guests::test_guests()));
    ledger.check("guests --check", guests::check);
    ledger.check("rustfmt", || show(project::cargo().args(["fmt", "--all", "--check"])));
    ledger.check("build", || show(project::cargo().args(["build", "--workspace", "--quiet"])));
    ledger.check("gen --check", || build::generate(&GenOptions { check: true }));
    ledger.check("wit-check", contract::check);
    let clippy = ["clippy", "--workspace", "--all-targets", "--quiet", "--", "-D", "warnings"];
    ledger.check("clippy", || show(project::cargo().args(clippy)));
    let binary = project::target_directory()?.join("debug/portcullis");
    ledger.tests("cargo test", || {
        let mut cargo = project::cargo();
        cargo.args(["test", "--workspace", "--no-fail-fast", "--quiet"]);
        cargo.env("PATH", tools.search_path()?);
        counted(cargo.env("PORTCULLIS_BIN", &binary))
    });
    for (what, pi) in [("tsc with pi 0.74", &tools.pi_0_74), ("tsc with pi 1.5", &tools.pi_1_5)] {
        ledger.check(what, || extension::check_types(&tools, pi.as_ref().context("set-up left no pi")?));
    }
    ledger.tests("pi", || {
        let pi = tools.pi_1_5.as_ref().context("set-up left no pi")?;
        counted(&mut extension::tests(&pi.node)?)
    });
    ledger.close()
}

impl Ledger {
    /// Runs a step that counts as one test.
    fn check(&mut self, what: &str, work: impl FnOnce() -> Result<()>) {
        self.tests(what, || work().map(|()| (Tally { passed: 1, ..Tally::default() }, true)));
    }

    /// Runs a step that counts its own tests, and says whether its program ended well.
    fn tests(&mut self, what: &str, work: impl FnOnce() -> Result<(Tally, bool)>) {
        say(format_args!("{what} ..."));
        let start = Instant::now();
        let mut tally = match work() {
            // A program that fails without naming a failed test has failed all the same.
            Ok((tally, ended_well)) => Tally { failed: tally.failed.max(u64::from(!ended_well)), ..tally },
            Err(error) => {
                say(format_args!("{what}: {error:#}"));
                Tally { failed: 1, ..Tally::default() }
            }
        };
        if tally.passed + tally.failed == 0 {
            say(format_args!("{what}: no test ran at all"));
            tally.failed = 1;
        }
        say(format_args!("{what}: {} passed, {} failed", tally.passed, tally.failed));
        self.total.add(tally);
        self.times.push((what.to_owned(), start.elapsed()));
    }

    fn close(&self) -> Result<()> {
        for (what, time) in &self.times {
            say(format_args!("{:>7.1} s  {what}", time.as_secs_f32()));
        }
        let Tally { passed, failed, ignored } = self.total;
        if ignored > 0 {
            say(format_args!("{ignored} tests are marked as ignored; none may be"));
        }
        let failed = failed + ignored;
        answer(format_args!("{passed} passed, {failed} failed"));
        if failed > 0 {
            bail!("not everything passed");
        }
        Ok(())
    }
}

impl Tally {
    fn add(&mut self, other: Self) {
        self.passed += other.passed;
        self.failed += other.failed;
        self.ignored += other.ignored;
    }

    /// Reads what one line of cargo's or node's test runner says about totals.
    fn from_line(line: &str) -> Self {
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
        let field = match word {
            "passed" | "pass" => &mut self.passed,
            "failed" | "fail" | "cancelled" => &mut self.failed,
            "ignored" | "skipped" | "todo" => &mut self.ignored,
            _ => return,
        };
        *field += count.parse::<u64>().unwrap_or(0);
    }
}

/// Runs a test runner, passes on what it prints, and counts.
fn counted(command: &mut Command) -> Result<(Tally, bool)> {
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
        check("# pass 4", 4, 0, 0);
        check("ℹ fail 2", 0, 2, 0);
        check("ℹ skipped 2", 0, 0, 2);
        check("ℹ duration_ms 2", 0, 0, 0);
        check("test decide ... ok", 0, 0, 0);
    }

    #[test]
    fn a_runner_that_dies_or_runs_nothing_has_failed() {
        let mut ledger = Ledger::default();
        ledger.tests("dies", || Ok((Tally { passed: 2, ..Tally::default() }, false)));
        ledger.tests("runs nothing", || Ok((Tally::default(), true)));
        assert_eq!(ledger.total, Tally { passed: 2, failed: 2, ignored: 0 });
        ledger.close().unwrap_err();
    }
}

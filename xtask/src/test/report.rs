//! The time report of a test run.

use std::time::Duration;

/// Number of slow tests to list.
const SLOWEST: usize = 20;

/// Returns a line for each step.
pub(super) fn steps(steps: &[(String, Duration)]) -> Vec<String> {
    steps.iter().map(|(what, time)| format!("{:>7.1} s  {what}", time.as_secs_f32())).collect()
}

/// Returns a heading and a line for each of the slowest tests, or nothing if no test reported its time.
pub(super) fn slowest(tests: &[(String, Duration)]) -> Vec<String> {
    let lines: Vec<String> = slowest_first(tests)
        .into_iter()
        .take(SLOWEST)
        .map(|(name, time)| format!("{:>7.1} s  {name}", time.as_secs_f32()))
        .collect();
    if lines.is_empty() { lines } else { std::iter::once("slowest tests:".to_owned()).chain(lines).collect() }
}

/// Returns a line for each test, the slowest first: seconds, a tab, and the name.
pub(super) fn table(tests: &[(String, Duration)]) -> String {
    let line = |(name, time): &(String, Duration)| format!("{:.3}\t{name}\n", time.as_secs_f32());
    slowest_first(tests).into_iter().map(line).collect()
}

fn slowest_first(tests: &[(String, Duration)]) -> Vec<&(String, Duration)> {
    let mut sorted: Vec<_> = tests.iter().collect();
    sorted.sort_by_key(|(_, time)| std::cmp::Reverse(*time));
    sorted
}

/// Parses a test's name and time from a runner's line: `test NAME ... ok <1.234s>`.
pub(super) fn time_of_test(line: &str) -> Option<(&str, Duration)> {
    let (name, rest) = line.strip_prefix("test ")?.split_once(" ... ")?;
    let seconds = rest.split_once('<')?.1.strip_suffix("s>")?;
    Some((name, Duration::try_from_secs_f64(seconds.parse().ok()?).ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_read_from_both_kinds_of_runners() {
        let second = Duration::from_millis(1500);
        assert_eq!(time_of_test("test a::b ... ok <1.500s>"), Some(("a::b", second)));
        assert_eq!(time_of_test("test race as root ... FAILED <1.500s>"), Some(("race as root", second)));
        for line in ["test a::b ... ok", "test result: ok. 1 passed", "other <1.0s>", "test a ... ok <-1s>"] {
            assert_eq!(time_of_test(line), None, "{line}");
        }
    }

    #[test]
    fn the_slowest_come_first_and_no_more_than_twenty() {
        let tests: Vec<_> = (0..30_u64).map(|n| (format!("t{n}"), Duration::from_secs(n))).collect();
        let lines = slowest(&tests);
        assert_eq!(lines.len(), SLOWEST + 1);
        assert!(lines[1].ends_with("29.0 s  t29"), "{lines:?}");
        assert!(slowest(&[]).is_empty());
        assert!(table(&tests).starts_with("29.000\tt29\n28.000\tt28\n"));
    }
}

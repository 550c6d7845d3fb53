//! Benchmarks. Every claim about speed is a ratio that one of them prints.
//!
//! The machines are shared and busy, so absolute times mean little. A [`Race`] therefore runs all contestants
//! in every round, in rotating order, and compares the median of the ratios within the rounds.
//!
//! ```
//! use portcullis_benches::{Contestant, Race};
//!
//! let mut race = Race::new("adding");
//! race.rounds = 20;
//! let outcome = race.run(vec![
//!     Contestant::new("one", 100, || { std::hint::black_box(1 + 1); }),
//!     Contestant::new("two", 100, || { std::hint::black_box(2 + 2); }),
//! ]);
//! assert!(outcome.ratio("two", "one").unwrap().median > 0.0);
//! ```

mod told;
pub mod write_heavy;

use std::fmt;
use std::time::{Duration, Instant};

pub use told::Told;

/// Number of warm-up rounds, which do not count. They fill caches and raise the processor's clock.
const WARM_UPS: usize = 2;
/// Default number of rounds. Fewer are not significant on a shared machine.
pub const ROUNDS: usize = 20;
/// Load above which a race is repeated once.
const BUSY: f64 = 3.0;

/// Returns true if a race should run. All run if the program's arguments name none.
#[must_use]
pub fn is_wanted(race: &str) -> bool {
    let named: Vec<String> = std::env::args().skip(1).filter(|argument| !argument.starts_with('-')).collect();
    named.is_empty() || named.iter().any(|name| name == race)
}

/// One implementation of the measured operation.
pub struct Contestant<'a> {
    name: String,
    calls: u32,
    prepare: Box<dyn FnMut() + 'a>,
    run: Box<dyn FnMut(u32) + 'a>,
}

impl<'a> Contestant<'a> {
    /// Creates a contestant. Each round calls `run` `calls` times and measures the mean time of one call.
    pub fn new(name: &str, calls: u32, mut run: impl FnMut() + 'a) -> Self {
        Self::at_once(name, calls, move |calls| (0..calls).for_each(|_| run()))
    }

    /// Creates a contestant whose `run` gets the number of calls.
    ///
    /// For operations in another process, where one request per call would count as well.
    pub fn at_once(name: &str, calls: u32, run: impl FnMut(u32) + 'a) -> Self {
        Self { name: name.to_owned(), calls, prepare: Box::new(|| ()), run: Box::new(run) }
    }

    /// Adds what comes before each round, and does not count.
    #[must_use]
    pub fn after(self, prepare: impl FnMut() + 'a) -> Self {
        Self { prepare: Box::new(prepare), ..self }
    }

    fn round(&mut self) -> Duration {
        (self.prepare)();
        let start = Instant::now();
        (self.run)(self.calls);
        start.elapsed() / self.calls.max(1)
    }
}

impl fmt::Debug for Contestant<'_> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Contestant").field("name", &self.name).finish_non_exhaustive()
    }
}

/// A comparison of contestants.
#[derive(Debug, Clone)]
pub struct Race {
    /// The title of the measurement.
    pub title: String,
    /// The number of rounds that count.
    pub rounds: usize,
}

impl Race {
    /// Creates a race of [`ROUNDS`] rounds.
    #[must_use]
    pub fn new(title: &str) -> Self {
        Self { title: title.to_owned(), rounds: ROUNDS }
    }

    /// Runs the race, and repeats it once if the machine was busy. Returns the run with the lower load.
    #[must_use]
    pub fn run(&self, mut contestants: Vec<Contestant<'_>>) -> Outcome {
        let first = self.run_once(&mut contestants);
        if first.load <= BUSY {
            return first;
        }
        let second = self.run_once(&mut contestants);
        if second.load < first.load { second } else { first }
    }

    fn run_once(&self, contestants: &mut [Contestant<'_>]) -> Outcome {
        let mut times: Vec<Vec<Duration>> = contestants.iter().map(|_| Vec::new()).collect();
        for round in 0..WARM_UPS + self.rounds {
            for place in 0..contestants.len() {
                // The first in a round has the coldest caches, so the order rotates.
                let turn = (place + round) % contestants.len();
                let (Some(contestant), Some(times)) = (contestants.get_mut(turn), times.get_mut(turn)) else {
                    continue;
                };
                let time = contestant.round();
                if round >= WARM_UPS {
                    times.push(time);
                }
            }
        }
        let names = contestants.iter().map(|contestant| contestant.name.clone());
        Outcome { title: self.title.clone(), load: load(), times: names.zip(times).collect() }
    }
}

/// The result of a race.
#[derive(Debug, Clone)]
pub struct Outcome {
    title: String,
    load: f64,
    times: Vec<(String, Vec<Duration>)>,
}

/// The times of one contestant in relation to another's.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Ratio {
    /// Median of the ratios within the rounds.
    pub median: f64,
    /// Ratio of the lower quartiles, an estimate for an idle machine.
    pub calm: f64,
}

impl Outcome {
    /// Returns the ratio of `name` to `base`, or `None` if one of them did not take part.
    #[must_use]
    pub fn ratio(&self, name: &str, base: &str) -> Option<Ratio> {
        let (times, bases) = (self.times_of(name)?, self.times_of(base)?);
        let ratios = times.iter().zip(bases).map(|(time, base)| time.as_secs_f64() / base.as_secs_f64());
        Some(Ratio {
            median: quantile(ratios.collect(), 0.5)?,
            calm: self.seconds(name, 0.25)? / self.seconds(base, 0.25)?,
        })
    }

    /// Returns a quantile of a contestant's times, in seconds.
    #[must_use]
    pub fn seconds(&self, name: &str, part: f64) -> Option<f64> {
        quantile(self.times_of(name)?.iter().map(Duration::as_secs_f64).collect(), part)
    }

    fn times_of(&self, name: &str) -> Option<&[Duration]> {
        self.times.iter().find(|(other, _)| other == name).map(|(_, times)| times.as_slice())
    }
}

/// Prints a table. All ratios are relative to the first contestant.
impl fmt::Display for Outcome {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(formatter, "{} (load {:.1})", self.title, self.load)?;
        writeln!(formatter, "  {:<28} {:>12} {:>12} {:>8} {:>8}", "", "p25 µs", "median µs", "ratio", "p25")?;
        let Some((base, _)) = self.times.first() else { return Ok(()) };
        for (name, _) in &self.times {
            let microseconds = |part| self.seconds(name, part).unwrap_or(f64::NAN) * 1e6;
            let ratio = self.ratio(name, base).unwrap_or(Ratio { median: f64::NAN, calm: f64::NAN });
            let (calm, median) = (microseconds(0.25), microseconds(0.5));
            writeln!(
                formatter,
                "  {name:<28} {calm:>12.2} {median:>12.2} {:>7.2}x {:>7.2}x",
                ratio.median, ratio.calm
            )?;
        }
        Ok(())
    }
}

/// Returns the value below which the fraction `part` of the values lies.
fn quantile(mut values: Vec<f64>, part: f64) -> Option<f64> {
    values.sort_by(f64::total_cmp);
    let last = values.len().checked_sub(1)?;
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        clippy::cast_precision_loss,
        reason = "an index within a short list"
    )]
    let place = (last as f64 * part.clamp(0.0, 1.0)).round() as usize;
    values.get(place).copied()
}

/// Returns the load average of the last minute, or 0 if the system does not report it.
fn load() -> f64 {
    let text = std::fs::read_to_string("/proc/loadavg").unwrap_or_default();
    text.split_whitespace().next().and_then(|first| first.parse().ok()).unwrap_or(0.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles() {
        assert_eq!(quantile(vec![3.0, 1.0, 2.0], 0.5), Some(2.0));
        assert_eq!(quantile(vec![5.0, 1.0, 2.0, 3.0, 4.0], 0.25), Some(2.0));
        assert_eq!(quantile(Vec::new(), 0.5), None);
    }

    #[test]
    fn slower_is_slower() {
        let work = |length: u64| {
            move || {
                std::hint::black_box((0..length).map(std::hint::black_box).sum::<u64>());
            }
        };
        let race = Race::new("sums");
        let outcome = race
            .run(vec![Contestant::new("short", 50, work(1_000)), Contestant::new("long", 50, work(10_000))]);
        assert_eq!(outcome.times_of("short").unwrap().len(), ROUNDS);
        assert!(outcome.ratio("long", "short").unwrap().median > 3.0, "{outcome}");
        assert!(outcome.ratio("nobody", "short").is_none());
    }
}

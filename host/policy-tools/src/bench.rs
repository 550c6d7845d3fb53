//! Measures the speed of policies.

use std::time::{Duration, Instant};

use anyhow::bail;
use serde::Serialize;

use crate::corpus::Item;
use crate::simulator::Simulator;

/// Calls before the measurement, which fill the caches.
const WARM_UP: usize = 20;

/// Statistics of the time of one call, in microseconds.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Figures {
    /// The number of measured calls.
    pub calls: usize,
    /// The median.
    pub p50: f64,
    /// The 99th percentile.
    pub p99: f64,
    /// The maximum.
    pub max: f64,
}

/// Measures policies against each other.
///
/// Every round puts the same request to each of them, so that a busy machine slows all of them down equally. Each call
/// runs in a fresh instance, and the standing rules are compiled beforehand, as for decisions.
///
/// # Errors
/// If a policy fails on a request.
pub fn measure(
    policies: &[Simulator],
    corpus: &[Item],
    rounds: usize,
    mut progress: impl FnMut(usize),
) -> anyhow::Result<Vec<Figures>> {
    let mut times: Vec<Vec<Duration>> = policies.iter().map(|_| Vec::with_capacity(rounds)).collect();
    for (round, item) in corpus.iter().cycle().take(WARM_UP + rounds).enumerate() {
        progress(round);
        for shift in 0..policies.len() {
            // The first policy changes from round to round.
            let place = (round + shift) % policies.len();
            let Some(policy) = policies.get(place) else { continue };
            let started = Instant::now();
            let simulated = policy.judge(item);
            let taken = started.elapsed();
            if simulated.failed {
                bail!("on `{}`: {}", item.name, simulated.evaluation.cause.reason);
            }
            if let (true, Some(times)) = (round >= WARM_UP, times.get_mut(place)) {
                times.push(taken);
            }
        }
    }
    Ok(times.into_iter().map(figures).collect())
}

fn figures(mut times: Vec<Duration>) -> Figures {
    times.sort_unstable();
    let microseconds = |time: Option<&Duration>| time.map_or(0.0, |time| time.as_secs_f64() * 1e6);
    let at = |hundredth: usize| microseconds(times.get(times.len() * hundredth / 100));
    Figures { calls: times.len(), p50: at(50), p99: at(99), max: microseconds(times.last()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles() {
        let times = (1..=1000).rev().map(Duration::from_micros).collect();
        let figures = figures(times);
        assert_eq!((figures.calls, figures.max.round()), (1000, 1000.0));
        assert!(
            (500.0..=502.0).contains(&figures.p50) && (990.0..=992.0).contains(&figures.p99),
            "{figures:?}"
        );
    }
}

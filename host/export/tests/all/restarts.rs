//! Many records, while collector and exporter are stopped and started again.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use portcullis_export::Step;

use crate::collector::{Collector, OK, Reply};
use crate::world::{World, write};

/// Number of decisions; each has an outcome. `cargo xtask test --full` sets more.
const COUNT: usize = 5_000;

/// The variable with another number.
const VARIABLE: &str = "PORTCULLIS_EXPORT_RECORDS";

#[test]
fn none_is_lost_and_each_repeated_one_says_so() {
    let wanted = std::env::var(VARIABLE).ok().map(|text| text.parse::<usize>().expect("a number"));
    let count = wanted.map_or(COUNT, |records| records / 2);
    let world = World::new();
    // Every seventh batch arrives, and the collector stops before it answers; every eleventh finds none.
    let requests = Arc::new(AtomicUsize::new(0));
    let collector = Collector::start({
        let requests = Arc::clone(&requests);
        move |_, _| match requests.fetch_add(1, Ordering::Relaxed) {
            number if number % 7 == 3 => Reply::TakeInSilence,
            number if number % 11 == 5 => Reply::Refuse("503 Service Unavailable\r\n\r\n"),
            _ => OK,
        }
    });
    let log = world.log("one");
    let mut failures = 0;
    for part in 0..10 {
        write(&log, count / 10);
        // A new exporter for each part, as after a restart.
        let mut exporter = world.exporter(&collector.destination()).expect("an exporter");
        loop {
            match exporter.step() {
                // Half of the parts leave the rest to the next one.
                Ok(Step::Sent { .. })
                    if part % 2 == 0 && requests.load(Ordering::Relaxed).is_multiple_of(5) =>
                {
                    break;
                }
                Ok(Step::Sent { .. }) => {}
                Ok(Step::Idle) => break,
                Err(_) => failures += 1,
            }
        }
    }
    let mut exporter = world.exporter(&collector.destination()).expect("an exporter");
    while !matches!(exporter.step(), Ok(Step::Idle)) {}
    let written = count / 10 * 10 * 2;
    let mut seen: HashMap<String, usize> = HashMap::new();
    for received in collector.received() {
        let times = seen.entry(received.id.clone()).or_default();
        assert_eq!(received.is_repeated, *times > 0, "{}, seen {times} times before", received.id);
        *times += 1;
    }
    assert_eq!(seen.len(), written, "none is lost");
    let repeated = seen.values().filter(|times| **times > 1).count();
    println!("{written} records, {failures} failures, {repeated} repeated");
    assert!(failures > 0 && repeated > 0, "control: there was something to repeat");
}

//! Component in, verdict out: `cargo +nightly fuzz run boundary fuzz/corpus/boundary tests/golden/0.1.0`.

#![no_main]

#[path = "../../host/policy-runtime/tests/it/hand_made.rs"]
#[expect(dead_code, reason = "the tests of the crate make guests of many kinds")]
mod hand_made;
#[path = "../../host/policy-runtime/tests/it/property.rs"]
#[expect(dead_code, reason = "answers have a target of their own")]
mod property;
#[path = "../../host/policy-runtime/tests/it/request.rs"]
mod request;

use std::time::Duration;

use libfuzzer_sys::fuzz_target;
use portcullis_policy_runtime::Limits;

/// Returns limits that end waiting guests early, to save fuzzing time.
fn limits() -> Limits {
    let short = Duration::from_millis(20);
    Limits { decision_time: short, setup_time: short, configure_time: short * 5, ..Limits::default() }
}

fuzz_target!(|component: &[u8]| {
    property::component(component);
});

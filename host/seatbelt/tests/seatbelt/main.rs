//! Profiles, read by an evaluator of the tests' own.
#![expect(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::wildcard_enum_match_arm,
    reason = "a test fails by panicking"
)]

mod examples;
mod generator;
mod kit;
mod moves;
mod names;
mod random;

//! Tests of policies in the runtime: hand-made ones that misbehave in one way each, and those that toolchains
//! build.

#![expect(clippy::unwrap_used, clippy::panic, reason = "helpers of tests, which end where they cannot go on")]

mod boundary;
mod cache;
mod golden;
mod guests;
mod hand_made;
mod hostile;
mod loading;
mod property;
mod request;
mod wasi;

/// The limits in these tests: the defaults.
fn limits() -> portcullis_policy_runtime::Limits {
    portcullis_policy_runtime::Limits::default()
}

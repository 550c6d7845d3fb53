//! Policies put through the runtime: hand-made ones that misbehave in one way
//! each, and those that the toolchains build.

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

/// What policies may use up here: what they may everywhere.
fn limits() -> portcullis_policy_runtime::Limits {
    portcullis_policy_runtime::Limits::default()
}

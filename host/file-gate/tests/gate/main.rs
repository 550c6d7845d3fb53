//! Tests the gate against real files and hostile processes, as root and as an ordinary user.
//!
//! Every attack has a control that succeeds without the gate. A test that cannot run prints what is missing; it fails
//! if `CI` is set.
//!
//! With the feature `portable`, the same tests run against the gate of other systems, except those of a sandbox's view.
#![cfg_attr(
    target_os = "linux",
    expect(
        clippy::print_stdout,
        clippy::expect_used,
        clippy::panic,
        clippy::indexing_slicing,
        reason = "this is a test runner, and a test fails by panicking"
    )
)]

#[cfg(target_os = "linux")]
mod edits;
#[cfg(target_os = "linux")]
mod kit;
#[cfg(target_os = "linux")]
mod links;
#[cfg(target_os = "linux")]
mod permits;
#[cfg(target_os = "linux")]
mod races;
#[cfg(target_os = "linux")]
mod reads;
#[cfg(target_os = "linux")]
mod runner;
#[cfg(target_os = "linux")]
mod searches;
#[cfg(target_os = "linux")]
mod session;
#[cfg(target_os = "linux")]
mod spelling;
#[cfg(target_os = "linux")]
mod views;
#[cfg(target_os = "linux")]
mod writes;

#[cfg(target_os = "linux")]
fn main() -> std::process::ExitCode {
    runner::main()
}

#[cfg(not(target_os = "linux"))]
fn main() {}

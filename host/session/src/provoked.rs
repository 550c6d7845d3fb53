//! Faults that a test provokes: a panic at a named point of the host.
//!
//! They exist in debug builds only: a release build has neither the variable nor the panic, and its points are empty.
//! The place comes from a variable of the host process itself, which the command line reads once, before it does
//! anything else. Settings, projects, policies and the agent cannot set it: commands run in processes of their
//! own, whose environment the host does not read. A fault denies; no point can be used to allow something.

#[cfg(debug_assertions)]
use std::sync::OnceLock;

/// The point where this process is to panic.
#[cfg(debug_assertions)]
static WANTED: OnceLock<String> = OnceLock::new();

/// Makes this process panic whenever it reaches `point`. Only the first call has an effect.
#[cfg(debug_assertions)]
pub fn provoke(point: String) {
    // The first point stays.
    let _known = WANTED.set(point);
}

/// Panics if a test wants a fault at `point`.
#[cfg(debug_assertions)]
#[expect(clippy::panic, reason = "a fault of the host is a panic, and a test wants one")]
pub fn fault_point(point: &str) {
    if WANTED.get().is_some_and(|wanted| wanted == point) {
        panic!("a fault at `{point}`, which a test provokes");
    }
}

/// Does nothing: faults are provoked in debug builds only.
#[cfg(not(debug_assertions))]
pub const fn fault_point(_point: &str) {}
